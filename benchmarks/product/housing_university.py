"""A university's housing year as files: what an office would upload, from July to August.

``write_year`` makes a past year with pairs, the first-years, the rooms, the requests, the choices
of hall and the August lists. At full size: 2,500 first-years, 87 with a need; 1,276 rooms,
which are 1,126 doubles, 44 singles, 44 triples, 22 quads and 40 rooms held back for RAs; four
accessible halls of ten; 397 requests (236 of them mutual) and three groups of five; three
choices of hall for nine of ten students; 14 withdrawals and 9 late arrivals. Everything is drawn
from one seed.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from engine import Survey, simulate_university
from engine.datasets.university import SimulatedCohort

HALLS = ("Alder", "Birch", "Cedar", "Elm", "Hawthorn", "Juniper", "Linden", "Maple", "Rowan", "Yew")
ACCESSIBLE = HALLS[:4]
FLOORS = 4


@dataclass(frozen=True, slots=True)
class HousingYear:
    """The files of one year, and the ids of who withdraws."""

    past: Path
    past_pairs: Path
    survey: Path
    rooms: Path
    requests: Path
    choices: Path
    latecomers: Path
    addresses: Path
    withdrawn: tuple[str, ...]
    students: int
    beds: int


@dataclass(frozen=True, slots=True)
class Size:
    """Numbers of students, rooms, requests and needs."""

    students: int
    past: int
    doubles: int
    singles: int
    triples: int
    quads: int
    mutual_pairs: int
    one_sided: int
    groups: int
    withdrawn: int
    late: int
    needs: int


FULL = Size(2500, 600, 1126, 44, 44, 22, 118, 137, 3, 14, 9, 87)
SHORT = Size(100, 60, 40, 12, 4, 2, 6, 6, 1, 3, 2, 4)


def write_year(folder: Path, size: Size = FULL, seed: int = 2026) -> HousingYear:
    """Write the files of one year into a folder."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    university = simulate_university(
        max(size.students + size.late + 1, size.past) // 2 * 2, 2, rng=rng, by_gender=True
    )
    old, new = university.cohorts
    ids = [f"{4_000_000 + 7 * k}" for k in range(size.students + size.late)]
    ids[0] = "+4711"
    genders = list(new.survey.attributes["Gender"])[: len(ids)]
    with_need = set(rng.choice(size.students, size.needs, replace=False).tolist())
    needs = ["yes" if k in with_need else "" for k in range(len(ids))]
    year = HousingYear(
        past=folder / "returning.csv",
        past_pairs=folder / "returning-pairs.csv",
        survey=folder / "first-years.csv",
        rooms=folder / "rooms.csv",
        requests=folder / "requests.csv",
        choices=folder / "choices.csv",
        latecomers=folder / "latecomers.csv",
        addresses=folder / "addresses.csv",
        withdrawn=tuple(ids[int(k)] for k in rng.choice(size.students, size.withdrawn, False)),
        students=size.students,
        beds=size.doubles * 2 + size.singles + size.triples * 3 + size.quads * 4,
    )
    _write_past(year, old, size)
    header = ["Student ID", "Gender", "Accessible", *new.survey.questionnaire.names]
    rows = [[ids[k], genders[k], needs[k], *_answers(new.survey, k)] for k in range(len(ids))]
    _write(year.survey, header, rows[: size.students])
    _write(year.latecomers, header, rows[size.students :])
    women = genders[: size.students].count("F") / size.students
    _write(year.rooms, ROOM_HEADER, _rooms(size, women))
    requests = _requests(size, ids, genders, rng)
    _write(year.requests, ["Student ID", "Roommate request"], requests)
    header = ["Student ID", "Choice 1", "Choice 2", "Choice 3"]
    _write(year.choices, header, _choices(ids[: size.students], rng))
    _write(year.addresses, ["Student ID", "First name", "Last name", "E-mail"], _addresses(ids))
    return year


def _write_past(year: HousingYear, old: SimulatedCohort, size: Size) -> None:
    pairs = old.pairs.tolist()[: size.past // 2]
    inside = {k: f"R{k:05d}" for pair in pairs for k in pair}
    header = ["Student ID", "Gender", *old.survey.questionnaire.names]
    genders = old.survey.attributes["Gender"]
    rows = [[name, genders[k], *_answers(old.survey, k)] for k, name in inside.items()]
    _write(year.past, header, rows)
    _write(year.past_pairs, ["A", "B"], [[inside[a], inside[b]] for a, b in pairs])


def _answers(survey: Survey, row: int) -> list[str]:
    questions = survey.questionnaire.questions
    codes = survey.answers[row].tolist()
    return [
        "" if code < 0 else question.levels[code]
        for question, code in zip(questions, codes, strict=True)
    ]


ROOM_HEADER = ["Hall", "Floor", "Room", "Beds", "Gender", "Needs met", "State", "Note"]


def _rooms(size: Size, women: float) -> list[list[str]]:
    """Return one line a room; doubles and larger ones are for one gender, singles for anybody."""
    beds = [4] * size.quads + [3] * size.triples + [2] * size.doubles + [1] * size.singles
    per_floor = -(-len(beds) // (len(HALLS) * FLOORS))
    counts: dict[str, int] = {}
    shares = {2: 0.0, 3: 0.0, 4: 0.0}
    rows = []
    for k, capacity in enumerate(beds):
        place = k % (len(HALLS) * FLOORS)
        hall, floor = HALLS[place % len(HALLS)], place // len(HALLS) + 1
        number = counts[f"{hall}{floor}"] = counts.get(f"{hall}{floor}", 0) + 1
        gender = ""
        if capacity > 1:
            shares[capacity] += women
            gender = "F" if shares[capacity] >= 1 else "M"
            shares[capacity] -= gender == "F"
        met = "Accessible" if hall in ACCESSIBLE and floor == 1 else ""
        rows.append([hall, str(floor), f"{floor}{number:02d}", str(capacity), gender, met, "", ""])
    for hall in HALLS:
        for floor in range(1, FLOORS + 1):
            name = f"{floor}{per_floor + 9:02d}"
            rows.append([hall, str(floor), name, "1", "", "", "kept", "Kept for the RA"])
    return rows


def _requests(
    size: Size, ids: Sequence[str], genders: Sequence[str], rng: np.random.Generator
) -> list[list[str]]:
    """Return who wants whom, of one gender each, nobody in two mutual pairs or groups."""
    free = {
        gender: [int(k) for k in rng.permutation(size.students) if genders[int(k)] == gender]
        for gender in ("F", "M")
    }
    rows = []
    for k in range(size.groups):
        five = [free["FM"[k % 2]].pop() for _ in range(5)]
        for one, other in pairwise(five):
            rows += [[ids[one], ids[other]], [ids[other], ids[one]]]
    for k in range(size.mutual_pairs):
        pool = free["FM"[k % 2]]
        one, other = pool.pop(), pool.pop()
        rows += [[ids[one], ids[other]], [ids[other], ids[one]]]
    for k in range(size.one_sided):
        pool = free["FM"[k % 2]]
        rows.append([ids[pool.pop()], ids[pool[int(rng.integers(len(pool)))]]])
    rows[-1][1] = "somebody from camp"  # a name that nobody can match
    return rows


def _choices(ids: Sequence[str], rng: np.random.Generator) -> Iterable[list[str]]:
    """Yield three different halls for nine of ten students; some halls are wanted more."""
    popularity = np.arange(len(HALLS), 0, -1.0) ** 1.5
    popularity /= popularity.sum()
    for name in ids:
        if rng.random() < 0.9:
            yield [name, *rng.choice(HALLS, 3, replace=False, p=popularity).tolist()]


FIRST_NAMES = (
    "Ada",
    "Bea",
    "Cal",
    "Dara",
    "Eli",
    "Flo",
    "Gil",
    "Hana",
    "Ines",
    "Jun",
    "Kai",
    "Lea",
)
LAST_NAMES = ("Ash", "Brook", "Cole", "Dale", "Eck", "Ford", "Glen", "Hale", "Ives")


def _addresses(ids: Sequence[str]) -> Iterable[list[str]]:
    """Yield names and e-mails as an office has them; one student in five hundred has no e-mail."""
    for k, name in enumerate(ids):
        first, last = FIRST_NAMES[k % len(FIRST_NAMES)], LAST_NAMES[k % len(LAST_NAMES)]
        email = "" if k % 500 == 7 else f"{first}.{last}.{k}@students.example".lower()
        yield [name, first, last, email]


def _write(path: Path, header: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
