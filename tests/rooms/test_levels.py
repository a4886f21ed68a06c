"""Extra beds come last and rooms fill in order: against every placement of small problems."""

from itertools import combinations, product

import numpy as np
import pytest

from engine.core.errors import InvalidProblemError
from engine.crf.room_rules import Designation, RoomRules
from engine.crf.rooms import Rooms
from engine.rooms.placement import Placement, place_in_rooms

ORDER = (("hall", "b"), ("hall", "a"))
PLACE = {"b": 0, "a": 1}


class Case:
    """Students, rooms with extra beds, halls in order, designations and pairs kept apart."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.n, r = int(rng.integers(3, 7)), int(rng.integers(2, 5))
        self.normal = rng.integers(1, 4, size=r)
        self.most = self.normal + rng.integers(0, 3, size=r)
        scores = 3.0 * rng.normal(size=(self.n, self.n))
        self.scores = scores + scores.T
        np.fill_diagonal(self.scores, 0.0)
        self.halls = rng.choice(["a", "b", "c"], size=r).tolist()
        self.gender = rng.choice(["F", "M"], size=self.n).tolist()
        self.only = rng.choice(["F", "M", "any"], size=r).tolist()
        self.order = ORDER if rng.random() < 0.7 else ()
        ends = [rng.permutation(self.n)[:2].tolist() for _ in range(int(rng.integers(0, 3)))]
        self.apart = tuple((a, b) for a, b in ends)

    def place(self) -> Placement:
        columns = {"hall": tuple(self.halls), "for": tuple(self.only)}
        ids = tuple(f"R{k}" for k in range(len(self.normal)))
        rules = RoomRules(
            designations=(Designation("for", "Gender"),), order=self.order, forbids=self.apart
        )
        return place_in_rooms(
            self.scores,
            Rooms(ids, self.normal, columns, max_capacities=self.most),
            rules,
            attributes={"Gender": tuple(self.gender)},
            allow_unplaced=True,
            gap=1e-9,
            max_seconds=None,
        )

    def key(self, room: tuple[int, ...]) -> tuple[int, int, int, float]:
        """Return what is compared, in order: people left out, in extra beds, positions, score."""
        used = [room.count(r) for r in range(len(self.normal))]
        place = [PLACE.get(hall, 2) if self.order else 0 for hall in self.halls]
        score = 0.0
        for r in range(len(self.normal)):
            inside = [k for k, where in enumerate(room) if where == r]
            pairs = sum(self.scores[i, j] for i, j in combinations(inside, 2))
            score += float(pairs) / max(len(inside) - 1, 1)
        extra = sum(max(u - int(m), 0) for u, m in zip(used, self.normal, strict=True))
        return room.count(-1), extra, sum(place[r] for r in room if r >= 0), -score

    def may(self, room: tuple[int, ...]) -> bool:
        if any(room.count(r) > most for r, most in enumerate(self.most)):
            return False
        if any(room[a] == room[b] >= 0 for a, b in self.apart):
            return False
        return all(r < 0 or self.only[r] in ("any", self.gender[k]) for k, r in enumerate(room))

    def best(self) -> tuple[int, int, int, float]:
        every = product(range(-1, len(self.normal)), repeat=self.n)
        return min(self.key(room) for room in every if self.may(room))


@pytest.mark.parametrize("seed", range(24))
def test_no_placement_is_better_level_by_level(seed: int) -> None:
    case = Case(seed)
    found, best = case.place(), case.best()
    room = tuple(found.room.tolist())
    assert case.may(room)
    assert case.key(room)[:3] == best[:3]
    assert found.weight == pytest.approx(-best[3], abs=1e-6)
    assert found.upper_bound >= -best[3] - 1e-6
    assert found.n_extra_beds == best[1]
    assert found.least_extra_beds <= best[1]


def test_a_bound_stays_above_the_best_when_the_search_stops_at_once() -> None:
    for seed in range(6):
        case = Case(seed)
        found = place_in_rooms(
            case.scores,
            Rooms(
                tuple(f"R{k}" for k in range(len(case.normal))),
                case.normal,
                max_capacities=case.most,
            ),
            allow_unplaced=True,
            max_work=1e-6,
        )
        case.only, case.order, case.apart = ["any"] * len(case.normal), (), ()
        best = case.best()
        if case.key(tuple(found.room.tolist()))[:3] == best[:3]:
            assert found.upper_bound >= -best[3] - 1e-6


def test_a_hundred_students_use_no_extra_bed_that_a_normal_bed_spares() -> None:
    rng = np.random.default_rng(3)
    n = 100
    scores = rng.normal(size=(n, n))
    rooms = Rooms(
        tuple(f"R{k}" for k in range(48)),
        np.full(48, 2),
        {"hall": tuple(["late"] * 12 + ["early"] * 36)},
        max_capacities=np.full(48, 3),
    )
    found = place_in_rooms(
        scores + scores.T, rooms, RoomRules(order=(("hall", "early"),)), max_work=4.0
    )
    used = np.bincount(found.room, minlength=48)
    assert np.maximum(used - 2, 0).sum() == found.n_extra_beds == found.least_extra_beds == 4
    assert used[:12].sum() == 24  # all beds of the late hall are needed, and no extra one there
    assert (used[:12] <= 2).all()


def test_with_room_for_all_the_later_hall_stays_empty() -> None:
    scores = np.zeros((6, 6))
    scores[0, 1] = scores[1, 0] = 50.0  # no score opens a later hall
    rooms = Rooms(("A", "B", "C", "D"), [2, 2, 2, 2], {"hall": ("z", "a", "a", "a")})
    found = place_in_rooms(scores, rooms, RoomRules(order=(("hall", "a"),)))
    assert (found.room > 0).all()
    assert found.room[0] == found.room[1]


@pytest.mark.parametrize(("most", "words"), [([1, 2], "at most 2 to 8"), ([9, 2], "received 9")])
def test_fewer_or_too_many_beds_with_extra_beds_are_refused(most: list[int], words: str) -> None:
    with pytest.raises(InvalidProblemError, match=words):
        Rooms(("A", "B"), [2, 2], max_capacities=np.array(most))
