"""Clock of one learning run: elapsed and remaining seconds, reading included."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.core.progress import Progress, ProgressCallback
from engine.kernels.threads import count_threads
from engine.kernels.work_time import wall_seconds

CORE_SECONDS_A_PIXEL = 2e-5
"""CPU seconds per pixel, measured on 200 pictures of 30,000 pixels; trees have a minimum time."""

FEWEST_SECONDS = 8.0

READING_SHARE = 0.5
"""Share of a time limit after which no more pictures are read."""

TELLING = 0.08
"""Share of the work from which the remaining time is estimated from the time taken so far."""


@dataclass(slots=True)
class Clock:
    """Clock that counts the seconds of a run, reading included, and reports the remaining time.

    ``later`` is the expected time after the trees, which `report` adds; ``trees`` is the time that
    the trees took; ``shown`` is the last reported share, which never falls.
    """

    on_progress: ProgressCallback
    max_seconds: float | None
    started: float = field(default_factory=wall_seconds)
    read: float = 0.0
    expected: float | None = None
    later: float = 0.0
    trees: float = 0.0
    shown: float = 0.0

    @property
    def seconds(self) -> float:
        """Seconds since learning began."""
        return wall_seconds() - self.started

    @property
    def left(self) -> float | None:
        """Seconds until the limit, 0 beyond it; None without a limit."""
        return None if self.max_seconds is None else max(self.max_seconds - self.seconds, 0.0)

    def passed(self) -> float:
        """Return the share of the time after reading that has passed; 0 without a limit."""
        if self.max_seconds is None:
            return 0.0
        own = self.max_seconds - self.read
        return min((self.seconds - self.read) / own, 1.0) if own > 0 else 1.0

    def is_reading_over(self) -> bool:
        """Return True if reading must end, so that time is left for learning."""
        return self.passed() > READING_SHARE

    def begin(self, n_pixels: int, later: float = 0.0) -> None:
        """Mark the end of reading, and estimate the remaining time from the number of pixels.

        ``later`` is the CPU time, in seconds, of work that the fractions of `report` do not cover.
        """
        self.read = self.seconds
        self.expected = expected_seconds(n_pixels)
        self.later = later / count_threads()

    def report(self, sentence: str, fraction: float) -> None:
        """Report the next step, and the finished share of the work after reading."""
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
        """Report the next step, and the remaining seconds, at most those until the limit."""
        seconds = self.seconds
        left = left if self.left is None else min(left, self.left)
        own = seconds - self.read
        self.shown = max(self.shown, own / (own + left) if own + left > 0 else 0.0)
        self.on_progress(
            Progress(sentence, fraction=self.shown, seconds=seconds, seconds_left=left)
        )


def images_left_out(n_read: int) -> str:
    """Return the entry of ``left_out`` for images that time did not allow to read."""
    return f"images after the first {n_read}"


def expected_seconds(n_pixels: int) -> float:
    """Return a first estimate of the seconds for trees and weights, from the number of pixels."""
    return FEWEST_SECONDS + n_pixels * CORE_SECONDS_A_PIXEL / count_threads()


@dataclass(slots=True)
class Pace:
    """Estimator of the remaining time of a comparison, corrected by the time of finished steps.

    Parameters
    ----------
    clock : Clock, which receives the estimates
    costs : estimated CPU seconds of every step
    """

    clock: Clock
    costs: Sequence[float]
    done: int = 0
    begun: float = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.clock.seconds

    def next(self, sentence: str) -> None:
        """Report the next step and its remaining time, and count it as begun."""
        self.clock.foresee(sentence, self._slowness * sum(self.costs[self.done :]))
        self.done += 1

    @property
    def _slowness(self) -> float:
        """Elapsed seconds per estimated CPU second so far."""
        behind = sum(self.costs[: self.done])
        if behind > 0:
            return (self.clock.seconds - self.begun) / behind
        return 1.0 / count_threads()
