"""The time of one learning run: from the first second, reading included."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

from engine.core.progress import Progress, ProgressCallback
from engine.kernels.threads import count_threads

CORE_SECONDS_A_PIXEL = 2e-5
"""Of learning from 200 pictures of 30,000 pixels; from fewer pixels trees take their own time."""

FEWEST_SECONDS = 8.0

READING_SHARE = 0.5
"""Pictures that this share of a limit did not suffice to read are left out."""

TELLING = 0.08
"""From this share of the work on, what it took so far tells what is left."""


@dataclass(slots=True)
class Clock:
    """Counts the seconds from the first, reading included, and reports what is left of them.

    ``later`` are seconds expected after the trees, which `report` counts; ``trees`` those that the
    trees took; ``shown`` the share that was reported last, which never falls.
    """

    on_progress: ProgressCallback
    max_seconds: float | None
    started: float = field(default_factory=perf_counter)
    read: float = 0.0
    expected: float | None = None
    later: float = 0.0
    trees: float = 0.0
    shown: float = 0.0

    @property
    def seconds(self) -> float:
        """Seconds since learning began."""
        return perf_counter() - self.started

    @property
    def left(self) -> float | None:
        """Seconds until the limit, 0 beyond it; None without one."""
        return None if self.max_seconds is None else max(self.max_seconds - self.seconds, 0.0)

    def passed(self) -> float:
        """Share of the time after reading that has passed, at most 1; 0 without a limit."""
        if self.max_seconds is None:
            return 0.0
        own = self.max_seconds - self.read
        return min((self.seconds - self.read) / own, 1.0) if own > 0 else 1.0

    def is_reading_over(self) -> bool:
        """Whether what is read has to do: the rest of a limit is for learning."""
        return self.passed() > READING_SHARE

    def begin(self, n_pixels: int, later: float = 0.0) -> None:
        """Say that all is read: what is left is told from now on, at first by the pixels.

        ``later`` are core seconds of work for which the fractions of `report` leave no room.
        """
        self.read = self.seconds
        self.expected = expected_seconds(n_pixels)
        self.later = later / count_threads()

    def report(self, sentence: str, fraction: float) -> None:
        """Say what is done next, and which share of the work after reading is behind."""
        seconds = self.seconds
        own = seconds - self.read
        left = own / fraction * (1 - fraction) if fraction > 0 else None
        if self.expected is not None and fraction < TELLING:
            left = max(self.expected * (1 - fraction), own * 0.1)
        if left is not None and self.later:
            self.foresee(sentence, left + self.later)
            return
        self.on_progress(Progress(sentence, fraction=fraction, seconds=seconds, seconds_left=left))

    def foresee(self, sentence: str, left: float) -> None:
        """Say what is done next, and how many seconds are left of all; the limit caps them."""
        seconds = self.seconds
        left = left if self.left is None else min(left, self.left)
        own = seconds - self.read
        self.shown = max(self.shown, own / (own + left) if own + left > 0 else 0.0)
        self.on_progress(
            Progress(sentence, fraction=self.shown, seconds=seconds, seconds_left=left)
        )


def expected_seconds(n_pixels: int) -> float:
    """Return how long trees and weights will take, from the pixels of all models: a first guess."""
    return FEWEST_SECONDS + n_pixels * CORE_SECONDS_A_PIXEL / count_threads()


@dataclass(slots=True)
class Pace:
    """Says how long the steps of comparing will take: by what is expected, then by those done.

    Parameters
    ----------
    clock : Clock, which is told
    ways, tail : core seconds expected of comparing each way, and of the steps after that
    """

    clock: Clock
    ways: Sequence[float]
    tail: Sequence[float]
    done: int = 0
    begun: float = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.clock.seconds

    def next(self, sentence: str) -> None:
        """Begin the next step."""
        work = [*self.ways, *self.tail]
        self.clock.foresee(sentence, self._slowness * sum(work[self.done :]))
        self.done += 1

    def lacks_time(self, *, n_tail: int = 2) -> bool:
        """Whether the next step and ``n_tail`` of what must follow would pass the limit."""
        n_ways = len(self.ways)
        work = sum(self.tail[max(self.done - n_ways, 0) :][:n_tail])
        work += self.ways[self.done] if self.done < n_ways else 0.0
        return self.clock.left is not None and self._slowness * work > self.clock.left

    def skip(self) -> None:
        """Leave the next way out."""
        self.ways = [*self.ways[: self.done], *self.ways[self.done + 1 :]]

    @property
    def _slowness(self) -> float:
        """Seconds that a core second has taken so far."""
        behind = sum([*self.ways, *self.tail][: self.done])
        if behind > 0:
            return (self.clock.seconds - self.begun) / behind
        return 1.0 / count_threads()
