"""A hunt for wrong placements: random problems of 1 to 8 students against every placement there is.

    python -m benchmarks hunts rooms [--minutes 10] [--first-seed 0] [--count N]

Problems mix needs, locks, rules that contradict each other, requests, preferences, rooms of 1 to 8
beds, closed and kept rooms, former rooms with a price of a move, ties, and scores from a millionth
of a nat to thousands, of either sign. A problem is an exception when the placement breaks a rule,
leaves out somebody who could be placed, is worth less than the best or another sum than it says,
when a bound lies below the best, or when anything but the three errors of the engine is raised.
Each is printed with the seed that makes it again.
"""

import numpy as np

from benchmarks.hunts.hunting import hunt
from engine.core.arguments import FloatArray
from engine.core.errors import InfeasibleError
from engine.crf.room_rules import Designation, Need, Preference, Request, RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.placement import Placement, place_in_rooms
from tests.reference.room_placements import best_with_some_left_out, group_value

SCALES = (1e-6, 1e-3, 1.0, 1.0, 1.0, 30.0, 3e3)
TOLERANCE = 1e-7  # of the largest number of a problem


class Problem:
    """Students, rooms and rules drawn from a seed, with the value of every possible room."""

    def __init__(self, seed: int) -> None:
        rng = self._rng = np.random.default_rng(seed)
        self.n = n = int(rng.integers(1, 9))
        self.capacities = [int(c) for c in rng.integers(1, rng.integers(2, 10), rng.integers(1, 6))]
        self.scale = float(rng.choice(SCALES))
        self.scores = self._draw_scores()
        r = len(self.capacities)
        self.people = {
            "Gender": tuple(rng.choice(["F", "M"], size=n).tolist()),
            "Year": tuple(rng.choice(["1", "2", ""], size=n).tolist()),
        }
        columns = {
            "hall": tuple(rng.choice(["East", "West"], size=r).tolist()),
            "lift": tuple(rng.choice(["yes", "no"], size=r).tolist()),
            "gender": tuple(rng.choice(["F", "M", "any", "F|M"], size=r).tolist()),
        }
        self.rooms = Rooms(tuple(f"R{k}" for k in range(r)), np.array(self.capacities), columns)
        self.rules = self._draw_rules(float(rng.choice([0.0, 0.2, 0.5])))
        self.price = float(rng.choice([0.0, 0.0, 0.3, 5.0])) * self.scale
        self.previous = None
        if rng.random() < 0.4:
            self.previous = np.where(rng.random(n) < 0.6, rng.integers(r, size=n), -1)

    def _draw_scores(self) -> FloatArray:
        rng, n = self._rng, self.n
        scores = rng.normal(size=(n, n))
        scores += scores.T + float(rng.choice([0.0, -3.0, 3.0]))
        shape = rng.random()
        if shape < 0.3:
            scores = np.round(scores)
        elif shape < 0.4:
            scores[:] = rng.choice([0.0, -1.0, 1.0])
        np.fill_diagonal(scores, 0.0)
        return scores * self.scale

    def _draw_rules(self, share: float) -> RoomRules:
        rng, n, r = self._rng, self.n, len(self.capacities)

        def draw() -> bool:
            return bool(rng.random() < share)

        def student() -> int:
            return int(rng.integers(n))

        def pairs(most: int) -> list[tuple[int, int]]:
            ends = [rng.permutation(n)[:2].tolist() for _ in range(rng.integers(1, most + 1))]
            return [(e[0], e[1]) for e in ends if len(e) == 2]

        requests = [
            Request(a, b, draw(), float(rng.choice([1.0, -0.5])) * self.scale)
            for a, b in (pairs(3) if draw() else [])
        ]
        needs = [Need(student(), "lift") for _ in range(3) if draw()]
        needs += [Need(student(), "capacity", str(rng.integers(1, 4)))] * draw()
        return RoomRules(
            locks=tuple(pairs(2)) if draw() else (),
            forbids=tuple(pairs(4)) if draw() else (),
            same=tuple(name for name in ("Gender", "Year") if draw()),
            single=(student(),) if draw() else (),
            assigned=tuple((student(), int(rng.integers(r))) for _ in range(2) if draw()),
            designations=(Designation("gender", "Gender"),) if draw() else (),
            needs=tuple(needs),
            requests=tuple(requests),
            preferences=tuple(
                Preference(k, "hall", ("West", "East"), 0.5 * self.scale)
                for k in range(n)
                if draw()
            ),
            closed=(int(rng.integers(r)),) if draw() else (),
            kept=(int(rng.integers(r)),) if draw() else (),
            alike=(("Gender", float(rng.choice([0.4, -0.4])) * self.scale),) if draw() else (),
            must_fill=bool(draw() and draw()),
        )

    def is_allowed(self, rules: RoomRules, members: tuple[int, ...], room: int) -> bool:
        """Return True if these people may share the room."""
        inside, cells = set(members), {c: v[room] for c, v in self.rooms.attributes.items()}
        beds = self.capacities[room]
        fine = len(inside) <= beds and room not in rules.closed
        fine &= not rules.must_fill or len(inside) == beds
        fine &= len(inside) == 1 or not inside & set(rules.single)
        fine &= not any({a, b} <= inside for a, b in rules.forbids)
        musts = [(r.student, r.wants) for r in rules.requests if r.is_must]
        fine &= all(
            len(inside & set(lock)) in (0, len(set(lock))) for lock in [*rules.locks, *musts]
        )
        fine &= all(room == home for k, home in rules.assigned if k in inside)
        if room in rules.kept:
            fine &= inside <= {k for k, home in rules.assigned if home == room}
        for name in rules.same:
            fine &= len({self.people[name][k] for k in inside}) == 1
        if rules.designations and cells["gender"] not in ("any", "F|M"):
            fine &= all(self.people["Gender"][k] == cells["gender"] for k in inside)
        for need in rules.needs:
            if need.student in inside:
                have = str(beds) if need.column == "capacity" else cells[need.column]
                fine &= have == need.value
        return fine

    def worth(self, rules: RoomRules, members: tuple[int, ...], room: int) -> float:
        """Return the value of a room with these people; -inf if they may not share it."""
        if not self.is_allowed(rules, members, room):
            return -np.inf
        inside, hall = set(members), self.rooms.attributes["hall"][room]
        scores = self.scores.copy()
        for name, weight in rules.alike:
            column = np.array(self.people[name])
            scores += weight * (column[:, None] == column)
        total = group_value(scores, members)
        wishes = [r for r in rules.requests if not r.is_must]
        total += sum(r.weight for r in wishes if {r.student, r.wants} <= inside)
        for liked in rules.preferences:
            if liked.student in inside:
                total += liked.weight * (1.0 if hall == liked.values[0] else 0.5)
        if self.previous is not None:
            total += self.price * sum(self.previous[k] == room for k in members)
        return float(total)

    @property
    def offset(self) -> float:
        """Minus the price of all moves."""
        return 0.0 if self.previous is None else -self.price * int((self.previous >= 0).sum())

    def place(self, *, allow_unplaced: bool) -> Placement:
        """Place by the engine."""
        return place_in_rooms(
            self.scores,
            self.rooms,
            self.rules,
            attributes=self.people,
            previous=self.previous,
            move_cost=0.0 if self.previous is None else self.price,
            allow_unplaced=allow_unplaced,
            gap=1e-9,
            max_seconds=60.0,
        )


def faults(problem: Problem) -> list[str]:
    """Return what is wrong with the placements of a problem, in words."""
    found = problem.place(allow_unplaced=True)
    wrong = faults_of_placement(problem, found)
    is_whole = not found.dropped and not found.unplaced
    try:
        strict = problem.place(allow_unplaced=False)
    except InfeasibleError as error:
        if is_whole:
            wrong.append(f"called impossible: {error}")
        return wrong
    if not is_whole:
        wrong.append("placed though somebody is left out or a rule dropped when that is allowed")
    return wrong + faults_of_placement(problem, strict)


def faults_of_placement(problem: Problem, found: Placement) -> list[str]:
    """Return what is wrong with one placement under the rules that it keeps."""
    rules, wrong = found.rules, []
    needy = {need.student for need in rules.needs}
    housed = {k for k, _ in rules.assigned}
    if problem.previous is not None:
        housed |= set(np.flatnonzero(problem.previous >= 0).tolist())

    def worth(members: tuple[int, ...], room: int) -> float:
        return problem.worth(rules, members, room)

    rank, best = best_with_some_left_out(
        worth, len(problem.capacities), problem.n, (needy, set(range(problem.n)), housed)
    )
    best += problem.offset
    mine = 0.0
    for room in range(len(problem.capacities)):
        members = tuple(np.flatnonzero(found.room == room).tolist())
        mine += worth(members, room) if members else 0.0
    mine += problem.offset
    placed = set(np.flatnonzero(found.room >= 0).tolist())
    own_rank = (len(placed & needy), len(placed), len(placed & housed))
    largest = max(problem.scale, float(np.abs(problem.scores).max(initial=0.0)), problem.price)
    tolerance = TOLERANCE * largest
    if mine == -np.inf:
        return ["a rule is broken"]
    if abs(mine - found.weight) > tolerance:
        wrong.append(f"says {found.weight}, is worth {mine}")
    if own_rank != rank:
        wrong.append(f"places {own_rank} (needs, people, housed before), possible are {rank}")
        return wrong
    if mine < best - tolerance - 1e-9 * max(1.0, abs(best)):
        wrong.append(f"is worth {mine}, the best {best}")
    if found.upper_bound < best - tolerance:
        wrong.append(f"bound {found.upper_bound} below the best {best}")
    if (found.most_with_needs, found.most_placed) != rank[:2]:
        wrong.append(f"at most {(found.most_with_needs, found.most_placed)}, possible {rank[:2]}")
    if len(placed) < problem.n and not found.conflicts:
        wrong.append("nobody says why people are left out")
    return wrong


def main() -> None:
    """Hunt and print every exception."""
    hunt(__doc__, lambda seed: faults(Problem(seed)), "problems")


if __name__ == "__main__":
    main()
