"""Unattended reading of a survey by the rules of the import page.

Automatic changes of the page are made and reported in notes. A question of the page is refused
with one sentence, unless ``fixes`` answers it: "all" uses every fix, "none" declines those that
can be declined and reads the file as it stands.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from engine.core.errors import InvalidProblemError
from engine.crf.questionnaire import Question, Questionnaire
from engine.tabular.answer_order import order_answers
from engine.tabular.cause_proposals import split_column
from engine.tabular.causes import Cause, State
from engine.tabular.choices import Choices, ColumnChoice, Kind, Role
from engine.tabular.chosen_table import ChosenTable
from engine.tabular.facts import facts_of
from engine.tabular.garbled import repaired
from engine.tabular.guesses import guess_choices
from engine.tabular.meanings import same_writing
from engine.tabular.numerals import groups_of_levels
from engine.tabular.preview import ColumnPreview, Preview, build_preview
from engine.tabular.recipes import column_keys
from engine.tabular.review import Review, review, use_all
from engine.tabular.scales import declines_to_answer
from engine.tabular.survey_table import fill_gaps, is_blank
from engine.tabular.table import Table
from engine.tabular.text import fold_title

Fixes = Literal["refuse", "all", "none"]
# Causes about rows, and those that concern only the training data.
_OF_ROWS = frozenset({"repeats", "blank ids", "unknown answers", "other words"})
_OF_QUESTIONS = frozenset(
    {"constant", "many answers", "not binary", "many values", "whole too few"}
)


@dataclass(frozen=True, slots=True)
class Unattended:
    """A survey that was read without questions: its preview, and notes on automatic changes."""

    preview: Preview
    notes: tuple[str, ...]


def read_unattended(
    table: Table, fixes: Fixes = "refuse", questionnaire: Questionnaire | None = None
) -> Unattended:
    """Return the content of a survey, by the questions of ``questionnaire`` if given.

    Raises
    ------
    InvalidProblemError
        One sentence: the question that the page would ask, or the problem that has no fix.
    """
    if fixes not in get_args(Fixes):
        known = ", ".join(get_args(Fixes))
        raise InvalidProblemError(f"fixes: expected one of {known}, received {fixes!r}.")
    choices = _with_ids(table, guess_choices(table, most_questions=None))
    if questionnaire is not None:
        choices = with_questionnaire(table, choices, questionnaire)
    is_known = questionnaire is not None
    found = _reviewed(table, choices)
    if fixes == "all":
        choices = use_all(found, lambda now: _reviewed(table, now), choices)
        if questionnaire is not None:  # a fix may give a question another use or other answers
            choices = _only(choices, questionnaire, table)
    elif fixes == "none":
        choices = choices.settle(*(c.key for c in found.causes if c.is_doubt and c.is_open))
    else:
        _refuse(found, is_known=is_known)
    found = _reviewed(table, choices)
    errors = [cause for cause in found.causes if _stops(cause, is_known=is_known)]
    if errors:
        raise InvalidProblemError(_sentence(errors[0], found.preview))
    return Unattended(found.preview, tuple(_notes(found, has_offers=not is_known)))


def _reviewed(table: Table, choices: Choices) -> Review:
    return review(build_preview(table, choices, most_questions=None))


def _with_ids(table: Table, choices: Choices) -> Choices:
    """Use the first column for ids if no other looks like ids and its cells all differ."""
    if any(column.role is Role.ID for column in choices.columns) or not table.n_columns:
        return choices
    cells = table.column(0)
    is_id = len(set(cells)) == len(cells) and not any(map(is_blank, cells))
    return choices.with_role([0], Role.ID) if is_id else choices


def _stops(cause: Cause, *, is_known: bool) -> bool:
    """Return True if a cause stops the reading; a model's question may have one answer only."""
    return cause.is_error and not (is_known and cause.key in _OF_QUESTIONS)


def _refuse(found: Review, *, is_known: bool) -> None:
    for cause in found.causes:
        if _stops(cause, is_known=is_known) or (cause.is_open and cause.is_doubt):
            raise InvalidProblemError(_sentence(cause, found.preview))


def _sentence(cause: Cause, preview: Preview) -> str:
    """Return the first problem with its row and column, and its remedy."""
    rows = [p for p in preview.errors if p.row is not None and p.column in cause.columns]
    if cause.key in _OF_ROWS and rows:
        said = f"{rows[0].sentence} {rows[0].detail}".rstrip()
        said += f" {cause.title}." if len(rows) > 1 else ""
    else:
        count = f" ({cause.count})" if cause.count else ""
        said = f"{cause.title}{count}."
        said += f" {cause.why}" if cause.why else ""
    if cause.fix is None:
        return said
    label = cause.fix.label[:1].lower() + cause.fix.label[1:]
    return f"{said} Correct the file, or add --fixes all to {label}."


def _notes(found: Review, *, has_offers: bool) -> list[str]:
    notes = []
    for cause in found.causes:
        count = f" ({cause.count})" if cause.count else ""
        if cause.state is State.DONE and cause.key == "needs":
            continue  # the command that places people reports which needs count
        if cause.state is State.DONE:
            notes.append(f"{cause.done or 'Done'}: {cause.title}{count}.")
        elif has_offers and cause.is_open and cause.fix is not None:
            label = cause.fix.label[:1].lower() + cause.fix.label[1:]
            notes.append(f"{cause.title}{count}: --fixes all would {label}.")
    return notes


# -- by the questions of a model -----------------------------------------------------------------


def with_questionnaire(table: Table, choices: Choices, questionnaire: Questionnaire) -> Choices:
    """Return the choices that read a file by given questions, found by name, title or wording.

    Raises InvalidProblemError if a question is missing.
    """
    choices = _with_parts(table, choices, questionnaire)
    place = {fold_title(text): k for text, k in _titles(table, choices).items()}
    missing = [q.name for q in questionnaire.questions if fold_title(q.name) not in place]
    if missing:
        raise InvalidProblemError(
            f"The file was made from other questions: {missing[0]} is missing."
        )
    asked = {place[fold_title(q.name)]: q for q in questionnaire.questions}
    columns = []
    for index, column in enumerate(choices.columns):
        if index in asked:
            columns.append(_asked_column(table, choices, index, asked[index]))
        elif column.role is Role.QUESTION:
            columns.append(replace(column, role=Role.IGNORE, reason="The model does not use it."))
        else:
            columns.append(column)
    choices = replace(choices, columns=tuple(columns))
    for index, question in asked.items():
        choices = choices.without_meanings(index, choices.meanings.get(index, {}))
        choices = choices.with_meanings(index, _meanings(table, choices, index, question))
    return choices


def _titles(table: Table, choices: Choices) -> dict[str, int]:
    """Return {text: column} of all titles and wordings of columns, names first."""
    places = range(len(choices.columns))
    chosen = ChosenTable(table, choices)
    texts = [(chosen.name(k), k) for k in places]
    texts += [(_header(table, k), k) for k in places]
    texts += [(chosen.wording(k), k) for k in places]
    texts += [(repaired(text), k) for text, k in texts]
    found: dict[str, int] = {}
    for text, k in texts:
        if text:
            found.setdefault(text, k)
    return found


def _with_parts(table: Table, choices: Choices, questionnaire: Questionnaire) -> Choices:
    """Split the columns of several answers whose options are questions of the questionnaire."""
    for index in range(table.n_columns):
        known = {fold_title(text) for text in _titles(table, choices)}
        missing = {fold_title(q.name) for q in questionnaire.questions} - known
        if not missing or facts_of(table)[index].several is None:
            continue
        split = split_column(table, index)(choices)
        added = {fold_title(column.name) for column in split.columns[len(choices.columns) :]}
        if added & missing:
            choices = split
    return choices


def _asked_column(table: Table, choices: Choices, index: int, question: Question) -> ColumnChoice:
    column = choices.columns[index]
    groups = column.groups
    style = facts_of(table)[index].numbers if index < table.n_columns else None
    if style is not None and not _fits(table, index, question.levels):
        groups = groups_of_levels(question.levels, style)
    return replace(
        column,
        role=Role.QUESTION,
        kind=Kind(question.kind),
        levels=question.levels,
        groups=groups,
        name=question.name if question.name != _header(table, index) else "",
    )


def _header(table: Table, index: int) -> str:
    return table.header[index] if index < table.n_columns else ""


def _fits(table: Table, index: int, levels: Sequence[str]) -> bool:
    return any(cell in levels for cell in table.answers(index))


def _meanings(table: Table, choices: Choices, index: int, question: Question) -> dict[str, str]:
    """Return the meanings of the cells of a question with another spelling than its answers."""
    if index >= table.n_columns or choices.columns[index].groups is not None:
        return {}
    made = facts_of(table)[index].made_dates
    found = {}
    for cell in table.answers(index):
        if cell in question.levels or cell in made:
            continue
        meant = same_writing(cell, question.levels)
        if meant is not None:
            found[cell] = meant
        elif declines_to_answer(cell):
            found[cell] = ""
    return found


def _only(choices: Choices, questionnaire: Questionnaire, table: Table) -> Choices:
    """Return the choices with the questions and answers of a questionnaire, and no others."""
    asked = {question.name: question for question in questionnaire.questions}
    chosen = ChosenTable(table, choices)
    columns = []
    for index, column in enumerate(choices.columns):
        question = asked.get(chosen.name(index))
        if question is None and column.role is Role.QUESTION:
            column = replace(column, role=Role.IGNORE)
        elif question is not None:
            kind = Kind(question.kind)
            column = replace(column, role=Role.QUESTION, kind=kind, levels=question.levels)
        columns.append(column)
    return replace(choices, columns=tuple(columns))


# -- the questions of several files --------------------------------------------------------------


def shared_questions(files: Sequence[tuple[str, Preview]]) -> Questionnaire:
    """Return the questions that files have in common, with the answers of all of them together.

    Raises InvalidProblemError if a file lacks a column of the first, or none is a question.
    """
    first_name, first = files[0]
    others = [(name, _by_key(preview)) for name, preview in files[1:]]
    questions = []
    for key, column in _by_key(first).items():
        found = [column]
        for name, columns in others:
            other = columns.get(key)
            if other is None and column.index < first.table.n_columns:
                raise InvalidProblemError(
                    f"{name} was made from other questions than {first_name}: "
                    f"{column.header or column.name} is missing."
                )
            found += [other] if other is not None else []
        roles = [one.choice.role for one in found]
        is_asked = Role.QUESTION in roles and all(
            one.choice.role is Role.QUESTION or one.n_distinct <= 1 for one in found
        )
        if is_asked and len(found) == len(files):
            questions.append(_joined(found))
    if not questions:
        raise InvalidProblemError(f"{first_name}: no column looks like a question with answers.")
    return Questionnaire(tuple(questions))


def _by_key(preview: Preview) -> dict[tuple[str, str], ColumnPreview]:
    """Return {(wording or title, option): column}: the key of a column across files."""
    keys = column_keys(preview.table)
    found = {}
    for column in preview.columns:
        part = column.choice.part
        key = (keys[part.parent], part.option) if part else (keys[column.index], "")
        found[key] = column
    return found


def _joined(columns: Sequence[ColumnPreview]) -> Question:
    """Return one question with the answers of several files, those that all gave included."""
    asked = [one.choice for one in columns if one.choice.role is Role.QUESTION]
    name = columns[0].name
    alike = [one.examples for one in columns if one.choice.role is not Role.QUESTION]
    levels = dict.fromkeys(level for one in asked for level in one.levels)
    levels |= dict.fromkeys(example for examples in alike for example in examples)
    if set(levels) == set(asked[0].levels):
        return Question(name, asked[0].kind.value, asked[0].levels)
    ordered, has_order = order_answers(levels)
    ordered = fill_gaps(ordered)
    kind = Kind.BINARY if len(ordered) == 2 else Kind.ORDINAL if has_order else Kind.NOMINAL
    return Question(name, kind.value, ordered)
