"""The study from a corpus to a report, stage by stage. A stage that is done is not done again; a stopped one goes on.

mine     corpus → triplets, by the preset's rules
pack     triplets → arrays to train and measure on, and the list of runs
models   train and read every model (the part that wants a GPU: see `idiograph.study.remote`)
report   tables, figures and claims
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.corpus.readers import read_documents
from idiograph.corpus.stats import corpus_statistics
from idiograph.errors import InputError, SpecError
from idiograph.mining.mine import mine_triplets
from idiograph.recipe import Recipe
from idiograph.runner import Progress
from idiograph.spec import unknown_choice
from idiograph.store import MANIFEST, Manifest, locked_folder, seal, write_json
from idiograph.study.claims import all_claims
from idiograph.study.outcomes import StudyOutcomes
from idiograph.study.pack import LISTING, Pack, Problems
from idiograph.study.plan import QUICK, SECOND, Size, plan
from idiograph.study.prepare import Portions, prepare_pack
from idiograph.study.remote import Means, perform_run
from idiograph.study.report import Account, write_study_report
from idiograph.study.results import Store
from idiograph.study.sections import Material, chapters
from idiograph.study.tables.composition import counts_of

STAGES = ("mine", "pack", "models", "report")
BUILT_IN = ("anthology", "synth")
QUICK_PORTIONS = Portions(200, (2, 4), 36, 90, (20, 60), (2, 4), 128)
QUICK_MINING: dict[str, Any] = {"sentences": (2, 4), "fractions": (0.5, 0.15, 0.35), "per_document": 4}
MINING: dict[str, Any] = {"sentences": (2, 4, 6, 8, 10), "rule": ("base", "unrestricted", "ict")}
ENTROPY_DOCUMENTS, FIELDS = 2000, 13  # of a corpus that are looked at


@dataclass(frozen=True)
class StudyRequest:
    """What is asked of a study."""

    recipe: Recipe
    backbones: Mapping[str, str]  # name → folder or hub name
    quick: bool = False
    steps: int | None = None
    stages: tuple[str, ...] = STAGES
    device: str = "auto"
    workers: int = 0
    budget: float = float("inf")
    commands: tuple[str, ...] = ()
    version: str = ""
    problems: Mapping[str, Problems] = field(default_factory=dict)  # by language
    sizes: Size | None = None  # how many models; by `quick` if not given
    portions: Portions | None = None
    semantic: Mapping[str, str] = field(default_factory=dict)  # a model of meaning, or a file of vectors

    def __post_init__(self) -> None:
        for stage in self.stages:
            if stage not in STAGES:
                raise SpecError(unknown_choice("stage", stage, STAGES))

    @property
    def size(self) -> Size:
        size = self.sizes or (QUICK if self.quick else Size())
        return size if self.steps is None else replace(size, steps=self.steps)

    @property
    def share(self) -> Portions:
        """How much of the texts is used."""
        return self.portions or (QUICK_PORTIONS if self.quick else Portions())

    @property
    def second(self) -> Size:
        return self.size if self.quick or self.sizes else replace(SECOND, steps=self.size.steps)


@dataclass(frozen=True)
class Study:
    """What a study left behind."""

    page: Path
    claims: int
    runs: int
    counts: Mapping[str, Any] = field(default_factory=dict)


def run_study(
    sources: Sequence[str], out: Path, wanted: StudyRequest, progress: Progress | None = None
) -> Study | None:
    """Run the stages that are wanted; returns the report if it is one of them. A source is a corpus folder, a folder of
    triplets, or `anthology`."""
    tell = progress or (lambda done, total, what: None)  # noqa: ARG005
    with locked_folder(out):
        (out / MANIFEST).unlink(missing_ok=True)
        folders = {source_name(source): source_triplets(source, out, wanted, tell) for source in sources}
        if "pack" in wanted.stages and not (out / "pack" / LISTING).is_file():
            make_pack(folders, out, wanted, tell)
        if "models" in wanted.stages:
            run_models(out, wanted, tell)
        return write_reports(folders, out, wanted, tell) if "report" in wanted.stages else None


def source_name(source: str) -> str:
    """How a source is called in tables: by its folder, or by what comes before a colon."""
    return Path(source.partition(":")[0]).name


def source_triplets(source: str, out: Path, wanted: StudyRequest, tell: Progress) -> Path:
    """The triplets of a source: mined now, mined before, or given."""
    if any(Path(source).glob("base-*/*.parquet")):
        return Path(source)
    folder = out / "triplets" / source_name(source)
    if not (folder / MANIFEST).is_file():
        if "mine" not in wanted.stages:
            raise InputError(f"'{folder}' is not there yet; run the study with --stage mine first")
        mine_source(open_source(source, out), folder, wanted, tell)
    return folder


def open_source(source: str, out: Path) -> Corpus:
    """A corpus folder, or a built-in corpus, built beside the study."""
    if not source.startswith(BUILT_IN):
        return Corpus(Path(source))
    folder = out / "corpus" / source_name(source)
    if not (folder / MANIFEST).is_file():
        shutil.rmtree(folder, ignore_errors=True)
        build_corpus(read_documents(source), folder, inputs={"source": source})
    return Corpus(folder)


def mine_source(corpus: Corpus, folder: Path, wanted: StudyRequest, tell: Progress) -> None:
    changes = MINING | (QUICK_MINING if wanted.quick else {})
    chosen = wanted.recipe.mine.model_copy(update=changes)
    mine_triplets(corpus, chosen, folder, overwrite=True, progress=tell)
    tell(0, None, "counting")
    write_json(folder.parent / f"{folder.name}.entropy.json", entropy_of(corpus))


def entropy_of(corpus: Corpus, documents: int = ENTROPY_DOCUMENTS) -> dict[str, dict[str, float]]:
    """Bits of three characters in a row and of words, by field; the fields with most texts."""
    found = corpus_statistics(document for _, document in zip(range(documents), corpus, strict=False))
    fields = list(found.domains)[:FIELDS]
    bits = {"three characters": found.trigram_entropy, "words": found.word_entropy}
    return {kind: {name: by[name].corrected for name in fields if name in by} for kind, by in bits.items()}


def make_pack(folders: Mapping[str, Path], out: Path, wanted: StudyRequest, tell: Progress) -> None:
    preset = wanted.recipe.preset
    runs = plan(list(wanted.backbones), wanted.size, wanted.second, preset, list(wanted.semantic))
    shutil.rmtree(out / "pack", ignore_errors=True)
    prepare_pack(folders, out / "pack", runs, wanted.share, preset=preset, problems=wanted.problems, progress=tell)


def run_models(out: Path, wanted: StudyRequest, tell: Progress) -> None:
    means = Means({**wanted.backbones, **wanted.semantic}, wanted.workers, wanted.device, wanted.budget)
    _, failed = perform_run(Pack.open(out / "pack"), out / "runs", means, tell)
    if failed:
        raise InputError(f"{failed} runs failed; run the study again to go on with them")


def write_reports(folders: Mapping[str, Path], out: Path, wanted: StudyRequest, tell: Progress) -> Study:
    tell(0, None, "writing the report")
    pack = Pack.open(out / "pack")
    found = StudyOutcomes(Store(out / "runs"), pack.benches, pack.valid, pack.main)
    if not found.outcomes:
        raise InputError(f"no model has been trained in '{out}' yet; run the study with --stage models first")
    counts = {name: counts_of(folder) for name, folder in folders.items()}
    tokens = 128 if wanted.quick else 512
    sections = chapters(Material(found, pack.problems, counts, entropies(folders), tokens))
    made = all_claims(found)
    page = write_study_report(out, sections, made, account(found, wanted, pack))
    tables = sum(len(section.tables) for section in sections)
    summary = {"runs": len(found.outcomes), "tables": tables, "claims": len(made)}
    seal(out, Manifest("study", {"preset": wanted.recipe.preset, "quick": wanted.quick}, {}, summary))
    return Study(page, len(made), len(found.outcomes), summary)


def entropies(folders: Mapping[str, Path]) -> dict[str, dict[str, float]]:
    """Kind → field → bits, of every corpus that was mined here."""
    merged: dict[str, dict[str, float]] = {}
    for name, folder in folders.items():
        path = folder.parent / f"{folder.name}.entropy.json"
        if path.is_file():
            for kind, values in json.loads(path.read_text(encoding="utf-8")).items():
                merged.setdefault(kind, {}).update({f"{name} {field}": bits for field, bits in values.items()})
    return merged


def account(found: StudyOutcomes, wanted: StudyRequest, pack: Pack) -> Account:
    """How every number came about."""
    runs = []
    for outcome in found.outcomes:
        run, about = outcome.run, outcome.about
        runs.append(
            {
                "name": run.name, "stage": run.stage, "seed": run.seed, "lr": run.lr,
                "steps": about.get("steps", 0), "batch": run.batch if about.get("steps") else 0,
                "negatives": round(about.get("negatives", 0), 1), "tau": round(about.get("tau", 0), 4),
                "seconds": round(about["seconds"], 1), "device": about["device"],
            }
        )  # fmt: skip
    names = tuple(wanted.backbones) or tuple(found.backbones)
    corpora = tuple(found.corpora)
    about = (wanted.recipe.preset, wanted.quick, wanted.commands, corpora, names, tuple(runs))
    planned = {run.name for run in pack.runs}
    done = len(planned & {outcome.run.name for outcome in found.outcomes})
    return Account(*about, len(planned), done, wanted.version)
