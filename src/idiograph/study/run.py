"""The study from a corpus to a report, stage by stage. A stage that is done is not done again; a stopped one goes on.

mine     corpus → triplets, by the preset's rules
pack     triplets → `plan.json`: which models, which texts they learn from and which they are measured on
models   train and read every model of the plan; a file in `runs/` for each, and those that have theirs are left out
report   tables, figures and claims
"""

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from idiograph.corpus.corpus import Corpus, build_corpus
from idiograph.corpus.readers import read_documents
from idiograph.corpus.stats import corpus_statistics
from idiograph.errors import InputError, SpecError
from idiograph.evaluate.problems import problems_by_language
from idiograph.mining.mine import mine_triplets
from idiograph.recipe import Recipe
from idiograph.runner import Failure, Progress, Workers
from idiograph.spec import unknown_choice
from idiograph.store import MANIFEST, Manifest, locked_folder, seal, write_json
from idiograph.study.claims import all_claims
from idiograph.study.outcomes import RunOutcome, StudyOutcomes, outcome_file, read_outcomes, write_outcome
from idiograph.study.plan import (
    PLAN,
    QUICK,
    SECOND,
    UNTRAINED,
    Portions,
    Size,
    StudyPlan,
    StudyRun,
    StudyTexts,
    fingerprints_of,
    never_planned,
    plan_runs,
    read_plan,
    share_texts,
    write_plan,
)  # fmt: skip
from idiograph.study.report import Account, write_study_report
from idiograph.study.sections import Material, chapters
from idiograph.study.tables.composition import counts_of

STAGES = ("mine", "pack", "models", "report")
BUILT_IN = ("anthology", "synth")
QUICK_PORTIONS = Portions(200, (2, 4), 36, 90, (20, 60), (2, 4), 128)
QUICK_MINING: dict[str, Any] = {"sentences": (2, 4), "fractions": (0.5, 0.15, 0.35), "per_document": 4}
MINING: dict[str, Any] = {"sentences": (2, 4, 6, 8, 10), "rule": ("base", "unrestricted", "ict")}
MAIN_SENTENCES, SEED = 4, 7  # of the spans that most tables are about; of every draw
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
    workers: Workers = field(default_factory=Workers)  # who trains the models
    budget: float = float("inf")  # seconds after which no model is begun
    commands: tuple[str, ...] = ()
    version: str = ""
    pan: Path | None = None  # attribution problems of another register
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
    if wanted.pan:
        problems_by_language(wanted.pan)  # what is wrong with them is said before anything is mined
    with locked_folder(out):
        (out / MANIFEST).unlink(missing_ok=True)
        folders = {source_name(source): source_triplets(source, out, wanted, tell) for source in sources}
        if "pack" in wanted.stages and not (out / PLAN).is_file():
            write_plan(make_plan(folders, wanted), out)
        if "models" in wanted.stages:
            run_models(folders, out, wanted, tell)
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
    statistics = corpus_statistics(document for _, document in zip(range(documents), corpus, strict=False))
    fields = list(statistics.domains)[:FIELDS]
    bits = {"three characters": statistics.trigram_entropy, "words": statistics.word_entropy}
    return {kind: {name: by[name].corrected for name in fields if name in by} for kind, by in bits.items()}


def make_plan(folders: Mapping[str, Path], wanted: StudyRequest) -> StudyPlan:
    """Which models, of what; those that would learn from triplets which no corpus has are left out."""
    preset, pan = wanted.recipe.preset, str(wanted.pan.absolute()) if wanted.pan else ""
    runs = plan_runs(list(wanted.backbones), wanted.size, wanted.second, preset, list(wanted.semantic))
    plan = StudyPlan(preset, MAIN_SENTENCES, SEED, wanted.share, fingerprints_of(folders), pan, tuple(runs))
    texts = share_texts(plan.texts(folders))
    if not texts.benchmarks:
        raise InputError("no corpus has a test split to measure on; mine a larger corpus")
    possible = [run for run in runs if run.rule == UNTRAINED or texts.training_sources(run.rule)]
    return replace(plan, runs=tuple(possible))


@dataclass(frozen=True, slots=True)
class RunWork:
    """What every run of a study is done with, in whatever process."""

    texts: StudyTexts
    runs: Path  # the folder of finished runs
    backbones: Mapping[str, str]
    device: str
    deadline: float  # seconds since the epoch


def perform_run(work: RunWork, run: StudyRun) -> str | Failure | None:
    """Do one run and write its file; returns a few words about it, what went wrong, or None if it is too late to begin."""
    from idiograph.study.measure import measure_run

    if time.time() >= work.deadline:
        return None
    try:
        outcome = measure_run(run, share_texts(work.texts), work.backbones[run.backbone], work.device)
    except Exception as error:  # one model that cannot be trained stops no other
        return Failure(run, f"{type(error).__name__}: {error}")
    write_outcome(outcome, work.runs)
    return summarize_outcome(outcome)


def summarize_outcome(outcome: RunOutcome) -> str:
    """What came of a run, in a few words."""
    values = [v[:, 0].mean() for k, v in outcome.arrays.items() if k.startswith("valid|")]
    score = f"valid R@20 {sum(values) / len(values):.4f}, " if values else ""
    return f"{score}{outcome.about['seconds']:.1f} s"


def run_models(folders: Mapping[str, Path], out: Path, wanted: StudyRequest, tell: Progress) -> None:
    """Do the runs of the plan that are not done yet and whose backbone is given."""
    plan, begun = read_plan(out), time.time()
    backbones = {**wanted.backbones, **wanted.semantic}
    folder = (out / "runs").absolute()
    runs = [run for run in plan.runs if run.backbone in backbones and not outcome_file(folder, run).is_file()]
    work = RunWork(plan.texts(folders), folder, backbones, wanted.device, begun + wanted.budget)
    failed: dict[str, str] = {}
    tell(0, len(runs), "training")
    results = wanted.workers.map(partial(perform_run, work), runs)
    for done, (run, result) in enumerate(zip(runs, results, strict=True), 1):
        if result is None:
            break
        if isinstance(result, Failure):
            failed[run.name] = result.reason
        left = (time.time() - begun) / done * (len(runs) - done)
        tell(done, len(runs), f"{run.name}: {failed.get(run.name, result)}; about {left:.0f} s left")
    if failed:
        name, reason = next(iter(failed.items()))
        raise InputError(f"{len(failed)} runs failed ({name}: {reason}); run the study again to go on with them")


def write_reports(folders: Mapping[str, Path], out: Path, wanted: StudyRequest, tell: Progress) -> Study:
    tell(0, None, "writing the report")
    plan = read_plan(out)
    texts = share_texts(plan.texts(folders))
    study = StudyOutcomes(read_outcomes(out / "runs", plan.runs), texts.benchmarks, plan.main)
    if not study.outcomes:
        raise InputError(f"no model has been trained in '{out}' yet; run the study with --stage models first")
    counts = {name: counts_of(folder) for name, folder in folders.items()}
    tokens = 128 if wanted.quick else 512
    sections = chapters(Material(study, texts.problems, counts, entropies(folders), tokens))
    claims = all_claims(study)
    page = write_study_report(out, sections, claims, account(study, wanted, plan))
    tables = sum(len(section.tables) for section in sections)
    summary = {"runs": len(study.outcomes), "tables": tables, "claims": len(claims)}
    seal(out, Manifest("study", {"preset": wanted.recipe.preset, "quick": wanted.quick}, {}, summary))
    return Study(page, len(claims), len(study.outcomes), summary)


def entropies(folders: Mapping[str, Path]) -> dict[str, dict[str, float]]:
    """Kind → field → bits, of every corpus that was mined here."""
    merged: dict[str, dict[str, float]] = {}
    for name, folder in folders.items():
        path = folder.parent / f"{folder.name}.entropy.json"
        if path.is_file():
            for kind, values in json.loads(path.read_text(encoding="utf-8")).items():
                merged.setdefault(kind, {}).update({f"{name} {field}": bits for field, bits in values.items()})
    return merged


def account(study: StudyOutcomes, wanted: StudyRequest, plan: StudyPlan) -> Account:
    """How every number came about."""
    names = tuple(wanted.backbones) or tuple(study.backbones)
    about = (wanted.recipe.preset, wanted.quick, wanted.commands, tuple(study.corpora), names)
    runs = tuple(account_of_run(outcome) for outcome in study.outcomes)
    counts = len(plan.runs), len(study.outcomes)
    return Account(*about, runs, *counts, wanted.version, never_planned(plan.runs))


def account_of_run(outcome: RunOutcome) -> dict[str, Any]:
    run, about = outcome.run, outcome.about
    return {
        "name": run.name, "stage": run.stage, "seed": run.seed, "lr": run.lr,
        "steps": about.get("steps", 0), "batch": run.batch if about.get("steps") else 0,
        "negatives": round(about.get("negatives", 0), 1), "tau": round(about.get("tau", 0), 4),
        "seconds": round(about["seconds"], 1), "device": about["device"],
    }  # fmt: skip
