"""What every experiment shares: where results go, how tables look, which machine this is."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
REAL_DATA = ROOT.parent / "shared" / "data"


OURS = "bethe-hall"


def machine_facts(packages: Sequence[str] = ()) -> dict[str, Any]:
    """Return the machine and the versions that a figure depends on; None for what is absent."""
    versions: dict[str, str | None] = {}
    for name in ("numpy", "scipy", "numba", *packages):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = None
    return {
        "machine": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
    }


def print_machine(packages: Sequence[str] = ()) -> None:
    """Print the machine and the versions that a figure depends on."""
    facts = machine_facts(packages)
    versions = ", ".join(f"{name} {found or 'absent'}" for name, found in facts["versions"].items())
    print(f"{facts['machine']}, {facts['cores']} cores, Python {facts['python']}, {versions}")


@dataclass(frozen=True, slots=True)
class PeerRow:
    """One solver on one case: seconds, what it says of the optimum, and its distance from ours."""

    case: str
    size: int
    solver: str
    seconds: float
    ratio: float | None
    difference: float | None
    remark: str = ""


@dataclass(slots=True)
class PeerTable:
    """Our answer beside every public peer's, one line each; kept as JSON with the machine.

    Parameters
    ----------
    oracle : str, what is solved; the name of the file.
    packages : sequence of str, distributions of the peers.
    agreement : float, relative difference of values up to which a time counts.
    """

    oracle: str
    packages: Sequence[str]
    agreement: float = 1e-9
    rows: list[PeerRow] = field(default_factory=list)
    _ours: tuple[float, float] = (1.0, 1.0)

    def put_ours(self, case: str, size: int, seconds: float, value: float) -> None:
        """Note our own answer of a case, with which those that follow are compared."""
        self._ours = (seconds, value)
        self.rows.append(PeerRow(case, size, OURS, seconds, 1.0, 0.0))

    def put(
        self,
        case: str,
        size: int,
        solver: str,
        seconds: float,
        value: float,
        *,
        remark: str = "",
        agreement: float | None = None,
    ) -> None:
        """Note a peer's answer; the time of one that disagrees is not compared.

        With a ``remark``, such as that the value is only a bound, any difference is allowed.
        """
        own_seconds, own_value = self._ours
        if not isfinite(value):
            self.rows.append(PeerRow(case, size, solver, seconds, None, None, "no answer"))
            return
        difference = (value - own_value) / max(abs(own_value), 1.0)
        limit = self.agreement if agreement is None else agreement
        agrees = bool(remark) or abs(difference) <= limit
        ratio = seconds / own_seconds if agrees else None
        remark = remark if agrees else "disagrees"
        self.rows.append(PeerRow(case, size, solver, seconds, ratio, difference, remark))

    def finish(self, folder: Path = RESULTS) -> Path:
        """Print the table, and keep it beside the machine and the versions."""
        print_machine(self.packages)
        lines = [list(asdict(row).values()) for row in self.rows]
        names = ["case", "size", "solver", "seconds", "theirs / ours", "difference", "remark"]
        print_table(self.oracle, names, lines)
        kept = machine_facts(self.packages) | {
            "oracle": self.oracle,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "rows": [asdict(row) for row in self.rows],
        }
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"peers-{self.oracle.replace(' ', '-')}.json"
        path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        print(f"kept: {os.path.relpath(path, ROOT)}")
        return path


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
