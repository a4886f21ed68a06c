"""Files of late arrivals: read like the cohort's own survey, whoever wrote the file."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine.tabular.choices import Role
from engine.tabular.chosen_table import ChosenTable
from engine.tabular.facts import facts_of
from engine.tabular.guesses import guess_choices
from engine.tabular.id_column import find_id_column, is_id_title
from engine.tabular.ids import is_no_id
from engine.tabular.makers import is_e_mail_name, own_column
from engine.tabular.meanings import same_meaning, same_writing
from engine.tabular.multiple_answers import SEPARATORS
from engine.tabular.recipes import apply_recipe
from engine.tabular.scales import declines_to_answer
from engine.tabular.student_files import (
    e_mail_column,
    in_name_order,
    is_wanted_title,
    name_columns,
)
from engine.tabular.survey_table import is_blank
from engine.tabular.table import Table
from engine.tabular.text import fold_answer, fold_id, fold_title
from webapp.cohorts.models import Cohort
from webapp.cohorts.services.recipes import known_form
from webapp.cohorts.student_files import IGNORE, MAX_LISTED, FileChoices, StudentFile
from webapp.cohorts.student_finder import StudentFinder
from webapp.common.formats import counted

ID, EMAIL, NAME = "id", "email", "name"
QUESTION, RULE = "question ", "rule "  # before the name of the question or rule that a column holds
_SHOWN = 8
_SHOWN_LEVELS = 4
_ENOUGH = 0.5
_NO_STUDENTS = ("test", "header", "note")  # reasons for which a survey leaves out a row
_ID_TITLES = {"id", "studentid", "studentnumber", "student", "originalid"}


def late_uses(cohort: Cohort) -> dict[str, str]:
    """Return the uses of columns: identity, a question of the cohort, or a rule of the cohort."""
    return (
        {ID: _("Id"), EMAIL: "E-mail", NAME: _("Name, or a part of it")}
        | {
            QUESTION + q["name"]: _("Question: %(name)s") % {"name": q["name"]}
            for q in cohort.questions
        }
        | {RULE + name: _("Rule: %(name)s") % {"name": name} for name in cohort.constraints}
        | {IGNORE: _("Leave out")}
    )


def guess_late(cohort: Cohort, finder: StudentFinder, table: Table) -> list[str]:
    """Return a use for every column, by titles and wordings; ids by the cohort's id format."""
    uses = [IGNORE] * table.n_columns
    names = _names_of(cohort)
    for k, title in enumerate(table.header):
        wording = table.wordings[k] if k < len(table.wordings) else ""
        use = names.get(fold_title(wording)) or names.get(fold_title(title))
        if use and use not in uses and own_column(table.layout.maker, title, k) is None:
            uses[k] = use
    ids = _id_column(finder, table, [k for k, use in enumerate(uses) if use == IGNORE])
    if ids is not None:
        uses[ids] = ID
    mail = e_mail_column(table, [] if ids is None else [ids])
    if mail is not None and uses[mail] == IGNORE:
        uses[mail] = EMAIL
    for k in name_columns(table, [k for k, use in enumerate(uses) if use != IGNORE]):
        uses[k] = NAME
    return uses


def _names_of(cohort: Cohort) -> dict[str, str]:
    """Return {folded title: use} of the questions and rules of a cohort."""
    found: dict[str, str] = {}
    for question in cohort.questions:
        use = QUESTION + question["name"]
        for said in (question.get("wording", ""), question["name"]):
            found.setdefault(fold_title(said), use)
    for name in cohort.constraints:
        found.setdefault(fold_title(name), RULE + name)
    found.pop("", None)
    return found


def _id_column(finder: StudentFinder, table: Table, columns: Sequence[int]) -> int | None:
    """Return the column whose cells have the form of the cohort's ids."""
    ids = [student.original_id for student in finder.students]
    shapes = Counter(map(_shape, ids))
    mails = 2 * sum("@" in one for one in ids) > len(ids)

    def fits(k: int) -> float:
        cells = [cell for cell in table.column(k) if not is_no_id(cell)]
        alike = sum("@" in cell if mails else _shape(cell) in shapes for cell in cells)
        return alike / len(cells) if cells and not is_wanted_title(table, k) else 0.0

    titled = [k for k in columns if fold_title(table.header[k]) in _ID_TITLES]
    if titled:
        return titled[0]
    best = max(columns, key=lambda k: (fits(k), -k), default=None)
    if best is not None and fits(best) >= _ENOUGH:
        return best
    person = find_id_column(facts_of(table), None)
    if person is not None and person.index in columns:
        return person.index
    return 0 if not table.layout.maker and 0 in columns else None


def _shape(text: str) -> str:
    """Return the shape of an id: 9 for a run of digits, a for a run of letters."""
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "9", text))


def read_late(
    cohort: Cohort, finder: StudentFinder, table: Table, choices: FileChoices
) -> StudentFile:
    """Return the new students as rows of "id", questions and rules, or the problems."""
    reader = _Reader(cohort, table, choices)
    taken = {fold_id(student.original_id).casefold() for student in finder.students}
    problems = reader.problems_of_columns()
    rows: list[dict[str, str]] = []
    numbers: list[int] = []
    seen: dict[str, int] = {}  # row number of every id of the file
    for position, number in enumerate(table.row_numbers):
        row = reader.row(position)
        if not any(row.values()) or number in reader.left_out:
            continue
        if ID in choices.uses:
            key = fold_id(row[ID]).casefold()
            problems += _problems_of_id(cohort, row[ID], number, key in taken, seen.get(key))
            seen.setdefault(key, number)
        rows.append(row)
        numbers.append(number)
    problems += reader.problems
    asked = {question["name"] for question in cohort.questions}
    blank = [name for name in asked if not any(row.get(name) for row in rows)]
    unused = [
        title
        for k, (title, use) in enumerate(zip(table.header, choices.uses, strict=True))
        if use == IGNORE
        and own_column(table.layout.maker, title, k) is None
        and k not in reader.split_columns
    ]
    facts = [
        sentence(count) % {"count": f"{count:,}"}
        for count, sentence in (
            (len(reader.left_out), _left_out),
            (len(blank), _without_answer),
            (reader.n_as_blank, _as_blank),
        )
        if count
    ]
    if unused:
        facts.append(
            ngettext(
                "%(count)s column not read: %(unused)s.",
                "%(count)s columns not read: %(unused)s.",
                len(unused),
            )
            % {"count": f"{len(unused):,}", "unused": ", ".join(unused[:3])[:120]}
        )
    sample = [
        (*(row.get(name, "")[:40] for name in (ID, EMAIL, NAME)), _answered(row, asked))
        for row in rows[:_SHOWN]
    ]
    return StudentFile(
        content=(rows, numbers, unused),
        n_kept=len(rows),
        words=counted(len(rows), "student"),
        facts=facts,
        problems=problems[: 5 * MAX_LISTED],
        sample_header=(_("Id"), "E-mail", _("Name"), _("Answers")),
        sample=sample,
        n_unknown_answers=reader.n_unknown,
    )


def _left_out(count: int) -> str:
    return ngettext("%(count)s test or note left out.", "%(count)s test or notes left out.", count)


def _without_answer(count: int) -> str:
    return ngettext(
        "%(count)s question without any answer.",
        "%(count)s questions without any answer.",
        count,
    )


def _as_blank(count: int) -> str:
    return ngettext(
        "%(count)s answer counted as a blank.", "%(count)s answers counted as a blank.", count
    )


def _answered(row: Mapping[str, str], asked: set[str]) -> str:
    answered = sum(bool(row.get(name)) for name in asked)
    return _("%(answered)s of %(asked)s") % {"answered": answered, "asked": len(asked)}


def _problems_of_id(
    cohort: Cohort, text: str, number: int, is_taken: bool, first: int | None
) -> list[str]:
    if not text:
        return [
            _("Row %(number)s has no id. Give each student the id of your housing system.")
            % {"number": f"{number:,}"}
        ]
    if is_taken:
        return [
            _("Row %(number)s: %(text)s is in %(cohort)s already. Leave it out.")
            % {"number": f"{number:,}", "text": text[:60], "cohort": cohort.name}
        ]
    if first is not None:
        return [
            _("Row %(number)s: %(text)s stands in row %(first)s already. Leave one out.")
            % {"number": f"{number:,}", "text": text[:60], "first": f"{first:,}"}
        ]
    return []


class _Reader:
    """Reader of the cells of a late file in the cohort's own words."""

    def __init__(self, cohort: Cohort, table: Table, choices: FileChoices) -> None:
        self._cohort, self._table, self._choices = cohort, table, choices
        recipe = known_form(cohort.organisation_id, table)
        as_survey = guess_choices(table) if recipe is None else apply_recipe(table, recipe.content)
        self.left_out = {n for n, why in as_survey.left_out.items() if why in _NO_STUDENTS}
        self._questions = {q["name"]: q for q in cohort.questions}
        self._names = in_name_order(table, choices.columns(NAME))
        self._cells = self._cells_by_question(ChosenTable(table, as_survey))
        self._levels: dict[tuple[str, str], str | None] = {}
        self.problems: list[str] = []
        self.n_unknown = self.n_as_blank = 0

    def problems_of_columns(self) -> list[str]:
        """Return the problems of the columns' uses."""
        if ID not in self._choices.uses:
            return [
                _("No column contains the ids of your housing system. Choose the column that does.")
            ]
        if self._is_of_another_kind():
            return [
                _(
                    "No column is titled as a question or a rule of %(cohort)s, or as ids. "
                    "Choose another file, or title its columns."
                )
                % {"cohort": self._cohort.name}
            ]
        return []

    def _is_of_another_kind(self) -> bool:
        """Return True if only guessed ids are read of several columns, as of a list of rooms."""
        uses = self._choices.uses
        is_read = bool(self._cells) or any(use.startswith(RULE) for use in uses)
        title = self._table.header[uses.index(ID)]
        is_titled = is_id_title(title) or fold_title(title) in _ID_TITLES or is_e_mail_name(title)
        return not is_read and not is_titled and IGNORE in uses

    def _cells_by_question(self, survey: ChosenTable) -> dict[str, Sequence[str]]:
        """Return {question: its cells}, with the groups and split columns of the cohort's file."""
        made = {
            survey.name(k): k
            for k, column in enumerate(survey.choices.columns)
            if column.role is Role.QUESTION
        }
        wordings = {fold_title(survey.wording(k)): k for k in made.values()}
        found: dict[str, Sequence[str]] = {}
        self.split_columns: set[int] = set()
        for k, use in enumerate(self._choices.uses):
            if use.startswith(QUESTION):
                name = use.removeprefix(QUESTION)
                is_grouped = survey.choices.columns[k].groups is not None
                found[name] = survey.all_cells(k) if is_grouped else self._table.column(k)
        for name, question in self._questions.items():
            if name in found:
                continue
            k = made.get(name, wordings.get(fold_title(question.get("wording", "")), -1))
            if k >= self._table.n_columns:
                found[name] = survey.all_cells(k)
                part = survey.choices.columns[k].part
                self.split_columns |= set() if part is None else {part.parent}
            else:
                found |= self._split(name, question)
        return found

    def _split(self, name: str, question: Mapping[str, str]) -> dict[str, Sequence[str]]:
        """Return the cells of one option of a column that was split in the cohort's file."""
        parent, separator, option = question.get("wording", "").rpartition(": ")
        if not separator or set(question["levels"]) != {"No", "Yes"}:
            return {}
        wanted = fold_title(parent)
        for k, title in enumerate(self._table.header):
            wording = self._table.wordings[k] if k < len(self._table.wordings) else ""
            if wanted in (fold_title(wording), fold_title(title)):
                self.split_columns.add(k)
                return {name: [_chosen(cell, option) for cell in self._table.column(k)]}
        return {}

    def row(self, position: int) -> dict[str, str]:
        """Return one student: id, e-mail, name, and levels of the questions and rules."""
        cells, columns = self._table.rows[position], self._choices.columns
        ids = [cells[k] for k in columns(ID)]
        mails = [cells[k] for k in columns(EMAIL)] or [one for one in ids if "@" in one]
        row = {
            ID: "" if not ids or is_no_id(ids[0]) else ids[0],
            EMAIL: mails[0] if mails else "",
            NAME: " ".join(cells[k] for k in self._names if cells[k]),
        }
        number = self._table.row_numbers[position]
        for name in self._questions:
            if name in self._cells:
                row[name] = self._level(name, self._cells[name][position], number)
        for name in self._cohort.constraints:
            for k in columns(RULE + name):
                row[name] = "" if is_blank(cells[k]) else cells[k]
        return row

    def _level(self, name: str, cell: str, number: int) -> str:
        key = (name, cell)
        if key not in self._levels:
            self._levels[key] = level_of(cell, self._questions[name]["levels"])
        level = self._levels[key]
        if level is not None:
            return level
        self.n_unknown += 1
        if self._choices.as_blank:
            self.n_as_blank += 1
            return ""
        if number not in self.left_out:
            self.problems.append(
                _("Row %(number)s, %(question)s: %(problem)s")
                % {
                    "number": f"{number:,}",
                    "question": name,
                    "problem": unknown_answer(cell, self._questions[name]["levels"]),
                }
            )
        return cell


def _chosen(cell: str, option: str) -> str:
    """Return "Yes" or "No" for an option in a cell with any separator, "" for a blank cell."""
    if is_blank(cell):
        return ""
    wanted = fold_answer(option)
    for separator in SEPARATORS.values():
        if wanted in (fold_answer(part) for part in separator.split(cell)):
            return "Yes"
    return "No"


def level_of(cell: str, levels: Sequence[str]) -> str | None:
    """Return the level that a cell means: "" for a blank, None for an unknown answer."""
    if cell in levels:
        return cell
    found = same_writing(cell, levels) or same_meaning(cell, levels)
    if found is not None:
        return found
    return "" if is_blank(cell) or declines_to_answer(cell) else None


def unknown_answer(cell: str, levels: Sequence[str]) -> str:
    """Return the sentence on an answer that a question does not have."""
    shown = ", ".join(f"“{level[:30]}”" for level in levels[:_SHOWN_LEVELS])
    more = (
        " " + _("and %(more)s more") % {"more": len(levels) - _SHOWN_LEVELS}
        if len(levels) > _SHOWN_LEVELS
        else ""
    )
    return _(
        "“%(cell)s” is not an answer to this question. Its answers are "
        "%(shown)s%(more)s. Use one of them, or leave the cell blank."
    ) % {"cell": cell.strip()[:40], "shown": shown, "more": more}
