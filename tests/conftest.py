"""Tiny random models, built in code: no hub, no downloads. Real objects all the same."""

import os
import sys
from pathlib import Path

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # before torch and numpy: two workers on two cores fight over more threads
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a name that is no folder fails at once, instead of asking the network

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile(
    "machine", deadline=None, derandomize=True
)  # a busy machine is not a failure, nor is luck a test
settings.load_profile("machine")

TEXTS = [
    "In so far as the tide may be measured, it has been; the harbour-master's book, however, disagrees.",
    "But maps lie. They don't mean to. And still we fold them, pocket them and go.",
    "Why do bees dance? Because—after all—they cannot point.",
    "Let us suppose that every bridge fails; hence each was, in general, underdesigned (or overused).",
    "Sleep, it seems to me, is a good deal older than memory; or rather, memory is sleep that stayed awake.",
    "Spelling changed: first, slowly; second, by decree; third, not at all.",
]
SHARED = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data that some machines have beside the repository."""
    if not SHARED.is_dir():
        pytest.skip("the folder with real corpora and fixtures (../shared) is not on this machine")
    return SHARED


def trained_tokenizer(kind: str):
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<s>", "</s>", "<unk>", "<mask>"]
    if kind == "byte":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    elif kind == "word":
        tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=400, special_tokens=special)
    else:
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=special, unk_token="<unk>")
    tokenizer.train_from_iterator(TEXTS * 20, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    named = {
        "pad_token": "<pad>",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
    }
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, cls_token="<s>", sep_token="</s>", model_max_length=128, **named
    )


def tiny_backbone(folder: Path, kind: str, seed: int = 0) -> Path:
    """A plain transformers folder with random weights: modernbert (byte BPE), bert (WordPiece) or xlmr (Unigram)."""
    import torch
    from transformers import BertConfig, BertModel, ModernBertConfig, ModernBertModel, XLMRobertaConfig, XLMRobertaModel

    tokenizer = trained_tokenizer({"modernbert": "byte", "bert": "word", "xlmr": "piece"}[kind])
    torch.manual_seed(seed)
    small = {"vocab_size": len(tokenizer), "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    small |= {"intermediate_size": 48, "pad_token_id": 0}
    if kind == "modernbert":
        ids = {"bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
        model = ModernBertModel(
            ModernBertConfig(**small, **ids, max_position_embeddings=128, global_attn_every_n_layers=2)
        )
    elif kind == "bert":
        model = BertModel(BertConfig(**small, max_position_embeddings=128), add_pooling_layer=False)
    else:
        model = XLMRobertaModel(XLMRobertaConfig(**small, max_position_embeddings=140), add_pooling_layer=False)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def backbones(tmp_path_factory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("backbones")
    return {kind: tiny_backbone(root / f"tiny-{kind}", kind) for kind in ("modernbert", "bert", "xlmr")}


@pytest.fixture(scope="session")
def encoders(backbones):
    from idiograph.neural.encoder import TorchEncoder

    return {kind: TorchEncoder.open(folder) for kind, folder in backbones.items()}


@pytest.fixture(scope="session")
def encoder(encoders):
    return encoders["modernbert"]


@pytest.fixture(scope="session")
def style(encoder):
    from idiograph.style.model import Style

    return Style(encoder, patch="ngram:2")


@pytest.fixture(scope="session")
def texts() -> list[str]:
    return list(TEXTS)


@pytest.fixture
def random():
    return np.random.default_rng(7)


@pytest.fixture(scope="session")
def anthology_corpus(tmp_path_factory):
    """The built-in corpus, built once."""
    from idiograph.corpus.corpus import Corpus, build_corpus
    from idiograph.corpus.readers import read_documents

    folder = tmp_path_factory.mktemp("anthology") / "corpus"
    build_corpus(read_documents("anthology"), folder)
    return Corpus(folder)


@pytest.fixture
def idiograph(monkeypatch, capsys):
    """Run a command in this process: (exit status, standard output, standard error)."""
    from idiograph import cli

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["idiograph", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return run
