"""Progress of a command, drawn on one line of stderr when that is a terminal."""

import sys
import time

from engine.core.progress import Progress, ProgressCallback, ignore_progress

SECONDS_BETWEEN_LINES = 0.1


def progress_callback() -> ProgressCallback:
    """Return a callback that redraws one stderr line, or does nothing if stderr is no terminal."""
    if not sys.stderr.isatty():
        return ignore_progress
    last = 0.0

    def show(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < SECONDS_BETWEEN_LINES and progress.fraction != 1.0:
            return
        last = now
        parts = [progress.sentence]
        if progress.fraction is not None:
            parts.append(f"{progress.fraction:.0%}")
        if progress.relative_gap is not None:
            parts.append(f"relative gap {progress.relative_gap:.1e}")
        if progress.seconds_left is not None:
            parts.append(f"{progress.seconds_left:.0f} s left")
        end = "\n" if progress.fraction == 1.0 else ""
        print("\r\x1b[2K" + " · ".join(parts), end=end, file=sys.stderr, flush=True)

    return show


def say_compiling() -> None:
    """Say on stderr that time passes which belongs to the first use, not to the work."""
    print("\r\x1b[2KCompiling (first use) ...", end="", file=sys.stderr, flush=True)
