"""MaxSim forward and backward: ours and the peers that are installed, on the same input, in one run; then a whole step.

    python benchmarks/train.py                    # a GPU if there is one, else small shapes on the CPU
    python benchmarks/train.py --only idiograph   # without the peers
    python benchmarks/train.py --step             # whole training steps: every grain against mean pooling

Prints the median time, the ratio to ours, and how far each is from the answer in double precision; for a step also
tokens a second, the share of the tensor cores' arithmetic that the model uses, and memory.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch
from sentence_transformers.multi_vector_encoder.scoring import colbert_scores

from idiograph.neural.build import build_model
from idiograph.neural.maxsim.padded import torch_maxsim
from idiograph.neural.training.batches import TrainingBatch
from idiograph.neural.training.loss import Contrastive, Objective
from idiograph.recipe import TrainRecipe

GPU = torch.cuda.is_available()
SHAPES = (
    [(256, 160, 512, 160, 384), (256, 80, 512, 80, 384), (256, 54, 512, 54, 384), (256, 160, 512, 160, 128)]
    + [(256, 160, 512, 160, 768), (256, 54, 512, 54, 128), (64, 512, 128, 512, 384)]
    if GPU
    else [(8, 80, 16, 80, 384), (8, 54, 16, 54, 128)]
)
TENSOR_CORES = 790e12  # bf16 multiply-adds a second that an H200 reaches on a large product, times two


def peers():
    """name → function of padded rows and masks."""
    found = {"idiograph": torch_maxsim}
    found["sentence-transformers"] = lambda a, am, b, bm: colbert_scores(a, b[:, None], am, bm[:, None])
    try:
        from late_interaction_kernels import maxsim as lik

        found["late-interaction-kernels"] = lambda a, am, b, bm: lik(a, b, am, bm)
    except ImportError:
        pass
    try:
        from flash_maxsim import flash_maxsim_batched_train as flash

        found["flash-maxsim"] = lambda a, am, b, bm: flash(a, b, True, bm.sum(1).int(), am.sum(1).int())
    except ImportError:
        pass
    return found


def rows(texts, longest, dim):
    vectors = torch.nn.functional.normalize(torch.randn(texts, longest, dim), dim=-1)
    vectors = vectors.to("cuda" if GPU else "cpu", torch.bfloat16 if GPU else torch.float32)
    mask = torch.ones(texts, longest, dtype=torch.bool, device=vectors.device)
    return vectors.requires_grad_(), mask


def clock(function, repeat=15):
    """Median milliseconds, after a warm-up; the first call is timed apart, for what compiling costs."""
    times = []
    for _ in range(repeat + 3):
        if GPU:
            torch.cuda.synchronize()
        begun = time.perf_counter()
        function()
        if GPU:
            torch.cuda.synchronize()
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times[3:]), times[0]


def error(function, dim):
    """Relative distance of score and gradients from double precision."""
    torch.manual_seed(1)
    (a, am), (b, bm) = rows(6, 40, dim), rows(8, 50, dim)
    weight = torch.randn(6, 8, device=a.device)
    function(a, am, b, bm).float().backward(weight)
    exact = [x.detach().double().requires_grad_() for x in (a, b)]
    score = torch.einsum("asd,btd->abst", *exact).amax(-1).sum(-1)
    score.backward(weight.double())
    pairs = [(function(a, am, b, bm), score), (a.grad, exact[0].grad), (b.grad, exact[1].grad)]
    return [float((x.detach().double() - y.detach()).norm() / y.detach().norm()) for x, y in pairs]


def kernels(only, chosen):
    for shape in [SHAPES[at] for at in chosen] or SHAPES:
        texts, long, others, longer, dim = shape
        floor = 2 * texts * long * others * longer * dim / TENSOR_CORES * 1e3
        ideal = f": floor of the forward {floor:.2f} ms" if GPU else ""
        print(f"\n{texts}×{long} against {others}×{longer}, d={dim}{ideal}", flush=True)
        ours = None
        for name, function in peers().items():
            if not only or name in only:
                try:
                    ours = measure(name, function, shape, ours)
                except Exception as failed:  # a peer that cannot do a shape is part of the result
                    print(f"  {name:26} failed: {str(failed).splitlines()[0][:90]}", flush=True)


def measure(name, function, shape, ours):
    """Print a line for one implementation, and give back the time of the first one."""
    texts, long, others, longer, dim = shape
    torch.manual_seed(0)
    (a, am), (b, bm) = rows(texts, long, dim), rows(others, longer, dim)
    weight = torch.randn(texts, others, device=a.device)

    def both():
        a.grad = b.grad = None
        function(a, am, b, bm).float().backward(weight)

    if GPU:
        torch.cuda.reset_peak_memory_stats()
    total, first = clock(both)
    with torch.no_grad():
        forward, _ = clock(lambda: function(a, am, b, bm))
    memory = f"{torch.cuda.max_memory_allocated() / 2**30:6.2f} GiB" if GPU else ""
    wrong = " ".join(f"{e:.1e}" for e in error(function, dim))
    print(
        f"  {name:26} both {total:8.2f} ms  forward {forward:8.2f} ms  {total / (ours or total):5.2f}×  {memory}"
        f"  first call {first / 1e3:5.1f} s  error {wrong}",
        flush=True,
    )
    return ours or total


def backbone(folder):
    """A BERT of MiniLM-L6's shape with random weights: the arithmetic is the same, and nothing need be downloaded."""
    from transformers import BertConfig, BertModel, BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *(f"w{at}" for at in range(30_516))]
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    shape = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    BertModel(BertConfig(vocab_size=len(words), **shape)).save_pretrained(folder)
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def made_up(triplets, longest, device):
    """A batch of texts between half as long and as long as the window."""
    torch.manual_seed(1)
    ids = torch.randint(6, 30_000, (3 * triplets, longest))
    ids[:, 0] = 2
    mask = torch.arange(longest)[None] < torch.randint(longest // 2, longest + 1, (3 * triplets, 1))
    labels = torch.arange(2 * triplets).view(2, triplets).T[:, [0, 0, 1]].contiguous()
    return TrainingBatch(ids * mask, mask.long(), labels, int(mask.sum())).to(device)


def steps():
    device = torch.device("cuda" if GPU else "cpu")
    size, longest = (256, 192) if GPU else (4, 48)
    print(f"\nwhole step, MiniLM-L6's shape, {size} triplets of up to {longest} tokens")
    with tempfile.TemporaryDirectory() as folder:
        base = backbone(Path(folder))
        batch, mean = made_up(size, longest, device), None
        for patch in ("whole", "ngram:3", "ngram:2", "word", "ngram:1"):
            encoder = build_model(base, TrainRecipe(patch=patch))
            encoder.model.float().to(device)
            taken = step_time(encoder.model, batch, device)
            mean = mean or taken[0]
            width = batch.input_ids.shape[1]
            flops = (
                6 * batch.tokens * 6 * (12 * 384 * 384 + width * 384)
            )  # forward and backward, of tokens that are there
            used = f"  MFU {flops / taken[0] * 1e3 / TENSOR_CORES:5.1%}  {taken[1]:6.2f} GiB" if GPU else ""
            rate = batch.tokens / taken[0] * 1e3
            print(
                f"  {patch:10} {taken[0]:8.2f} ms  {taken[0] / mean:5.2f}× mean  {rate:12,.0f} tokens/s{used}",
                flush=True,
            )


def step_time(model, batch, device):
    """Median milliseconds of forward, loss, backward and update; and the most memory, in GiB."""
    loss = Contrastive(model, Objective(TrainRecipe()).to(device))
    optimizer = torch.optim.AdamW(loss.parameters(), 2e-5, fused=GPU)
    model.train()

    def step():
        with torch.autocast(device.type, torch.bfloat16, enabled=GPU):
            value = loss(batch.columns, batch.labels)
        value.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    if GPU:
        torch.cuda.reset_peak_memory_stats()
    taken, _ = clock(step, 15 if GPU else 3)
    return taken, torch.cuda.max_memory_allocated() / 2**30 if GPU else 0.0


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", nargs="*", default=[])
    options.add_argument("--shape", nargs="*", type=int, default=[], help="which of the shapes, counted from 0")
    options.add_argument("--step", action="store_true")
    given = options.parse_args()
    print(torch.cuda.get_device_name() if GPU else "CPU", torch.__version__)
    if given.step:
        steps()
    else:
        kernels(given.only, given.shape)


if __name__ == "__main__":
    main()
