"""What every experiment shares: where pictures go, how tables look, which machine this is."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
REAL_DATA = ROOT.parent / "shared" / "data"


def print_machine() -> None:
    """Print the machine and the versions that a figure depends on."""
    names = ("numpy", "scipy", "numba")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    print(f"{platform.machine()}, Python {platform.python_version()}, {versions}")


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table in Markdown; floats with four significant digits, None as a dash."""
    cells = [[_text(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    rule = ["-" * (width - 1) + ":" for width in widths]
    print(f"\n{title}\n")
    for row in [list(header), rule, *cells]:
        line = " | ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        print(f"| {line} |", flush=True)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def save_figure(figure: Any, name: str) -> Path:
    """Save a matplotlib figure as ``results/<name>.png``, close it and say so."""
    from matplotlib import pyplot

    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.png"
    figure.savefig(path, dpi=150, bbox_inches="tight")
    pyplot.close(figure)
    print(f"plot: {os.path.relpath(path, ROOT)}")
    return path


def new_figure(*args: Any, **kwargs: Any) -> Any:
    """Return ``(figure, axes)`` drawn without a screen."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(*args, **kwargs)
