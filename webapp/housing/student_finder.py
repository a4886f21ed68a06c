"""Finding the students whom files and forms name: by id, e-mail, name or code."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from webapp.cohorts.models import Cohort
from webapp.cohorts.tables.people import SURE_EDITS, People, fold_name
from webapp.cohorts.tables.table import Table
from webapp.common.formats import counted
from webapp.housing.errors import HousingError

CLOSE = 80.0  # per cent of equal letters from which another spelling is offered

# What gives students other names that files may use, such as the codes of a questionnaire.
_codes: list[Callable[[Cohort], Mapping[str, str]]] = []


def register_codes(function: Callable[[Cohort], Mapping[str, str]]) -> None:
    """Add a source of codes: for a cohort, the original id of a student by each code."""
    _codes.append(function)


class Found(NamedTuple):
    """What names a student; a tuple, for a page looks through thousands."""

    pk: int
    number: int
    original_id: str
    email: str
    name: str

    @property
    def label(self) -> str:
        """The id on screen."""
        return f"S-{self.number}"


@dataclass(frozen=True, slots=True)
class Candidates:
    """Whom a text may mean, nearest first; ``is_sure`` where it is one and nobody else is close.

    ``edits`` are the letters by which each differs from the text: none where they are called so.
    """

    students: tuple[Found, ...]
    is_sure: bool
    edits: tuple[int, ...]

    def but(self, key: int) -> "Candidates":
        """Return the same without one student: nobody asks for themselves."""
        kept = [k for k, student in enumerate(self.students) if student.pk != key]
        return Candidates(
            tuple(self.students[k] for k in kept),
            self.is_sure and len(kept) == 1,
            tuple(self.edits[k] for k in kept),
        )

    @property
    def why(self) -> str:
        """Why they are offered, without a name of anybody."""
        if not self.students:
            return ""
        if len(self.students) == 1:
            return _differing(self.edits[0]) if self.edits[0] else "written otherwise, else alike"
        all_of = "both" if len(self.students) == 2 else "all"
        if not any(self.edits):
            return f"{all_of} are called so"
        if len(set(self.edits)) == 1:
            return f"{all_of} differ in {counted(self.edits[0], 'letter')}"
        *most, last = map(str, self.edits)
        return f"{', '.join(most)} and {last} letters differ"


class StudentFinder:
    """Finds a student of one cohort by id, by the id on screen, by e-mail, name or code.

    What two share, such as a name, finds neither: both are candidates.
    """

    def __init__(self, cohort: Cohort) -> None:
        self._cohort = cohort
        rows = cohort.students.order_by("number").values_list(*Found._fields)
        self.students = [Found(*row) for row in rows]
        self._by_id = {s.original_id.strip().casefold(): s for s in self.students}
        self._by_number = {s.number: s for s in self.students}

    @cached_property
    def _people(self) -> People:
        return People(
            labels=tuple(s.original_id.strip() for s in self.students),
            emails=tuple(s.email for s in self.students),
            names=tuple(s.name for s in self.students),
        )

    @cached_property
    def _by_letters(self) -> dict[str, list[Found]]:
        return _grouped((_letters(s.original_id), s) for s in self.students)

    @cached_property
    def _namesakes(self) -> dict[str, list[Found]]:
        return _grouped((fold_name(s.name), s) for s in self.students)

    @cached_property
    def _by_code(self) -> dict[str, Found]:
        students = {s.original_id: s for s in self.students}
        codes = [item for function in _codes for item in function(self._cohort).items()]
        return {code.casefold(): students[key] for code, key in codes if key in students}

    def find(self, text: str) -> Found | None:
        """Return the student whom a text names for sure."""
        text = text.strip()
        known = self._by_id.get(text.casefold())
        if known is not None:
            return known
        if re.fullmatch(r"[sS]-\d{1,9}", text):
            return self._by_number.get(int(text[2:]))
        found = self._people.find(text)
        return self._by_code.get(text.casefold()) if found is None else self.students[found]

    def close(self, text: str, limit: int = 3) -> Candidates:
        """Return students whose id is a letter or two away, or who are called so or nearly so.

        An id that differs in spaces, signs and case alone stands by itself.
        """
        same = self._by_letters.get(_letters(text), ())
        if _letters(text) and len(same) == 1:
            return Candidates(tuple(same), is_sure=True, edits=(0,))
        namesakes = self._namesakes.get(fold_name(text), ())
        if fold_name(text) and namesakes:
            shown = tuple(namesakes[:limit])
            return Candidates(shown, is_sure=len(namesakes) == 1, edits=(0,) * len(shown))
        named = self._people.near(text)
        if named is not None:
            return Candidates((self.students[named.position],), named.is_sure, (named.edits,))
        wanted = text.strip().casefold()
        near = process.extract(
            wanted, self._by_id.keys(), scorer=fuzz.ratio, score_cutoff=CLOSE, limit=limit
        )
        edits = tuple(OSA.distance(wanted, name) for name, *_ in near)
        is_sure = len(near) == 1 and edits[0] <= SURE_EDITS
        return Candidates(tuple(self._by_id[name] for name, *_ in near), is_sure, edits)


def _differing(edits: int) -> str:
    return "one letter differs" if edits == 1 else f"{edits} letters differ"


def _grouped(pairs: Iterable[tuple[str, Found]]) -> dict[str, list[Found]]:
    found: dict[str, list[Found]] = defaultdict(list)
    for key, student in pairs:
        found[key].append(student)
    return found


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def columns_of(table: Table, wanted: str, missing: str) -> tuple[int, list[int]]:
    """Return the column that says who a row is of, and those whose names ``wanted`` fits.

    Where no name fits, the first other column is meant if it is the only one.

    Raises HousingError with the sentence ``missing`` when nothing fits.
    """
    names = [name.casefold() for name in table.header]
    found = [k for k, name in enumerate(names) if re.search(wanted, name)]
    rest = [k for k in range(len(names)) if k not in found]
    if table.n_columns < 2 or not rest:
        raise HousingError(missing)
    who = next((k for k in rest if re.search(r"student|\bid\b|from|asker|by", names[k])), rest[0])
    return who, found or [k for k in range(len(names)) if k != who]
