"""CPU time and clock time of a run, and detection of a machine that is busy with other work."""

import time
from dataclasses import replace
from typing import Any

from django.utils.translation import gettext as _

from engine import Progress
from engine.core.progress import ProgressCallback

BUSY_SHARE = 0.6  # CPU time over clock time; below this the machine is called busy
FIRST_SECONDS = 5.0  # clock time before the first check for a busy machine


class Effort:
    """Meter of CPU and clock time, which adds a note to the progress when the machine is busy.

    Parameters
    ----------
    on_progress : callback that receives the reports.
    seconds : CPU time that the run may take.
    """

    def __init__(self, on_progress: ProgressCallback, seconds: float) -> None:
        self.seconds = float(seconds)
        self._on_progress = on_progress
        self._cpu, self._clock = time.process_time(), time.monotonic()

    @property
    def cpu_seconds(self) -> float:
        """CPU time since the start."""
        return time.process_time() - self._cpu

    @property
    def clock_seconds(self) -> float:
        """Time on the clock since the start."""
        return time.monotonic() - self._clock

    @property
    def is_busy(self) -> bool:
        """Return True if the run waits because other work takes much of the machine."""
        clock = self.clock_seconds
        return clock >= FIRST_SECONDS and self.cpu_seconds < BUSY_SHARE * clock

    def on_progress(self, progress: Progress) -> None:
        """Pass a report on, with a sentence if the machine is busy."""
        if self.is_busy:
            words = _(
                "The machine is busy: %(cpu_seconds)s s of computing in %(clock_seconds)s s."
            ) % {
                "cpu_seconds": f"{self.cpu_seconds:.0f}",
                "clock_seconds": f"{self.clock_seconds:.0f}",
            }
            progress = replace(progress, sentence=f"{progress.sentence.rstrip('.')}. {words}")
        self._on_progress(progress)

    @property
    def figures(self) -> dict[str, Any]:
        """Figures of the run that a version stores."""
        return {
            "seconds": self.cpu_seconds,
            "clock_seconds": self.clock_seconds,
            "limit": self.seconds,
            "was_busy": self.is_busy,
        }
