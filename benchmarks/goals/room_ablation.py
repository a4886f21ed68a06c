"""Ablation of the room search: what each stage and heuristic gains, one left out at a time.

    python -m benchmarks goals room_ablation [--shapes mix ...] [--students 60 600]
        [--seconds 10] [--seeds 2] [--without annealing ...] [--out results/room_ablation]

Every run has the same processor seconds. The table gives, for each part left out, by how much the
worth of the placement and the bound fell short of those of the whole search, in per cent of the
worth, averaged over the cases, with the worst case; and the people left without a bed. A part whose
absence costs nothing in any case should go.
"""

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.common.kept_results import KeptResults
from benchmarks.common.reporting import print_machine, print_table
from benchmarks.peers.room_problems import SHAPES, RoomCase, triples
from engine.rooms import beds, dive, search
from engine.rooms.placement import place_in_rooms
from engine.rooms.search import Search

WHOLE = "the whole search"


def _nothing(self: Search) -> None:
    """Leave a stage out."""


def _give_up(self: Search) -> None:
    """Leave polishing out: count the dive and continue as after a vain polish."""
    course = self._course
    course.idle_steps = 0
    course.quiet = 0 if course.is_better or not course.is_optimal else course.quiet + 1
    course.target /= 2.0


def _close_nothing(self: Search) -> str:
    return "generate" if self._course.quiet < search.QUIET_DIVES else search.END


PARTS: dict[str, tuple[Any, str, Any]] = {
    "annealing": (Search, "_anneal", lambda self, start: None),
    "types of students": (Search, "_place_by_types", _nothing),
    "pairing by matching": (Search, "_pair", _nothing),
    "first exchange": (Search, "_improve_by_exchange", _nothing),
    "rounding": (Search, "_round", _nothing),
    "cuts": (Search, "_tighten", _nothing),
    "dive": (Search, "_dive", _nothing),
    "tail of the dive": (dive, "_fill_the_rest", lambda *args: None),
    "exchange after a dive": (search, "improve", lambda *args, **options: None),
    "polish": (Search, "_polish", _give_up),
    "closing": (Search, "_close", _close_nothing),
    "soft prices": (Search, "_soften", lambda self: None),
    "smoothing": (search, "SMOOTHING", 0.0),
    "dropping columns": (Search, "_drop_poor_columns", lambda self: None),
    "ejection chains": (beds, "place_by_chains", lambda *args: None),
}


@contextmanager
def without(part: str) -> Iterator[None]:
    """Leave one part of the search out."""
    if part == WHOLE:
        yield
        return
    owner, name, replacement = PARTS[part]
    with patch.object(owner, name, replacement):
        yield


def main() -> None:
    """Run every case with and without every part, and print the losses."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--students", type=int, nargs="+", default=[60, 600])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--without", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--out", type=Path, help="folder of results; a stopped run resumes from it")
    args = parser.parse_args()
    small = triples(12)
    place_in_rooms(small.scores, small.rooms, max_seconds=None)  # compiles
    kept = KeptResults(args.out, {"seconds": args.seconds}) if args.out is not None else None
    print_machine()
    found: dict[str, dict[str, dict[str, float]]] = {part: {} for part in (WHOLE, *args.without)}
    for n in args.students:
        for shape in args.shapes:
            for seed in range(args.seeds):
                case = SHAPES[shape](n - n % 6 if shape == "triples" else n - n % 2, seed)
                key = f"{shape} {n} seed {seed}"
                for part, results in found.items():
                    results[key] = _kept_run(kept, case, f"{key} without {part}", part, args)
                print(key, flush=True)
    print_losses(found)
    if args.out is not None:
        path = args.out / "room_ablation.json"
        path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _kept_run(
    kept: KeptResults | None, case: RoomCase, name: str, part: str, args: argparse.Namespace
) -> dict[str, float]:
    if kept is None:
        return run(case, part, args.seconds)
    arrays = kept.remember(name.replace(" ", "_"), lambda: run(case, part, args.seconds))
    return {key: float(value) for key, value in arrays.items()}


def run(case: RoomCase, part: str, seconds: float) -> dict[str, float]:
    """Place one case without one part of the search."""
    started = time.thread_time()
    with without(part):
        placed = place_in_rooms(
            case.scores,
            case.rooms,
            case.rules,
            attributes=case.attributes,
            allow_unplaced=True,
            gap=0.0,
            max_seconds=seconds,
        )
    return {
        "weight": placed.weight,
        "bound": placed.upper_bound,
        "unplaced": float(len(placed.unplaced)),
        "seconds": time.thread_time() - started,
    }


def print_losses(found: dict[str, dict[str, dict[str, float]]]) -> None:
    """Print what every part left out costs: in worth, in the bound, and in beds."""
    whole = found[WHOLE]
    rows = []
    for part, results in found.items():
        size = np.array([max(abs(whole[key]["weight"]), 1.0) for key in whole])
        worth = np.array([whole[key]["weight"] - results[key]["weight"] for key in whole])
        bound = np.array([results[key]["bound"] - whole[key]["bound"] for key in whole])
        beds_lost = sum(results[key]["unplaced"] - whole[key]["unplaced"] for key in whole)
        spent = sum(results[key]["seconds"] for key in whole)
        shares, bounds = 100.0 * worth / size, 100.0 * bound / size
        worst = list(whole)[int(np.argmax(shares))]
        rows.append(
            [
                part,
                f"{shares.mean():.4f}",
                f"{shares.max():.4f}",
                worst,
                f"{bounds.mean():.4f}",
                f"{bounds.max():.4f}",
                f"{beds_lost:.0f}",
                f"{spent:.0f}",
            ]
        )
    header = [
        "left out", "worth lost %", "most", "in", "bound lost %", "most", "beds lost", "cpu s",
    ]  # fmt: skip
    print_table("What each part of the room search gains", header, rows)


if __name__ == "__main__":
    main()
