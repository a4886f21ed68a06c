"""Placement problems of the shapes that housing offices bring, at any size."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray
from engine.crf.room_rules import Designation, Need, Preference, Request, RoomRules
from engine.crf.rooms import Rooms
from engine.datasets.university import simulate_university

NEEDS = 0.05  # of the students


@dataclass(frozen=True, slots=True)
class RoomCase:
    """What `place_in_rooms` is given."""

    name: str
    scores: FloatArray
    rooms: Rooms
    rules: RoomRules
    attributes: dict[str, tuple[str, ...]]

    @property
    def n(self) -> int:
        """Number of students."""
        return len(self.scores)


def scores_of(n: int, seed: int = 0) -> FloatArray:
    """Return pair scores of a simulated year under the published weights times 8."""
    university = simulate_university(n, 1, rng=np.random.default_rng(seed))
    return university.features.scores(university.cohorts[0].survey, university.theta)


def triples(n: int, seed: int = 0) -> RoomCase:
    """Return n students, a multiple of 6, in rooms of three and no rules."""
    rooms = _rooms(np.full(n // 3, 3))
    return RoomCase(f"{n} in triples", scores_of(n, seed), rooms, RoomRules(), {})


def quads(n: int, seed: int = 0) -> RoomCase:
    """Return n students in rooms of four, the last not full where n is no multiple of 4."""
    rooms = _rooms(np.full(-(-n // 4), 4))
    return RoomCase(f"{n} in quads", scores_of(n, seed), rooms, RoomRules(), {})


def one_to_eight(n: int, seed: int = 0) -> RoomCase:
    """Return n students in rooms of 1 to 8 beds, drawn until there is one for everybody."""
    rng = np.random.default_rng(seed + 1)
    capacities: list[int] = []
    while sum(capacities) < n:
        capacities.append(min(int(rng.integers(1, 9)), n - sum(capacities)))
    return RoomCase(
        f"{n} in 1 to 8", scores_of(n, seed), _rooms(np.array(capacities)), RoomRules(), {}
    )


def real_mix(n: int, seed: int = 0) -> RoomCase:
    """Return singles to quads with as many beds as students, designations, needs and requests.

    At 2,500 students: 300 singles, 700 doubles, 200 triples, 50 quads; a third of the rooms each
    for women, men and anybody; a fifth accessible, which 5 % need; 400 requests.
    """
    rng = np.random.default_rng(seed + 1)
    capacities = _mixed_capacities(n)
    r = len(capacities)
    columns = {
        "gender": tuple(("F", "M", "any")[k % 3] for k in range(r)),
        "accessible": tuple("yes" if k % 5 == 0 else "no" for k in range(r)),
    }
    people = {"Gender": tuple("FM"[k % 2] for k in range(n))}
    rules = RoomRules(
        designations=(Designation("gender", "Gender"),),
        needs=_needs(rng, n, round(NEEDS * n)),
        requests=_requests(rng, n, round(0.16 * n)),
    )
    return RoomCase(
        f"{n} real mix", scores_of(n, seed), _rooms(capacities, **columns), rules, people
    )


def many_designations(n: int, seed: int = 0) -> RoomCase:
    """Return programmes of about 60 students, each with rooms of its own."""
    rng = np.random.default_rng(seed + 1)
    programmes = max(2, n // 60)
    member = np.sort(rng.integers(programmes, size=n))
    capacities, owner = [], []
    for programme in range(programmes):
        left = int((member == programme).sum())
        while left > 0:
            capacities.append(int(min(left, rng.choice([1, 2, 2, 3, 4]))))
            owner.append(f"P{programme}")
            left -= capacities[-1]
    people = {"Programme": tuple(f"P{k}" for k in member.tolist())}
    rooms = _rooms(np.array(capacities), programme=tuple(owner))
    rules = RoomRules(designations=(Designation("programme", "Programme"),))
    return RoomCase(f"{n}, {programmes} programmes", scores_of(n, seed), rooms, rules, people)


def barely_enough(n: int, seed: int = 0) -> RoomCase:
    """Return a mix in which every accessible bed is needed and no bed is to spare."""
    rng = np.random.default_rng(seed + 1)
    capacities = _mixed_capacities(n)
    accessible = np.zeros(len(capacities), dtype=bool)
    accessible[rng.permutation(len(capacities))[: len(capacities) // 8]] = True
    rules = RoomRules(needs=_needs(rng, n, int(capacities[accessible].sum())))
    rooms = _rooms(capacities, accessible=tuple(np.where(accessible, "yes", "no").tolist()))
    return RoomCase(f"{n} barely enough", scores_of(n, seed), rooms, rules, {})


def ties(n: int, seed: int = 0) -> RoomCase:
    """Return the mix without rules, scores rounded to whole nats: most of them equal."""
    rooms = _rooms(_mixed_capacities(n))
    return RoomCase(f"{n} with ties", np.round(scores_of(n, seed)), rooms, RoomRules(), {})


def housing_year(n: int, seed: int = 0) -> RoomCase:
    """Return a year of an office: choices of hall and kind, needs, designations and requests.

    5 % more beds than students, in four halls; a third of the rooms each for women and men, the
    others for anybody, and roommates of one gender; three kinds of needs; most students choose a
    hall and a kind of room, and pairs score below zero, so that everybody would rather live alone.
    """
    rng = np.random.default_rng(seed + 1)
    capacities = _mixed_capacities(round(1.05 * n))
    r = len(capacities)
    halls, kinds = ("North", "South", "East", "West"), ("single", "double", "triple", "quad")
    met = {"ground": 0.18, "wheelchair": 0.04, "alarm": 0.09}
    columns = {
        "hall": tuple(rng.choice(halls, size=r).tolist()),
        "kind": tuple(kinds[c - 1] for c in capacities.tolist()),
        "who": tuple(rng.choice(["F", "M", ""], size=r).tolist()),
        **{
            name: tuple(np.where(rng.random(r) < s, "yes", "no").tolist())
            for name, s in met.items()
        },
    }
    people = {"Gender": tuple(rng.choice(["F", "M", "X"], size=n, p=[0.54, 0.43, 0.03]).tolist())}
    chosen = {"hall": halls[:3], "kind": kinds}
    preferences = [
        Preference(k, column, (str(rng.choice(values)),), 0.5)
        for column, values in chosen.items()
        for k in np.flatnonzero(rng.random(n) < 0.75).tolist()
    ]
    needy = rng.choice(n, round(0.025 * n), replace=False).tolist()
    rules = RoomRules(
        designations=(Designation("who", "Gender"),),
        same=("Gender",),
        needs=tuple(Need(k, str(rng.choice(list(met), p=[0.5, 0.3, 0.2]))) for k in needy),
        requests=_requests(rng, n, round(0.08 * n)),
        preferences=tuple(preferences),
    )
    scores = scores_of(n, seed) - 5.0
    return RoomCase(f"{n} of a year", scores, _rooms(capacities, **columns), rules, people)


SHAPES: dict[str, Callable[..., RoomCase]] = {
    "triples": triples,
    "quads": quads,
    "eights": one_to_eight,
    "mix": real_mix,
    "designations": many_designations,
    "barely": barely_enough,
    "ties": ties,
    "year": housing_year,
}


def _mixed_capacities(n: int) -> IntArray:
    """Return 12 % of the beds in singles, 56 % in doubles, 24 % in triples, 8 % in quads."""
    quads_, triples_, doubles = n * 2 // 100, n * 8 // 100, n * 28 // 100
    singles = n - 4 * quads_ - 3 * triples_ - 2 * doubles
    return np.repeat([1, 2, 3, 4], [singles, doubles, triples_, quads_])


def _rooms(capacities: IntArray, **columns: tuple[str, ...]) -> Rooms:
    return Rooms(tuple(f"R{k}" for k in range(len(capacities))), capacities, columns)


def _needs(rng: np.random.Generator, n: int, count: int) -> tuple[Need, ...]:
    return tuple(Need(int(k), "accessible") for k in rng.choice(n, count, replace=False))


def _requests(rng: np.random.Generator, n: int, count: int) -> tuple[Request, ...]:
    ends = rng.integers(n, size=(count, 2)).tolist()
    return tuple(Request(a, b) for a, b in ends if a != b)
