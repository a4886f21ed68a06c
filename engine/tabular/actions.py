"""Actions of the import preview's buttons, each a function from choices to choices."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.tabular.cause_proposals import (
    group_column,
    group_sizes,
    split_column,
    suggested,
)
from engine.tabular.causes import ActionError, Cause
from engine.tabular.checks import MAX_QUESTIONS
from engine.tabular.choices import MAX_LEVELS, SINGLE, Choices, Kind, Role, move_level
from engine.tabular.chosen_table import ChosenTable
from engine.tabular.facts import facts_of
from engine.tabular.guesses import guess_choices, with_guessed_order
from engine.tabular.numerals import Groups, read_edges
from engine.tabular.preview import build_preview, most_telling_questions
from engine.tabular.review import Review, review, use_all
from engine.tabular.table import Table

MAX_NAME = 60


@dataclass(frozen=True, slots=True)
class Request:
    """Parameters that a button sent, with numbers checked once."""

    table: Table
    columns: tuple[int, ...] = ()
    row: int | None = None
    position: int = 0
    answer: str = ""
    value: str = ""
    first: tuple[Cause, ...] = ()  # causes that the file alone does not show, such as a recipe

    @property
    def column(self) -> int:
        """Return the one column that the button acts on."""
        if len(self.columns) != 1:
            raise ActionError("Choose a column first.")
        return self.columns[0]


def read_request(
    table: Table,
    data: Mapping[str, str],
    columns: Sequence[str],
    n_columns: int | None = None,
    first: tuple[Cause, ...] = (),
) -> Request:
    """Return the checked request; raise ActionError when a number is out of range.

    ``n_columns`` includes the columns made of others; if None, only the file's columns count.
    """
    n_columns = table.n_columns if n_columns is None else n_columns
    try:
        chosen = tuple(dict.fromkeys(int(column) for column in columns))
        row = int(data["row"]) if data.get("row") else None
        position = int(data.get("position") or 0)
    except ValueError as error:
        raise ActionError("The request cannot be read. Load the page again.") from error
    if any(not 0 <= column < n_columns for column in chosen):
        raise ActionError("There is no such column in the file.")
    if row is not None and row not in table.row_numbers:
        raise ActionError(f"There is no row {row:,} in the file.")
    answer = data.get("answer", "")
    return Request(table, chosen, row, position, answer, data.get("value", ""), first)


def apply_action(action: str, choices: Choices, request: Request) -> Choices:
    """Return the choices after a button; raise ActionError for an unknown or inapplicable one."""
    if action not in _ACTIONS:
        raise ActionError("There is no such action.")
    return _ACTIONS[action](choices, request)


def _set_role(choices: Choices, request: Request) -> Choices:
    if not request.columns:
        raise ActionError("Mark at least one column first.")
    try:
        role = Role(request.value)
    except ValueError as error:
        raise ActionError(
            "Choose id, question, constraint, need, name, preferred, pronouns, e-mail or ignore."
        ) from error
    if role in SINGLE and len(request.columns) > 1:
        raise ActionError(f"Only one column can be the {role.value}.")
    choices = choices.with_role(list(request.columns), role)
    if role is Role.QUESTION:
        for column in request.columns:
            choices = _with_some_levels(choices, request.table, column)
    return choices


def _with_some_levels(choices: Choices, table: Table, column: int) -> Choices:
    """Give a column that looked like text or numbers its answers when staff make it a question."""
    if choices.columns[column].levels:
        return choices
    answers = {cell for cell in ChosenTable(table, choices).all_cells(column) if cell}
    if not 2 <= len(answers) <= MAX_LEVELS:
        return choices
    return with_guessed_order(choices, column, answers)


def _set_kind(choices: Choices, request: Request) -> Choices:
    try:
        kind = Kind(request.value)
    except ValueError as error:
        raise ActionError("Choose binary, ordinal or nominal.") from error
    return choices.with_column(request.column, kind=kind)


def _move(choices: Choices, request: Request) -> Choices:
    levels = choices.columns[request.column].levels
    step = {"up": -1, "down": 1}.get(request.value)
    if step is None:
        raise ActionError("An answer moves up or down.")
    return choices.with_column(request.column, levels=move_level(levels, request.position, step))


def _reverse(choices: Choices, request: Request) -> Choices:
    levels = choices.columns[request.column].levels
    return choices.with_column(request.column, levels=levels[::-1])


def _set_meaning(choices: Choices, request: Request) -> Choices:
    column = choices.columns[request.column]
    known = column.levels or ChosenTable(request.table, choices).file_cells(request.column)
    if request.value and request.value not in known:
        raise ActionError("Choose one of the answers of this question.")
    if request.value == request.answer:
        raise ActionError("An answer counts as itself already.")
    choices = choices.with_meaning(request.column, request.answer, request.value)
    if request.answer not in column.levels:
        return choices
    left = tuple(level for level in column.levels if level != request.answer)
    if column.kind is Kind.NOMINAL:  # with fewer spellings an order may show
        return with_guessed_order(choices, request.column, left)
    return choices.with_column(request.column, levels=left)


def _add_level(choices: Choices, request: Request) -> Choices:
    column = choices.columns[request.column]
    if request.answer not in ChosenTable(request.table, choices).all_cells(request.column):
        raise ActionError("Nobody gave this answer.")
    if request.answer in column.levels:
        return choices
    levels = (*column.levels, request.answer)
    kind = Kind.ORDINAL if column.kind is Kind.BINARY else column.kind
    return choices.with_column(request.column, levels=levels, kind=kind)


def _leave_out(choices: Choices, request: Request) -> Choices:
    if request.row is None:
        raise ActionError("Choose a row first.")
    return choices.without_rows([request.row])


def _keep_best(choices: Choices, request: Request) -> Choices:
    count = int(request.value) if re.fullmatch(r"\d{1,3}", request.value) else 0
    if not 1 <= count <= MAX_QUESTIONS:
        raise ActionError(f"Choose between 1 and {MAX_QUESTIONS} questions.")
    best = most_telling_questions(build_preview(request.table, choices), count)
    questions = [
        index for index, column in enumerate(choices.columns) if column.role is Role.QUESTION
    ]
    return choices.with_role(questions, Role.IGNORE).with_role(best, Role.QUESTION)


def _start_over(choices: Choices, request: Request) -> Choices:
    return guess_choices(request.table)


def _rename(choices: Choices, request: Request) -> Choices:
    name = " ".join(request.value.split())
    index = request.column
    chosen = ChosenTable(request.table, choices)
    others = {chosen.name(k).casefold() for k in range(len(choices.columns)) if k != index}
    if not name or len(name) > MAX_NAME:
        raise ActionError(f"A name has 1 to {MAX_NAME} letters.")
    if name.casefold() in others:
        raise ActionError(f"Another column is called “{name}”.")
    return choices.with_column(index, name=name)


def _split(choices: Choices, request: Request) -> Choices:
    if facts_of(request.table)[request.column].several is None:
        raise ActionError("The cells of this column do not hold several answers.")
    choices = choices.without_parts(request.column)
    return split_column(request.table, request.column)(choices)


def _group(choices: Choices, request: Request) -> Choices:
    """Read a column as groups with the borders that staff typed, or with the proposed ones."""
    style = facts_of(request.table)[request.column].numbers
    if style is None:
        raise ActionError("The cells of this column are no numbers.")
    groups = suggested(request.table, request.column)
    if request.value:
        edges = read_edges(request.value, style)
        if edges is None:
            raise ActionError("Type the borders in order, such as 6, 7, 8: at most 11 numbers.")
        groups = Groups(edges, style, groups.is_whole if groups else False)
        sizes = group_sizes(request.table, request.column, groups)
        empty = [level for level, count in sizes if not count]
        if empty:
            raise ActionError(f"Nobody is in the group “{empty[0]}”. Move its border.")
    if groups is None:
        raise ActionError("All numbers of this column are the same.")
    choices = choices.with_column(request.column, groups=None)
    return group_column(request.column, groups)(choices)


def _fix(choices: Choices, request: Request) -> Choices:
    return _used(choices, request, "fix")


def _other(choices: Choices, request: Request) -> Choices:
    return _used(choices, request, "other")


def _used(choices: Choices, request: Request, resolution: str) -> Choices:
    cause = review(build_preview(request.table, choices), *request.first).cause(request.value)
    chosen = cause.fix if resolution == "fix" else cause.other
    if chosen is None:
        raise ActionError("There is no such button any more.")
    return chosen.act(choices)


def _fix_all(choices: Choices, request: Request) -> Choices:
    def again(now: Choices) -> Review:
        return review(build_preview(request.table, now))

    offered = [cause for cause in request.first if cause.is_open]
    found = review(build_preview(request.table, choices), *offered)
    for cause in offered:  # last year's recipe comes before this file's proposals
        choices = cause.fix.act(choices) if cause.fix else choices
    return use_all(found, again, choices)


_ACTIONS: dict[str, Callable[[Choices, Request], Choices]] = {
    "role": _set_role,
    "kind": _set_kind,
    "move": _move,
    "reverse": _reverse,
    "meaning": _set_meaning,
    "add_level": _add_level,
    "leave_out": _leave_out,
    "keep_best": _keep_best,
    "start_over": _start_over,
    "rename": _rename,
    "split": _split,
    "group": _group,
    "fix": _fix,
    "other": _other,
    "fix_all": _fix_all,
}
