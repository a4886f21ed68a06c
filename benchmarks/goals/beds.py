"""Beds first: who is placed after 10, 40 and 120 processor seconds of a whole housing year.

    python -m benchmarks goals beds [--students 2500] [--seconds 10 40 120] [--seed 0]

Hall choices, needs, designations and requests together. The aim is that as many people as can have
a bed have one, those with needs before all others, from the first limit on, and that no later limit
leaves out more. The score only grows.
"""

import argparse
import time

import numpy as np

from benchmarks.common.reporting import print_machine, print_table
from benchmarks.peers.room_problems import housing_year, triples
from engine.rooms.placement import place_in_rooms


def main() -> None:
    """Place under every limit and print who has a bed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--students", type=int, default=2500)
    parser.add_argument("--seconds", type=float, nargs="+", default=[10.0, 40.0, 120.0])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    small = triples(12)
    place_in_rooms(small.scores, small.rooms, max_seconds=None)  # compiles
    case = housing_year(args.students, args.seed)
    needy = {need.student for need in case.rules.needs}
    print_machine()
    rows, is_fine, before = [], True, -np.inf
    for seconds in args.seconds:
        complete: list[float] = []
        started = time.thread_time()

        def note(_: object, started: float = started, complete: list[float] = complete) -> None:
            complete.append(time.thread_time() - started)

        found = place_in_rooms(
            case.scores,
            case.rooms,
            case.rules,
            attributes=case.attributes,
            allow_unplaced=True,
            max_seconds=seconds,
            on_progress=note,
        )
        spent = time.thread_time() - started
        n_placed = case.n - len(found.unplaced)
        n_needs = len(needy.difference(found.unplaced))
        is_fine &= n_placed == found.most_placed and n_needs == found.most_with_needs
        is_fine &= found.weight >= before - 1e-6
        before = found.weight
        shown = [f"{n_placed:,} of {found.most_placed:,}", f"{n_needs} of {found.most_with_needs}"]
        times = [f"{complete[0]:.1f}", f"{spent:.1f}"]
        rows.append(
            [f"{seconds:g}", *shown, *times, f"{found.weight:.1f}", f"{found.upper_bound:.1f}"]
        )
    header = ["limit s", "placed", "with needs", "first s", "cpu s", "weight", "bound"]
    print_table(f"Beds of {case.n:,} students", header, rows)
    if not is_fine:
        raise SystemExit("Somebody who can have a bed has none, or more time made it worse.")


if __name__ == "__main__":
    main()
