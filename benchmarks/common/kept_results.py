"""Results kept as they come: a long run that was interrupted goes on where it stopped."""

import csv
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, Any]


class KeptResults:
    """Named results in a folder, all made with the same settings.

    Ends the program with a sentence if the folder holds results of other settings: they are
    neither mixed with new ones nor lost.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self._folder = folder / "kept"
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / "settings.json"
        ours = json.dumps(settings, indent=1, sort_keys=True, default=str)
        if not path.exists():
            path.write_text(ours, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != ours:
            raise SystemExit(
                f"{folder} holds results of other settings (see {path}). "
                "Choose another folder with --out, or delete this one."
            )

    def remember(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """Return the arrays kept under this name; make and keep them if there are none."""
        path = self._folder / f"{name}.npz"
        if not path.exists():
            part = path.with_suffix(".part")
            with open(part, "wb") as file:
                np.savez(file, **make())
            os.replace(part, path)  # readers see a whole file or none
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows that have the same keys, the first row's keys as the header."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
