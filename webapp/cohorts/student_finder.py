"""Finding the students that files and forms name: by id, e-mail, name or code."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from engine.tabular.person_search import SURE_EDITS, By, People
from engine.tabular.text import fold_name
from webapp.cohorts.models import Cohort

CLOSE = 80.0  # percentage of equal letters from which another spelling is offered

# Sources of other names of students in files, such as the codes of a questionnaire.
_codes: list[Callable[[Cohort], Mapping[str, str]]] = []


def register_codes(function: Callable[[Cohort], Mapping[str, str]]) -> None:
    """Add a source of codes: for a cohort, the original id of a student by each code."""
    _codes.append(function)


class Found(NamedTuple):
    """Identity of a student; a tuple, since a page looks through thousands."""

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
    """Students that a text may mean, nearest first; ``is_sure`` if only one is close.

    ``edits`` are the letters by which each differs from the text: none if the names are equal.
    """

    students: tuple[Found, ...]
    is_sure: bool
    edits: tuple[int, ...]

    def but(self, key: int) -> "Candidates":
        """Return the candidates without one student, since nobody requests themselves."""
        kept = [k for k, student in enumerate(self.students) if student.pk != key]
        return Candidates(
            tuple(self.students[k] for k in kept),
            self.is_sure and len(kept) == 1,
            tuple(self.edits[k] for k in kept),
        )

    @property
    def why(self) -> str:
        """The reason why they are offered, without any name."""
        if not self.students:
            return ""
        if len(self.students) == 1:
            return _differing(self.edits[0]) if self.edits[0] else _("only the spelling differs")
        all_of = "both" if len(self.students) == 2 else "all"
        if not any(self.edits):
            return _("%(all_of)s have it in another spelling") % {"all_of": all_of}
        if len(set(self.edits)) == 1:
            return ngettext(
                "%(all_of)s differ in %(count)s letter",
                "%(all_of)s differ in %(count)s letters",
                count := self.edits[0],
            ) % {"all_of": all_of, "count": f"{count:,}"}
        *most, last = map(str, self.edits)
        return _("%(most)s and %(last)s letters differ") % {"most": ", ".join(most), "last": last}


class StudentFinder:
    """Finder of a cohort's students by id, id on screen, e-mail, name or code.

    The first match counts, in this order: the id as it is written, the id in any case, the id on
    screen, the e-mail, the name (accents, capitals and the order of its parts do not count), the
    code of a questionnaire. A name that two share finds neither: both are candidates.
    """

    def __init__(self, cohort: Cohort) -> None:
        self._cohort = cohort
        rows = cohort.students.order_by("number").values_list(*Found._fields)
        self.students = [Found(*row) for row in rows]
        self._by_id = {s.original_id.strip().casefold(): s for s in self.students}
        self._by_number = {s.number: s for s in self.students}

    @cached_property
    def people(self) -> People:
        """The students by their identities, in the order of their numbers."""
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
        """Return the student that a text names with certainty."""
        found = self.all_of(text)
        return found[0] if len(found) == 1 else None

    def all_of(self, text: str) -> tuple[Found, ...]:
        """Return the students that a text names equally: one, several with one name, or none."""
        text = text.strip()
        if not text:
            return ()
        for kind in By:
            found = self.people.all_by(kind, text)
            if found:
                return tuple(self.students[k] for k in found)
            if kind is By.ID and re.fullmatch(r"[sS]-\d{1,9}", text):
                known = self._by_number.get(int(text[2:]))
                return () if known is None else (known,)
        known = self._by_code.get(text.casefold())
        return () if known is None else (known,)

    def close(self, text: str, limit: int = 3) -> Candidates:
        """Return students whose id is a letter or two away, or whose name is equal or nearly so.

        An id that differs only in spaces, signs and case is the only candidate.
        """
        same = self._by_letters.get(_letters(text), ())
        if _letters(text) and len(same) == 1:
            return Candidates(tuple(same), is_sure=True, edits=(0,))
        namesakes = self._namesakes.get(fold_name(text), ())
        if fold_name(text) and namesakes:
            shown = tuple(namesakes[:limit])
            return Candidates(shown, is_sure=len(namesakes) == 1, edits=(0,) * len(shown))
        named = self.people.near(text)
        if named is not None:
            nearest = named.positions[:limit]
            return Candidates(
                tuple(self.students[k] for k in nearest),
                named.is_sure,
                (named.edits,) * len(nearest),
            )
        wanted = text.strip().casefold()
        near = process.extract(
            wanted, self._by_id.keys(), scorer=fuzz.ratio, score_cutoff=CLOSE, limit=limit
        )
        edits = tuple(OSA.distance(wanted, name) for name, *_ in near)
        is_sure = len(near) == 1 and edits[0] <= SURE_EDITS
        return Candidates(tuple(self._by_id[name] for name, *_ in near), is_sure, edits)


def _differing(edits: int) -> str:
    return (
        _("one letter differs") if edits == 1 else _("%(edits)s letters differ") % {"edits": edits}
    )


def _grouped(pairs: Iterable[tuple[str, Found]]) -> dict[str, list[Found]]:
    found: dict[str, list[Found]] = defaultdict(list)
    for key, student in pairs:
        found[key].append(student)
    return found


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()
