"""Where the course of a run is shown besides the terminal: TensorBoard, Weights & Biases, trackio."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from idiograph.errors import ModelError, SpecError
from idiograph.spec import unknown_choice

Log = Callable[[int, Mapping[str, float]], None]
Settings = Mapping[str, Any]


@contextmanager
def tensorboard(folder: Path, settings: Settings) -> Iterator[Log]:
    """Event files in the folder, for `tensorboard --logdir`."""
    writer = import_module("torch.utils.tensorboard").SummaryWriter(str(folder / "tensorboard"))
    writer.add_text("settings", "\n".join(f"    {key} = {value!r}" for key, value in settings.items()))

    def log(step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    try:
        yield log
    finally:
        writer.close()


@contextmanager
def hosted_reporter(service: str, folder: Path, settings: Settings) -> Iterator[Log]:
    """A service with the interface of W&B: init, log, finish."""
    module = import_module(service)
    module.init(project="idiograph", name=folder.name, config=dict(settings))
    try:
        yield lambda step, values: module.log(dict(values), step=step)
    finally:
        module.finish()


REPORTERS: dict[str, Callable[[Path, Settings], Any]] = {
    "tensorboard": tensorboard,
    "trackio": lambda folder, settings: hosted_reporter("trackio", folder, settings),
    "wandb": lambda folder, settings: hosted_reporter("wandb", folder, settings),
}


def check_reporters(names: Sequence[str]) -> None:
    """Refuse a reporter that does not exist or is not installed, before a run begins."""
    for name in names:
        if name not in REPORTERS:
            raise SpecError(unknown_choice("reporter", name, REPORTERS))
        try:
            import_module(name)
        except ImportError as error:
            raise ModelError(f"reporter '{name}' is not installed; install it: pip install {name}") from error


@contextmanager
def reporting(names: Sequence[str], folder: Path, settings: Settings) -> Iterator[Log]:
    """One function that tells all of them; with no names it tells nobody."""
    check_reporters(names)
    with ExitStack() as stack:
        logs: list[Log] = [stack.enter_context(REPORTERS[name](folder, settings)) for name in names]

        def log(step: int, values: Mapping[str, float]) -> None:
            for one in logs:
                one(step, values)

        yield log
