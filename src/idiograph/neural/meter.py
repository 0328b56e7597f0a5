"""How fast a run is, and how long it will take."""

import time

import torch
from torch import Tensor


class Meter:
    """Counts tokens and seconds of training; what is done between steps, such as validation, does not count."""

    def __init__(self, steps: int) -> None:
        self.steps, self.done, self.first = steps, 0, 0
        self.tokens, self.seconds, self.here = 0, 0.0, 0.0  # of the whole run; seconds since this process began
        self.speed = 0.0  # tokens a second, over the last few steps
        self._losses: list[Tensor] = []
        self._tokens, self._since, self._began = 0, 0.0, 0.0

    def restore(self, done: int, tokens: int, seconds: float) -> None:
        """Go on from where an earlier process stopped."""
        self.done = self.first = done
        self.tokens, self.seconds = tokens, seconds

    def start(self) -> None:
        self._began = time.monotonic()

    def stop(self, loss: Tensor, tokens: int) -> None:
        """A step is over."""
        took = time.monotonic() - self._began
        self.seconds, self.here, self._since = self.seconds + took, self.here + took, self._since + took
        self._losses.append(loss)
        self._tokens += tokens
        self.done += 1

    def fresh(self) -> int:
        """Tokens of this device since the last reading."""
        return self._tokens

    def read(self, tokens: int) -> Tensor:
        """The mean loss since the last reading, in which all devices saw `tokens` tokens."""
        loss = torch.stack(self._losses).float().mean()
        self.tokens += tokens
        self.speed = tokens / max(self._since, 1e-9)
        self._losses, self._tokens, self._since = [], 0, 0.0
        return loss

    @property
    def left(self) -> str:
        """The time that is still needed, as h:mm:ss."""
        each = self.here / max(self.done - self.first, 1)
        seconds = round(each * (self.steps - self.done))
        return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
