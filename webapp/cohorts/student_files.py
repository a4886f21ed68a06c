"""Files about the students of a cohort: one preview for requests, choices, needs and all others.

Every kind of file defines the uses of its columns, guesses them, and reads the rows. The student of
a row is found here for all of them. A name that two students share becomes a question.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine.tabular.layout import SheetLayout
from engine.tabular.pair_choices import find_pairs_layout, in_row
from engine.tabular.source import Source
from engine.tabular.table import Table, build_table
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.cohorts.student_finder import Candidates, Found, StudentFinder
from webapp.common.errors import Refusal
from webapp.common.formats import counted, listed
from webapp.tabular.reading import read_source, refusals

WHO, IGNORE = "who", "ignore"
MAX_LISTED = 20  # rows of a kind listed on a page


class StudentFileError(Refusal):
    """Refusal of a file about students, in one sentence."""


@dataclass(frozen=True, slots=True)
class FileChoices:
    """Choices for reading a file: a use for every column, and the students that cells mean.

    Students are given as positions, by key. ``without`` leaves out rows without a certain student;
    ``as_blank`` reads answers unknown to the cohort as blanks; ``back`` is the page before.
    """

    uses: tuple[str, ...]
    same: Mapping[str, int] = field(default_factory=dict)
    without: bool = False
    as_blank: bool = False
    layout: SheetLayout = field(default_factory=SheetLayout)
    back: str = ""

    def columns(self, use: str) -> list[int]:
        """Return the columns of one use, in the order of the file."""
        return [k for k, own in enumerate(self.uses) if own == use]

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a JSON field."""
        return {
            "uses": list(self.uses),
            "same": dict(self.same),
            "without": self.without,
            "as_blank": self.as_blank,
            "layout": self.layout.to_json(),
            "back": self.back,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "FileChoices":
        """Return the choices from the output of ``to_json``."""
        layout = SheetLayout.from_json(data["layout"]) or SheetLayout()
        return cls(**{**data, "uses": tuple(data["uses"]), "layout": layout})


@dataclass(frozen=True, slots=True)
class UnsureRow:
    """A row without a certain student: several have the name, or none has."""

    row: int
    text: str
    key: str
    near: Candidates
    is_question: bool = False

    @property
    def sentence(self) -> str:
        """The message about the row, as a question if several students have the name."""
        if self.is_question:
            name = self.near.students[0].name or self.text
            return _("%(students)s students are called %(name)s. Which one?") % {
                "students": len(self.near.students),
                "name": name[:60],
            }
        if self.near.students:
            return _("No student has this name; %(why)s.") % {"why": self.near.why}
        return _("No student of this cohort has this name or a similar one.")


@dataclass(slots=True)
class StudentFile:
    """The content of a file under the chosen uses: the data to be saved, and the problems.

    ``facts`` describe the import, ``problems`` prevent it, ``sample`` shows the first rows as they
    will be stored under ``sample_header``. ``content`` is the data that the kind of file saves.
    ``why_nothing`` says why a file about known students has nothing to import, "" otherwise.
    """

    content: Any
    n_kept: int
    words: str  # "5 requests"
    facts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    sample_header: tuple[str, ...] = ()
    sample: list[tuple[str, ...]] = field(default_factory=list)
    unsure: list[UnsureRow] = field(default_factory=list)
    n_unknown_rows: int = 0
    n_unknown_answers: int = 0
    why_nothing: str = ""

    @property
    def questions(self) -> list[UnsureRow]:
        """The rows whose name several students have."""
        return [one for one in self.unsure if one.is_question]

    @property
    def obstacles(self) -> list[str]:
        """All problems that prevent the import, one sentence each."""
        asked = [
            _("Row %(row)s: %(sentence)s") % {"row": f"{one.row:,}", "sentence": one.sentence}
            for one in self.questions
        ]
        return [*self.problems, *asked]

    @property
    def can_import(self) -> bool:
        """Return True if there is something to import and no problem prevents it."""
        return self.n_kept > 0 and not self.obstacles


def left_out_words(n_rows: int) -> str:
    """Return "; 2 rows of people outside this cohort left out", or "" for no such row."""
    return (
        "; "
        + ngettext(
            "%(count)s row of people outside this cohort left out",
            "%(count)s rows of people outside this cohort left out",
            n_rows,
        )
        % {"count": f"{n_rows:,}"}
        if n_rows
        else ""
    )


@dataclass(frozen=True, slots=True)
class StudentFileKind:
    """One kind of file about students.

    Parameters
    ----------
    key : str, of the address; ``title`` heads the page.
    uses : {value: label} of the uses of columns in a cohort.
    guess : a use for every column of a table.
    read : the content of the file under the choices.
    save : saves the content in the caller's transaction; returns one sentence.
    single : the uses that only one column may have.
    has_header : False if a first row that names a student is data.
    """

    key: str
    title: str
    uses: Callable[[Cohort], dict[str, str]]
    guess: Callable[[Cohort, StudentFinder, Table], list[str]]
    read: Callable[[Cohort, StudentFinder, Table, FileChoices], StudentFile]
    save: Callable[[User, Cohort, StudentFile, str], str]
    single: Callable[[str], bool] = lambda use: False
    has_header: bool = False


_kinds: dict[str, StudentFileKind] = {}


def register_student_file(kind: StudentFileKind) -> None:
    """Register a kind of file; the applications that save it call this when they are ready."""
    _kinds[kind.key] = kind


def student_file_kind(key: str) -> StudentFileKind | None:
    """Return a kind of file by its key."""
    return _kinds.get(key)


def table_of_students(
    kind: StudentFileKind, finder: StudentFinder, source: Source, layout: SheetLayout | None = None
) -> Table:
    """Return the table of a file; its first row is a header unless it names students."""
    with refusals():
        if layout is None:
            layout = find_pairs_layout(source, finder.people)
            if kind.has_header and layout.header_row == 0:
                layout = replace(layout, header_row=source.sheets[layout.sheet].lines[0].number)
        return build_table(source, layout)


def read_student_file(
    kind: StudentFileKind, cohort: Cohort, size: int, read: Callable[[], bytes]
) -> StudentFile:
    """Read a file without a preview; refuse it if the preview would show a question.

    Raises
    ------
    TableRefusal, StudentFileError
        One sentence; nothing was saved.
    """
    source = read_source(size, read)
    finder = StudentFinder(cohort)
    table = table_of_students(kind, finder, source)
    choices = FileChoices(tuple(kind.guess(cohort, finder, table)), layout=table.layout)
    found = kind.read(cohort, finder, table, choices)
    if found.obstacles:
        more = (
            " " + _("%(more)s more.") % {"more": f"{len(found.obstacles) - 1:,}"}
            if len(found.obstacles) > 1
            else ""
        )
        raise StudentFileError(
            _("%(problem)s%(more)s Nothing was changed.")
            % {"problem": found.obstacles[0], "more": more}
        )
    return found


class RowStudents:
    """The students of a file's rows, by the columns that identify them."""

    def __init__(self, finder: StudentFinder, table: Table, choices: FileChoices) -> None:
        self._finder, self._table, self._choices = finder, table, choices
        self._columns = choices.columns(WHO)
        self.unsure: list[UnsureRow] = []
        self.problems: list[str] = []
        self.n_unknown = 0
        if not self._columns:
            self.problems.append(
                _("No column identifies the students. Choose the one with ids, e-mails or names.")
            )

    def of(self, position: int) -> Found | None:
        """Return the student of a row; record the row if no student is certain."""
        row, number = self._table.rows[position], self._table.row_numbers[position]
        cells = [row[k] for k in self._columns if row[k]]
        if not cells:
            return None
        whole = " ".join(cells)
        key = in_row(whole, number)
        settled = self._choices.same.get(key)
        if settled is not None and settled < len(self._finder.students):
            return self._finder.students[settled]
        texts = cells if len(cells) == 1 else [*cells, whole]
        named = [found for text in texts if (found := self._finder.all_of(text))]
        together = (
            [one for one in named[0] if all(one in found for found in named)] if named else []
        )
        if len(together) == 1:
            return together[0]
        if named and not together:
            self.problems.append(
                _(
                    "Row %(number)s: %(cells)s are different students. Correct the file, or "
                    "choose another use for one of these columns."
                )
                % {"number": f"{number:,}", "cells": listed(cells)[:80]}
            )
            return None
        self.n_unknown += 1
        if together:
            if not self._choices.without:
                near = Candidates(tuple(together), is_sure=False, edits=(0,) * len(together))
                self.unsure.append(UnsureRow(number, whole, key, near, is_question=True))
        elif len(self.unsure) < MAX_LISTED:
            self.unsure.append(UnsureRow(number, whole, key, self._finder.close(whole)))
        return None

    def finish(self, found: StudentFile) -> StudentFile:
        """Add the unsure rows to the content of the file."""
        found.unsure = sorted(self.unsure, key=lambda one: not one.is_question)
        found.problems = [*self.problems[:MAX_LISTED], *found.problems]
        found.n_unknown_rows = self.n_unknown
        if self.n_unknown:
            rows = counted(self.n_unknown, "row")
            found.facts.append(
                _("%(rows)s without a certain student of this cohort left out.") % {"rows": rows}
            )
        return found
