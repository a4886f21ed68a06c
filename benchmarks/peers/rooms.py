"""Rooms: ours beside exchange search alone, and beside the whole model given to HiGHS and CP-SAT.

    python -m benchmarks peers rooms [--shapes mix triples ...] [--students 60 2500]
        [--seconds 60] [--gap 0.002] [--out results/rooms]

Every method gets the same seconds. The whole set-partitioning model has a column for every group
in every kind of room; where there are more than two million it is not written out, and the peers
are left out with that remark. From 1,000 students on, ten of the placed are placed again with a
price for every move. Any bound below any placement ends the run with an error. Seconds are of the
processor, since other work may share the machine. With ``--out`` every case is kept as soon as it
is done, a second run goes on after it, and ``rooms.json`` holds all of them. CP-SAT is timed where
``ortools`` is installed.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec
from itertools import combinations
from math import comb
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.common.kept_results import KeptResults
from benchmarks.common.peak_memory import peak_gigabytes
from benchmarks.common.reporting import PeerTable
from benchmarks.peers.room_problems import SHAPES, RoomCase, triples
from engine.core.arguments import FloatArray, IntArray
from engine.rooms.clock import SearchClock
from engine.rooms.closing import solve_whole
from engine.rooms.columns import pad
from engine.rooms.exchange import Exchange, improve
from engine.rooms.formulation import formulate
from engine.rooms.placement import place_in_rooms
from engine.rooms.problem import RoomProblem

MOST_GROUPS = 2_000_000
PENALTY = 1e3  # nats for a student without a room
CHANGED, MOVE_COST, CHANGE_SECONDS = 10, 0.5, 10.0
CHANGES_FROM = 1000
AGREE = 1e-6

Groups = tuple[IntArray, IntArray, IntArray]


def main() -> None:
    """Run the cases and print a line for each method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--students", type=int, nargs="+", default=[60, 2500])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--gap", type=float, default=0.002)
    parser.add_argument("--out", type=Path, help="folder of results; a stopped run resumes from it")
    parser.add_argument("--peers", action="store_true", help="one table of all public peers")
    args = parser.parse_args()
    small = triples(12)
    place_in_rooms(small.scores, small.rooms, max_seconds=None)  # compiles
    print(f"{'case':<24}{'method':<22}{'weight':>12}{'bound':>12}{'gap %':>8}{'cpu s':>8}")
    kept = None
    if args.out is not None:
        kept = KeptResults(args.out, {"seconds": args.seconds, "gap": args.gap})
    results: list[Table] = []
    for n in args.students:
        for shape in args.shapes:
            size = n - n % 6 if shape == "triples" else n - n % 2
            results.extend(run_case(shape, size, args.seconds, args.gap, kept))
    print(f"peak memory {peak_gigabytes():.2f} GB")
    if args.out is not None:
        told = [table.as_dict() for table in results]
        (args.out / "rooms.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
    if args.peers:
        as_peers([table for table in results if not table.is_change], args.gap).finish()


def run_case(
    shape: str, size: int, seconds: float, gap: float, kept: KeptResults | None
) -> "list[Table]":
    """Run one case, or read what a run before kept of it."""

    def run() -> list[Table]:
        return compare(SHAPES[shape](size), seconds, gap)

    if kept is None:
        return run()
    made: list[Table] = []

    def make() -> dict[str, Any]:
        made.extend(run())
        return {"tables": np.array(json.dumps([table.as_dict() for table in made]))}

    known = json.loads(str(kept.remember(f"{shape}-{size}", make)["tables"]))
    return made or [Table.read(fields) for fields in known]


def as_peers(results: "list[Table]", gap: float) -> PeerTable:
    """One table of all cases; a method that did not close its gap says so."""
    table = PeerTable("rooms", ("highspy", "ortools"))
    for result in results:
        table.put_ours(result.case, result.size, result.seconds["ours"], result.weights["ours"])
        for method in list(result.weights)[1:]:
            weight, bound = result.weights[method], result.bounds[method]
            is_proved = bound - weight <= gap * max(abs(weight), 1.0)
            remark = "" if is_proved else "not proved"
            seconds = result.seconds[method]
            table.put(
                result.case, result.size, method, seconds, weight, remark=remark, agreement=gap
            )
    return table


class Table:
    """Lines of one case; holds every placement against every bound."""

    def __init__(self, case: str, size: int = 0, *, is_change: bool = False) -> None:
        self.case, self.size, self.is_change = case, size, is_change
        self.seconds: dict[str, float] = {}
        self.weights: dict[str, float] = {}
        self.bounds: dict[str, float] = {}

    def as_dict(self) -> dict[str, Any]:
        """Return the case with a row for each method; no bound is None."""
        rows = [
            {
                "method": method,
                "weight": self.weights[method],
                "bound": self.bounds[method] if np.isfinite(self.bounds[method]) else None,
                "seconds": self.seconds[method],
            }
            for method in self.weights
        ]
        fields = {"case": self.case, "size": self.size, "is_change": self.is_change}
        return {**fields, "rows": rows}

    @staticmethod
    def read(fields: dict[str, Any]) -> "Table":
        """Print and return what `as_dict` made."""
        table = Table(fields["case"], fields["size"], is_change=fields["is_change"])
        for row in fields["rows"]:
            bound = np.inf if row["bound"] is None else row["bound"]
            table.put(row["method"], row["weight"], bound, row["seconds"])
        return table

    def put(self, method: str, weight: float, bound: float, seconds: float) -> None:
        """Print one line.

        Raises
        ------
        SystemExit
            If a placement is worth more than a bound on all of them.
        """
        self.weights[method], self.bounds[method] = weight, bound
        self.seconds[method] = seconds
        gap = 100.0 * (bound - weight) / max(abs(weight), 1.0) if np.isfinite(bound) else np.nan
        print(
            f"{self.case:<24}{method:<22}{weight:12.3f}{bound:12.3f}{gap:8.3f}{seconds:8.1f}",
            flush=True,
        )
        for reached, value in self.weights.items():
            for proved, limit in self.bounds.items():
                if value > limit + AGREE * max(abs(limit), 1.0):
                    raise SystemExit(
                        f"{self.case}: {reached} reaches {value}, above {limit}, the bound that "
                        f"{proved} proved."
                    )


def compare(case: RoomCase, seconds: float, gap: float) -> list[Table]:
    """Run all methods on one case; late changes have a table of their own."""
    table = Table(case.name, case.n)
    started = time.process_time()
    ours = place_in_rooms(
        case.scores,
        case.rooms,
        case.rules,
        attributes=case.attributes,
        gap=gap,
        max_seconds=seconds,
    )
    table.put("ours", ours.weight, ours.upper_bound, time.process_time() - started)
    if ours.unplaced:
        print(f"{case.name:<24}ours leaves {len(ours.unplaced)} without a room")
    started = time.process_time()
    problem = formulate(case.scores, case.attributes, case.rooms, case.rules).problem
    problem = replace(problem, penalty=PENALTY * problem.sizes)
    exchange, rng = Exchange(problem), np.random.default_rng(0)
    exchange.place_greedily(rng)
    clock = SearchClock(seconds)
    improve(exchange, rng, reassignments=200, should_stop=clock.is_over)
    table.put("exchange alone", exchange.value, np.inf, time.process_time() - started)
    tables = [table]
    if case.n >= CHANGES_FROM:
        tables.append(change_ten(case, ours.room, gap))
    groups = every_group(problem)
    if groups is None:
        print(f"{case.name:<24}whole model: above {MOST_GROUPS:,} groups, not written out")
        return tables
    started = time.process_time()
    chosen, bound = solve_whole(problem, groups, SearchClock(seconds), np.inf)
    values = problem.group_values(*groups)
    placed = problem.sizes[groups[0][chosen][groups[0][chosen] >= 0]].sum()
    weight = values[chosen].sum() - PENALTY * (problem.sizes.sum() - placed)
    table.put("HiGHS, whole model", float(weight), bound, time.process_time() - started)
    run_cp_sat(table, problem, groups, values, seconds)
    return tables


def change_ten(case: RoomCase, room: IntArray, gap: float) -> Table:
    """Place again after ten people gave their rooms back, with a price for every move."""
    before = room.copy()
    before[np.random.default_rng(1).choice(case.n, CHANGED, replace=False)] = -1
    started = time.process_time()
    again = place_in_rooms(
        case.scores,
        case.rooms,
        case.rules,
        attributes=case.attributes,
        previous=before,
        move_cost=MOVE_COST,
        gap=gap,
        max_seconds=CHANGE_SECONDS,
    )
    spent = time.process_time() - started
    changed = Table(f"{case.name}, ten anew", case.n, is_change=True)
    changed.put(f"ours, {again.n_moved} move", again.weight, again.upper_bound, spent)
    return changed


def every_group(problem: RoomProblem) -> Groups | None:
    """List every group that each kind of room may take; None when they are too many."""
    kinds = np.flatnonzero(problem.count > 0)
    may = [np.flatnonzero(problem.allowed[problem.view[t]]) for t in kinds]
    total = sum(
        comb(len(atoms), size)
        for t, atoms in zip(kinds, may, strict=True)
        for size in range(1, int(problem.capacity[t]) + 1)
    )
    if total > MOST_GROUPS:
        return None
    members, kind = [], []
    for t, atoms in zip(kinds.tolist(), may, strict=True):
        for size in range(1, int(problem.capacity[t]) + 1):
            some = np.array(list(combinations(atoms.tolist(), size))).reshape(-1, size)
            people = problem.sizes[some].sum(axis=1)
            fits = people <= problem.capacity[t]
            if problem.must_fill:
                fits = people == problem.capacity[t]
            for a, b in combinations(range(size), 2):
                fits &= np.isfinite(problem.scores[some[:, a], some[:, b]])
            members.append(pad(some[fits]))
            kind.append(np.full(int(fits.sum()), t))
    joined = np.concatenate(members)
    return joined, np.concatenate(kind), np.full(len(joined), -1, dtype=np.int64)


def run_cp_sat(
    table: Table, problem: RoomProblem, groups: Groups, values: FloatArray, seconds: float
) -> None:
    """Give the whole model to CP-SAT, in a process of its own."""
    if find_spec("ortools") is None:
        print("CP-SAT: ortools is not installed")
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        np.savez(
            path,
            members=groups[0],
            kind=groups[1],
            value=values,
            left_out=-PENALTY * problem.sizes,
            count=problem.count,
        )
        words = [sys.executable, "-m", "benchmarks.peers.cp_sat_rooms", str(path), str(seconds)]
        told = subprocess.run(words, capture_output=True, check=True, text=True).stdout
    answer = json.loads(told.splitlines()[-1])
    weight = -np.inf if answer["weight"] is None else answer["weight"]
    bound = np.inf if answer["bound"] is None else answer["bound"]
    table.put("CP-SAT, whole model", weight, bound, answer["seconds"])


if __name__ == "__main__":
    main()
