"""The whole model of rooms for CP-SAT, in a process of its own.

    python -m benchmarks peers cp_sat_rooms PROBLEM.npz SECONDS

OR-tools brings its own HiGHS, which does not load beside highspy. The file holds ``members`` (g, 8)
padded with -1, ``kind`` (g,), ``value`` (g,) nats, ``left_out`` (n,) nats for each who is in no
group, and ``count`` of each kind of room. Prints weight, bound and processor seconds as JSON.
"""

import json
import sys
import time

import numpy as np
from ortools.sat.python import cp_model

UNIT = 1e-6  # nats; CP-SAT counts in whole numbers


def main() -> None:
    """Solve the file within the seconds."""
    given = np.load(sys.argv[1])
    members, kind, value = given["members"], given["kind"], given["value"]
    left_out, count = given["left_out"], given["count"]
    model = cp_model.CpModel()
    used = [model.new_bool_var("") for _ in range(len(value))]
    lone = [model.new_bool_var("") for _ in range(len(left_out))]
    by_student: list[list[object]] = [[x] for x in lone]
    by_kind: list[list[object]] = [[] for _ in count]
    for k, (group, t) in enumerate(zip(members.tolist(), kind.tolist(), strict=True)):
        by_kind[t].append(used[k])
        for student in group:
            if student >= 0:
                by_student[student].append(used[k])
    for mine in by_student:
        model.add_exactly_one(mine)
    for mine, limit in zip(by_kind, count.tolist(), strict=True):
        model.add(cp_model.LinearExpr.sum(mine) <= limit)
    worth = np.round(np.concatenate((value, left_out)) / UNIT).astype(np.int64)
    model.maximize(cp_model.LinearExpr.weighted_sum([*used, *lone], worth.tolist()))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = float(sys.argv[2])
    solver.parameters.num_workers = 2
    status = solver.solve(model)
    is_found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    # Each of at most n groups was rounded by half a unit.
    answer = {
        "weight": solver.objective_value * UNIT if is_found else None,
        # Where time ends before anything is found, the bound is a number that nothing proved.
        "bound": (solver.best_objective_bound + len(left_out) / 2) * UNIT if is_found else None,
        "seconds": time.process_time(),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
