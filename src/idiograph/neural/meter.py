"""How fast a run is, and how long it will take."""

import time
from collections.abc import Callable

import torch
from torch import Tensor


class Meter:
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
