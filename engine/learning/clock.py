"""The time of one learning run: from the first second, reading included."""

from dataclasses import dataclass, field
from time import perf_counter

from engine.core.progress import Progress, ProgressCallback


@dataclass(slots=True)
class Clock:
    """Counts the seconds from the first, reading included, and reports what is left of them."""

    on_progress: ProgressCallback
    max_seconds: float | None
    started: float = field(default_factory=perf_counter)

    @property
    def seconds(self) -> float:
        """Seconds since learning began."""
        return perf_counter() - self.started

    @property
    def left(self) -> float | None:
        """Seconds until the limit, 0 beyond it; None without one."""
        return None if self.max_seconds is None else max(self.max_seconds - self.seconds, 0.0)

    def report(self, sentence: str, fraction: float) -> None:
        """Say what is done next, and which share of the work is behind."""
        seconds = self.seconds
        left = seconds / fraction * (1 - fraction) if fraction > 0 else None
        self.on_progress(Progress(sentence, fraction=fraction, seconds=seconds, seconds_left=left))
