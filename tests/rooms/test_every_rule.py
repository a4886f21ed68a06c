"""Random mixtures of every kind of rule, against all placements and against the whole model."""

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from engine.core.errors import InfeasibleError
from engine.crf.room_rules import Designation, Need, Preference, Request, RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.placement import Placement, place_in_rooms
from tests.reference.room_placements import best_by_subsets, best_of_whole_model

HALLS = ("East", "West")


class Case:
    """Students, rooms and rules drawn at random, and what they make of a room."""

    def __init__(self, seed: int, n: int, capacities: list[int], share: float) -> None:
        """Draw each kind of rule with a chance of ``share``."""
        rng = self._rng = np.random.default_rng(seed)
        self.n, self.capacities = n, capacities
        scores = rng.normal(size=(n, n))
        scores = scores + scores.T
        self.scores = np.round(scores) if seed % 3 == 0 else scores
        np.fill_diagonal(self.scores, 0.0)
        r = len(capacities)
        self.attributes = {
            "Gender": tuple(rng.choice(["F", "M"], size=n).tolist()),
            "Year": tuple(rng.choice(["1", "2"], size=n).tolist()),
        }
        columns = {
            "hall": tuple(rng.choice(HALLS, size=r).tolist()),
            "accessible": tuple(rng.choice(["yes", "no"], size=r).tolist()),
            "gender": tuple(rng.choice(["F", "M", "any", "F|M"], size=r).tolist()),
        }
        self.rooms = Rooms(tuple(f"R{k}" for k in range(r)), np.array(capacities), columns)
        self.rules = self._draw_rules(lambda: bool(rng.random() < share))
        self.price = float(rng.choice([0.0, 0.7]))
        self.previous = np.where(rng.random(n) < 0.7, rng.integers(r, size=n), -1)

    def _draw_rules(self, draw: Callable[[], bool]) -> RoomRules:
        rng, n, r = self._rng, self.n, len(self.capacities)

        def pairs(count: int) -> list[tuple[int, int]]:
            ends = [rng.permutation(n)[:2].tolist() for _ in range(count)]
            return [(a, b) for a, b in ends]

        few = max(1, n // 6)
        kept = (int(rng.integers(r)),) if draw() else ()
        resident = int(rng.integers(n))
        assigned = tuple((resident, k) for k in kept)
        if draw() and not assigned:
            assigned = ((resident, int(rng.integers(r))),)

        def pick(build: Callable[[], Iterable[Any]]) -> tuple[Any, ...]:
            return tuple(build()) if draw() else ()

        return RoomRules(
            locks=pick(lambda: pairs(few)),
            forbids=pick(lambda: pairs(2 * few)),
            same=pick(lambda: ["Year"]),
            single=pick(lambda: [int(rng.integers(n))]),
            assigned=assigned,
            designations=pick(lambda: [Designation("gender", "Gender")]),
            needs=pick(lambda: [Need(int(k), "accessible") for k in rng.permutation(n)[:few]]),
            requests=(
                *pick(lambda: [Request(a, b, is_must=True) for a, b in pairs(1)]),
                *(Request(a, b, weight=0.8) for a, b in pairs(few)),
            ),
            preferences=pick(lambda: [Preference(k, "hall", HALLS, 0.6) for k in range(0, n, 3)]),
            closed=pick(lambda: [int(rng.integers(r))]),
            kept=kept,
            alike=pick(lambda: [("Gender", float(rng.choice([0.5, -0.5])))]),
            must_fill=bool(draw() and sum(self.capacities) == n),
        )

    def worth(self, members: tuple[int, ...], room: int) -> float:
        """What people are worth in a room, straight from the words of the rules."""
        rules, inside, people = self.rules, set(members), len(members)
        if people > self.capacities[room] or room in rules.closed:
            return -np.inf
        if rules.must_fill and people < self.capacities[room]:
            return -np.inf
        together = [*rules.locks, *((r.student, r.wants) for r in rules.requests if r.is_must)]
        if any(inside & set(group) and not set(group) <= inside for group in together):
            return -np.inf
        if any({a, b} <= inside for a, b in rules.forbids):
            return -np.inf
        if people > 1 and inside & set(rules.single):
            return -np.inf
        for name in rules.same:
            if len({self.attributes[name][k] for k in members}) > 1:
                return -np.inf
        if any(s in inside and room != r for s, r in rules.assigned):
            return -np.inf
        if room in rules.kept and not inside <= {s for s, r in rules.assigned if r == room}:
            return -np.inf
        cells = {name: column[room] for name, column in self.rooms.attributes.items()}
        for _ in rules.designations:
            wanted = {"any": "FM", "F|M": "FM"}.get(cells["gender"], cells["gender"])
            if any(self.attributes["Gender"][k] not in wanted for k in members):
                return -np.inf
        if cells["accessible"] != "yes" and inside & {x.student for x in rules.needs}:
            return -np.inf
        total = sum(self.scores[i, j] for i, j in combinations(members, 2))
        for name, weight in rules.alike:
            column = self.attributes[name]
            total += sum(weight for i, j in combinations(members, 2) if column[i] == column[j])
        total /= max(people - 1, 1)
        total += sum(
            r.weight for r in rules.requests if not r.is_must and {r.student, r.wants} <= inside
        )
        for liked in rules.preferences:
            if liked.student in inside:
                total += liked.weight * (1.0 if cells["hall"] == liked.values[0] else 0.5)
        total -= self.price * sum(self.previous[k] not in (-1, room) for k in members)
        return float(total)

    def check(self, best: float) -> None:
        """Place, and hold the answer to the best there is: -inf for none."""
        if best == -np.inf:
            with pytest.raises(InfeasibleError) as error:
                self._place()
            assert error.value.conflicts[0].sentence
            return
        found = self._place()
        assert found.unplaced == ()
        assert found.weight == pytest.approx(best, abs=1e-6)
        assert found.upper_bound >= best - 1e-6
        by_room = [np.flatnonzero(found.room == r) for r in range(len(self.capacities))]
        worths = [self.worth(tuple(m.tolist()), r) for r, m in enumerate(by_room) if len(m)]
        assert sum(worths) == pytest.approx(found.weight, abs=1e-6)

    def _place(self) -> Placement:
        return place_in_rooms(
            self.scores,
            self.rooms,
            self.rules,
            attributes=self.attributes,
            previous=self.previous,
            move_cost=self.price,
            gap=1e-9,
            max_seconds=None,
        )


@pytest.mark.parametrize("seed", range(60))
def test_any_mixture_of_rules_gives_the_best_of_all_placements_or_says_there_is_none(
    seed: int,
) -> None:
    rng = np.random.default_rng(1000 + seed)
    n = int(rng.integers(4, 9 if seed % 10 else 11))
    capacities: list[int] = []
    while sum(capacities) < n + (0 if seed % 4 == 0 else rng.integers(1, 4)):
        capacities.append(int(rng.integers(1, 5 if seed % 2 else 9)))
    case = Case(seed, n, capacities, 0.35)
    case.check(best_by_subsets(case.worth, len(capacities), n))


@pytest.mark.parametrize("seed", range(4))
def test_thirty_people_under_any_mixture_of_rules_agree_with_the_whole_model(seed: int) -> None:
    case = Case(2000 + seed, 30, [1, 1, *[2] * 8, *[3] * 5], 0.5)
    # Only two rooms are somebody's so far: with more, every room would be a type of its own.
    case.previous = np.where(case.previous < 2, case.previous, -1)
    special = {0, 1, *case.rules.closed, *case.rules.kept, *(r for _, r in case.rules.assigned)}
    types: dict[object, int] = {}
    room_type, example = [], []
    for room, capacity in enumerate(case.capacities):
        cells = tuple(column[room] for column in case.rooms.attributes.values())
        key = room if room in special else (capacity, cells)
        if key not in types:
            types[key] = len(types)
            example.append(room)
        room_type.append(types[key])
    capacity = np.array([case.capacities[room] for room in example])

    def worth(members: tuple[int, ...], kind: int) -> float:
        return case.worth(members, example[kind])

    case.check(best_of_whole_model(worth, np.array(room_type), capacity, case.n))
