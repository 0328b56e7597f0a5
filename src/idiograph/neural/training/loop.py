"""The training loop: a model, batches, a recipe. Folders are the business of `idiograph.neural.training.train`.

The losses are sentence-transformers losses, and run in its trainer too. The loop is our own, because the library's trainer
neither saves nor shares among devices what a loss has learned (here the temperature), and so could not resume exactly.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from idiograph.errors import ArtifactError, ModelError, SpecError
from idiograph.neural.layers import Centering
from idiograph.neural.reader import PatchReader
from idiograph.neural.training import checkpoint
from idiograph.neural.training.batches import Batches, TrainingBatch
from idiograph.neural.training.boundaries import boundary_of, cool_boundaries
from idiograph.neural.training.distributed import average_gradients, broadcast, mean_of_all, process_rank, total_of
from idiograph.neural.training.loss import CachedContrastive, Contrastive, Objective
from idiograph.neural.training.optimize import (
    Shadow,
    State,
    blend_with_base,
    freeze,
    parameter_groups,
    schedule,
    snapshot,
)
from idiograph.neural.training.validate import Probe, examine
from idiograph.recipe import TrainRecipe
from idiograph.runner import Progress

Log = Callable[[int, Mapping[str, float]], None]


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What came of a run. The model holds the best weights when it ends, or the last ones if nothing was validated."""

    steps: int
    best_step: int
    measures: Mapping[str, float]  # of the weights that the model holds now
    last: State
    negatives: float  # per anchor, false ones not counted
    tau: float
    tokens: int
    seconds: float
    precision: str
    history: tuple[Mapping[str, float], ...]
    left_out: int = 0  # rows that were not trained on, because they are held out elsewhere


def fit_model(
    model: Any,
    batches: Batches,
    recipe: TrainRecipe,
    *,
    probes: Mapping[str, Probe] | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
    log: Log | None = None,
) -> Result:
    """Train a MultiVectorEncoder in place, on the device that it is on.

    With a `folder`, the run leaves checkpoints there and goes on from the last one if it finds one. In a distributed run
    every process calls this with its own part of the batches.
    """
    run = TrainingRun(model, batches, recipe, probes or {}, folder, log)
    run.begin()
    run.meter.start()
    for batch in run.remaining():
        run.step(batch)
        run.after()
        if progress and process_rank() == 0:
            progress(run.meter.done, run.total, run.status)
    return run.finish()


class TrainingRun:
    """One training run: everything that a checkpoint has to hold."""

    def __init__(
        self,
        model: Any,
        batches: Batches,
        recipe: TrainRecipe,
        probes: Mapping[str, Probe],
        folder: Path | None = None,
        log: Log | None = None,
    ) -> None:
        check_training_settings(recipe)
        self.model, self.batches, self.recipe = model, batches, recipe
        self.probes, self.folder, self.log = probes, folder, log
        self.total = run_length(recipe, len(batches))
        self.precision = choose_precision(recipe, model.device)
        self.base = snapshot(model, "cpu") if recipe.average_with_base else {}
        freeze(model, recipe.freeze_layers)
        self.objective = Objective(recipe).to(model.device)
        self.loss = make_loss(model, self.objective, recipe)
        self.optimizer = make_optimizer(model, self.objective, recipe)
        self.rates = [group["lr"] for group in self.optimizer.param_groups]
        self.share = schedule(recipe.schedule, recipe.warmup, self.total)
        self.scaler = torch.amp.GradScaler(model.device.type, enabled=self.precision == "fp16")
        self.shadow = Shadow(model, recipe.ema)
        self.centering = [module for module in model.modules() if isinstance(module, Centering)]
        self.meter = ThroughputMeter(self.total)
        self.best_step, self.best, self.best_state = 0, {}, State()
        self.history: list[dict[str, float]] = []
        self.status = ""

    def begin(self) -> None:
        """Go on from the checkpoint of the folder, or begin: seed the chance, and see how good the model is untrained."""
        state = checkpoint.find_checkpoint(self.folder)
        if state is not None:
            self.restore(state)
            return
        torch.manual_seed(self.recipe.seed + process_rank())
        if self.probes:
            self.validate()

    def remaining(self) -> Iterator[list[TrainingBatch]]:
        """The batches of the steps that are still to do, each in its parts."""
        parts = self.recipe.accumulate
        found = self.batches.run(self.meter.done * parts, self.total * parts)
        for _ in range(self.meter.done, self.total):
            yield [next(found).to(self.model.device) for _ in range(parts)]

    def step(self, batch: list[TrainingBatch]) -> None:
        """One step of the optimizer."""
        self.model.train()
        cool_boundaries(self.model, self.meter.done / self.total)
        for group, rate in zip(self.optimizer.param_groups, self.rates, strict=True):
            group["lr"] = rate * self.share(self.meter.done)
        whole = torch.zeros((), device=self.model.device)
        for part in batch:
            with self.autocast():
                self.objective.teacher_scores = part.teacher_scores
                loss = self.loss(part.columns, part.labels)
            self.scaler.scale(loss).backward()
            whole += loss.detach()
        self.update()
        self.meter.stop(whole, self.objective.negatives, sum(part.tokens for part in batch))

    def update(self) -> None:
        """Move the weights along the gradient that has come together, and what follows them."""
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        average_gradients(parameters)
        if self.recipe.clip:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(parameters, self.recipe.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        for module in self.centering:
            module.settle(mean_of_all)
        self.shadow.update()

    def autocast(self) -> AbstractContextManager[Any]:
        kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(self.precision)
        return nullcontext() if kind is None else torch.autocast(self.model.device.type, kind)

    def after(self) -> None:
        """What is due after a step: to log, to validate, to save."""
        if self.due(self.recipe.log_every) or self.due(self.recipe.save_every):  # a checkpoint forgets no reading
            self.note(self.read_meter())
        if self.probes and self.due(self.recipe.validate_every):
            self.validate()
            self.meter.start()
        if self.due(self.recipe.save_every):
            self.save()
            self.meter.start()

    def due(self, every: int | str) -> bool:
        done = self.meter.done
        if every == "log":
            return done in validation_steps(self.total)
        interval = max(self.total // 10, 1) if isinstance(every, str) else every
        return done % interval == 0 or done == self.total

    def read_meter(self) -> dict[str, float]:
        loss, negatives = self.meter.read(round(total_of(self.meter.fresh(), self.model.device)), mean_of_all)
        if not math.isfinite(loss):
            raise ModelError(
                f"the loss is {loss} at step {self.meter.done}; lower the rate (lr), or use precision 'bf16'"
            )
        self.status = f"loss {loss:.3f}, {self.meter.speed:,.0f} tokens/s, {self.meter.left} left"
        rate = self.rates[0] * self.share(self.meter.done - 1)
        tau = self.objective.tau.item()
        return {"loss": loss, "lr": rate, "tau": tau, "negatives": negatives, "tokens/s": self.meter.speed}

    def note(self, values: Mapping[str, float]) -> None:
        self.history.append({"step": self.meter.done, **values})
        if self.log and process_rank() == 0:
            self.log(self.meter.done, values)

    def validate(self) -> None:
        """Read the probes on the first device, and remember the weights if they are the best so far."""
        with self.shadow.with_averages():
            found = self.examine()
            if found["score"] > self.best.get("score", -math.inf):
                self.best, self.best_step, self.best_state = found, self.meter.done, snapshot(self.model, "cpu")
                if self.folder is not None and process_rank() == 0:
                    checkpoint.save_checkpoint(self.folder / checkpoint.BEST, self.best_state)
        self.note(found)

    def examine(self) -> dict[str, float]:
        reader = PatchReader(self.model, self.batches.prompt, self.recipe.max_length, self.autocast)
        mean = self.recipe.score == "meansim"
        return broadcast(examine(reader, self.probes, mean) if process_rank() == 0 else {})

    def save(self) -> None:
        if self.folder is None:
            return
        chance = checkpoint.random_states()
        if process_rank() == 0:
            parts = {
                "model": self.model,
                "objective": self.objective,
                "optimizer": self.optimizer,
                "scaler": self.scaler,
            }
            state = {name: part.state_dict() for name, part in parts.items()}
            state |= {
                "settings": checkpoint.plain_settings(self.recipe),
                "shadow": self.shadow.state,
                "chance": chance,
            }
            state |= {"best": {"step": self.best_step, "measures": self.best}, "history": self.history}
            state |= {"meter": self.meter.state()}
            checkpoint.save_checkpoint(self.folder / checkpoint.STATE, state)

    def restore(self, state: Mapping[str, Any]) -> None:
        assert self.folder is not None
        checkpoint.check_same_settings(self.recipe, state["settings"], self.folder)
        if (before := len(state["chance"])) != self.batches.world:
            raise ArtifactError(f"the run was begun on {before} devices; it cannot go on with {self.batches.world}")
        for part in ("model", "objective", "optimizer", "scaler"):
            getattr(self, part).load_state_dict(state[part])
        self.shadow.state = {name: value.to(self.model.device) for name, value in state["shadow"].items()}
        self.best_step, self.best = state["best"]["step"], state["best"]["measures"]
        self.best_state = checkpoint.load_checkpoint(self.folder / checkpoint.BEST) if self.best else {}
        self.history = state["history"]
        self.meter.restore(*state["meter"])
        checkpoint.restore_random_state(state["chance"][process_rank()])

    def finish(self) -> Result:
        """Leave the best weights in the model, moved back towards the base if that was asked for."""
        share = self.recipe.average_with_base
        with self.shadow.with_averages():
            last = snapshot(self.model, "cpu")
        measures = self.best
        blend_with_base(last, self.base, share)
        self.model.load_state_dict(self.best_state or last)
        if share and self.best_state:
            blend_with_base(self.model.state_dict(), self.base, share)
            measures = self.examine()
            self.note(measures)
        self.model.eval()
        best, negatives = self.best_step if self.best else self.total, self.meter.negatives / self.total
        counts = negatives, self.objective.tau.item(), self.meter.tokens, self.meter.seconds
        return Result(self.total, best, measures, last, *counts, self.precision, tuple(self.history))


def check_training_settings(recipe: TrainRecipe) -> None:
    """Refuse settings that no run can have together."""
    if recipe.chunk and recipe.precision == "fp16":
        raise SpecError("precision 'fp16' loses small gradients where texts are encoded in chunks; use 'bf16'")
    if recipe.adapters and recipe.average_with_base:
        raise SpecError("adapters leave the base as it is, so there is nothing to average; set average_with_base to 0")


def run_length(recipe: TrainRecipe, batches: int) -> int:
    """Optimizer steps of a run over epochs of `batches` batches."""
    return max(math.ceil(recipe.epochs * batches / recipe.accumulate), 1) if recipe.steps == "auto" else recipe.steps


def choose_precision(recipe: TrainRecipe, device: torch.device) -> str:
    """What `auto` means here. Half precision without a GPU is refused, as it would be slow and wrong."""
    if recipe.precision == "auto":
        return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"
    if recipe.precision == "fp16" and device.type == "cpu":
        raise SpecError("precision 'fp16' needs a GPU; use 'fp32' here")
    return recipe.precision


def validation_steps(total: int, first: int = 10, growth: float = 1.5, widest: int = 1000) -> set[int]:
    """Steps that lie ever further apart: most is learned early. The published spacing, and the last step."""
    steps, at = {total}, float(first)
    while at < total:
        steps.add(int(at))
        at = min(at * growth, at + widest)
    return steps


def make_loss(model: Any, objective: Objective, recipe: TrainRecipe) -> nn.Module:
    share = 1 / recipe.accumulate
    if not recipe.chunk:
        return Contrastive(model, objective, share)
    if boundary_of(model) is not None:
        raise SpecError(
            "learned boundaries cannot be trained in chunks; set chunk to 0, or choose another patch policy"
        )
    return CachedContrastive(model, objective, recipe.chunk, share)


def make_optimizer(model: Any, objective: Objective, recipe: TrainRecipe) -> torch.optim.Optimizer:
    head = recipe.lr if recipe.head_lr == "auto" else recipe.head_lr
    decays = recipe.weight_decay, recipe.layer_decay, recipe.decay_all
    groups = parameter_groups(model, dict(objective.named_parameters()), recipe.lr, head, *decays)
    return torch.optim.AdamW(groups, fused=model.device.type == "cuda")


class ThroughputMeter:
    """Counts what a run has gone through; what is done between steps, such as validation, takes no time here."""

    def __init__(self, steps: int) -> None:
        self.steps, self.done, self.first = steps, 0, 0
        self.tokens, self.seconds, self.negatives = 0, 0.0, 0.0  # of the whole run
        self.here = 0.0  # seconds since this process began
        self.speed = 0.0  # tokens a second, over the last few steps
        self._steps: list[Tensor] = []  # loss and negatives per anchor
        self._tokens, self._since, self._clock = 0, 0.0, 0.0

    def state(self) -> list[float]:
        return [self.done, self.tokens, self.seconds, self.negatives]

    def restore(self, done: int, tokens: int, seconds: float, negatives: float) -> None:
        """Go on from where an earlier process stopped."""
        self.done = self.first = done
        self.tokens, self.seconds, self.negatives = tokens, seconds, negatives

    def start(self) -> None:
        """Let time pass uncounted until now."""
        self._clock = time.monotonic()

    def _lap(self) -> None:
        now = time.monotonic()
        took, self._clock = now - self._clock, now
        self.seconds, self.here, self._since = self.seconds + took, self.here + took, self._since + took

    def stop(self, loss: Tensor, negatives: Tensor, tokens: int) -> None:
        """A step is over. Nothing is asked of the GPU here: it would have to wait."""
        self._lap()
        self._steps.append(torch.stack([loss, negatives.to(loss)]))
        self._tokens += tokens
        self.done += 1

    def fresh(self) -> int:
        """Tokens of this device since the last reading."""
        return self._tokens

    def read(self, tokens: int, share: Callable[[Tensor], Tensor]) -> tuple[float, float]:
        """Loss and negatives per anchor, the means since the last reading and over all devices, by `share`; all of them
        together saw `tokens` tokens."""
        loss, negatives = share(torch.stack(self._steps).float().mean(dim=0)).tolist()  # here the GPU is waited for
        self._lap()
        self.tokens += tokens
        self.negatives += negatives * len(self._steps)
        self.speed = tokens / max(self._since, 1e-9)
        self._steps, self._tokens, self._since = [], 0, 0.0
        return loss, negatives

    @property
    def left(self) -> str:
        """The time that is still needed, as h:mm:ss."""
        each = self.here / max(self.done - self.first, 1)
        seconds = round(each * (self.steps - self.done))
        return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
