"""Rooms: ours beside exchange search alone, and beside the whole model given to HiGHS and CP-SAT.

    python -m benchmarks.bench_rooms [--students 60 120 2400] [--seconds 60] [--mix]

The whole set-partitioning model has a column for every group; where there are more than two million
it is not written out, and the peers are left out with that remark. ``--mix`` adds 2,500 students
in 300 singles, 700 doubles, 200 triples and 50 quads with designations, needs and requests. Seconds
are of the processor, since other work shares the machine. CP-SAT is timed where ``ortools`` is.
"""

import argparse
import time
from itertools import combinations
from math import comb

import numpy as np

from benchmarks.peak_memory import peak_gigabytes
from engine.core.arguments import FloatArray, IntArray
from engine.crf.room_rules import Designation, Need, Request, RoomRules
from engine.crf.rooms import Rooms
from engine.datasets.university import simulate_university
from engine.rooms.closing import solve_whole
from engine.rooms.columns import pad
from engine.rooms.exchange import Exchange, improve
from engine.rooms.formulation import formulate
from engine.rooms.placement import place_in_rooms

MOST_GROUPS = 2_000_000


def main() -> None:
    """Run the cases and print a line for each method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--students", type=int, nargs="+", default=[60, 120, 2400])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--gap", type=float, default=0.002)
    parser.add_argument("--mix", action="store_true")
    args = parser.parse_args()
    place_in_rooms(np.ones((9, 9)) - np.eye(9), triples(9), max_seconds=None)  # compiles
    print(f"{'case':<14}{'method':<22}{'weight':>12}{'bound':>12}{'gap %':>8}{'cpu s':>8}")
    for n in args.students:
        compare(n, args.seconds, args.gap)
    if args.mix:
        run_mix(args.seconds * 2)
    print(f"peak memory {peak_gigabytes():.2f} GB")


def triples(n: int) -> Rooms:
    """Return n / 3 rooms of three."""
    return Rooms(tuple(f"R{k}" for k in range(n // 3)), np.full(n // 3, 3))


def scores_of(n: int, seed: int = 0) -> FloatArray:
    """Return pair scores of a simulated year under the published weights times 8."""
    university = simulate_university(n, 1, rng=np.random.default_rng(seed))
    return university.features.scores(university.cohorts[0].survey, university.theta)


def show(case: str, method: str, weight: float, bound: float, seconds: float) -> None:
    """Print one line."""
    gap = 100.0 * (bound - weight) / max(abs(weight), 1.0) if np.isfinite(bound) else np.nan
    print(f"{case:<14}{method:<22}{weight:12.3f}{bound:12.3f}{gap:8.3f}{seconds:8.1f}", flush=True)


def compare(n: int, seconds: float, gap: float) -> None:
    """Run all methods on n students in triples."""
    case, scores, rooms = f"{n} in triples", scores_of(n), triples(n)
    started = time.process_time()
    ours = place_in_rooms(scores, rooms, gap=gap, max_seconds=seconds)
    show(case, "ours", ours.weight, ours.upper_bound, time.process_time() - started)
    started = time.process_time()
    problem = formulate(scores, {}, rooms, RoomRules()).problem
    exchange, rng = Exchange(problem, 1e3), np.random.default_rng(0)
    exchange.place_greedily(rng)
    end = time.monotonic() + seconds
    improve(exchange, rng, reassignments=200, should_stop=lambda: time.monotonic() > end)
    show(case, "exchange alone", exchange.value, np.inf, time.process_time() - started)
    if comb(n, 3) + comb(n, 2) + n > MOST_GROUPS:
        print(f"{case:<14}whole model: {comb(n, 3):,} groups of three, not written out")
        return
    groups = [g for size in (1, 2, 3) for g in combinations(range(n), size)]
    members = np.full((len(groups), 3), -1)
    for k, group in enumerate(groups):
        members[k, : len(group)] = group
    whole = (pad(members), np.zeros(len(groups), np.int64), np.full(len(groups), -1, np.int64))
    started = time.process_time()
    chosen, bound = solve_whole(problem, whole, 1e3, seconds)
    values = problem.group_values(*(column[chosen] for column in whole))
    show(case, "HiGHS, whole model", values.sum(), bound, time.process_time() - started)
    run_cp_sat(case, problem.group_values(*whole), whole[0], n, seconds)


def run_cp_sat(case: str, values: FloatArray, members: IntArray, n: int, seconds: float) -> None:
    """Give the whole model to CP-SAT, scores in millionths."""
    try:
        from ortools.sat.python import cp_model  # type: ignore[import-not-found]
    except ImportError:
        print(f"{case:<14}CP-SAT: ortools is not installed")
        return
    started = time.process_time()
    model = cp_model.CpModel()
    used = [model.new_bool_var("") for _ in range(len(values))]
    by_student: list[list[object]] = [[] for _ in range(n)]
    for k, group in enumerate(members.tolist()):
        for student in group:
            if student >= 0:
                by_student[student].append(used[k])
    for mine in by_student:
        model.add_exactly_one(mine)
    model.add(sum(used) <= n // 3)
    cost = np.round(1e6 * values).astype(np.int64).tolist()
    model.maximize(sum(c * x for c, x in zip(cost, used, strict=True)))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 2
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    weight = solver.objective_value / 1e6 if found else np.nan
    bound = solver.best_objective_bound / 1e6
    show(case, "CP-SAT, whole model", weight, bound, time.process_time() - started)


def run_mix(seconds: float) -> None:
    """Place 2,500 students in a mix of rooms, then again after ten people changed."""
    n, rng = 2500, np.random.default_rng(1)
    scores = scores_of(n)
    capacities = np.repeat([1, 2, 3, 4], [300, 700, 200, 50])
    kinds = ("F", "M", "any")
    attributes = {
        "gender": tuple(kinds[k % 3] for k in range(len(capacities))),
        "accessible": tuple("yes" if k % 5 == 0 else "no" for k in range(len(capacities))),
    }
    rooms = Rooms(tuple(f"R{k}" for k in range(len(capacities))), capacities, attributes)
    people = {"Gender": tuple("FM"[k % 2] for k in range(n))}
    needs = tuple(Need(int(k), "accessible") for k in rng.choice(n, n // 20, replace=False))
    ends = rng.integers(n, size=(400, 2))
    requests = tuple(Request(int(a), int(b)) for a, b in ends if a != b)
    rules = RoomRules(
        designations=(Designation("gender", "Gender"),), needs=needs, requests=requests
    )
    started = time.process_time()
    first = place_in_rooms(scores, rooms, rules, attributes=people, gap=0.01, max_seconds=seconds)
    show("2,500 mixed", "ours", first.weight, first.upper_bound, time.process_time() - started)
    before = first.room.copy()
    before[rng.choice(n, 10, replace=False)] = -1
    started = time.process_time()
    again = place_in_rooms(
        scores,
        rooms,
        rules,
        attributes=people,
        previous=before,
        move_cost=0.5,
        gap=0.01,
        max_seconds=10.0,
    )
    spent = time.process_time() - started
    show("ten changed", f"ours, {again.n_moved} move", again.weight, again.upper_bound, spent)


if __name__ == "__main__":
    main()
