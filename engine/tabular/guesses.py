"""Presets of the use, the kind and the answers of every column, so that staff only correct.

The use of a column follows from facts about its cells, from the columns that name people, and
from the roles that its title and answers suggest, the same on the command line. Columns of the
survey program are separated from questions, and a wide survey does not become 150 questions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from engine.tabular.answer_order import order_answers
from engine.tabular.checks import MAX_QUESTIONS
from engine.tabular.choices import Choices, ColumnChoice, Kind, Role
from engine.tabular.facts import ColumnFacts, facts_of
from engine.tabular.id_column import find_id_column
from engine.tabular.identity import KEPT, identity_roles
from engine.tabular.makers import Own
from engine.tabular.personal import Personal, personal_kinds
from engine.tabular.rule_columns import NEED, rule_of
from engine.tabular.short_names import needs_short_name, short_names
from engine.tabular.survey_table import ColumnGuess, classify_columns
from engine.tabular.table import Table
from engine.tabular.technical import REASON

_TEST_STATUS = frozenset({"surveypreview", "surveytest", "spam", "1", "2", "8", "9", "17"})
MAKERS_OWN = "The program that wrote the file adds it."
FREE_TEXT = "Almost every row is different."
WHAT_ROOMS_OFFER = "A room has to meet this need."


def guess_choices(table: Table, most_questions: int | None = MAX_QUESTIONS) -> Choices:
    """Return preset choices for every column; a file is judged once.

    If there are more candidates than the model can use, all stay unused: staff
    choose the ones that matter, or let the product keep those that differ most.
    """
    preset: Choices | None = table.memo.get("preset")
    if preset is None:
        preset = table.memo["preset"] = _preset(table)
    n_questions = sum(choice.role is Role.QUESTION for choice in preset.columns)
    if most_questions is None or n_questions <= most_questions:
        return preset
    unused = tuple(
        replace(choice, role=Role.IGNORE) if choice.role is Role.QUESTION else choice
        for choice in preset.columns
    )
    return replace(preset, columns=unused, meanings={})


def _preset(table: Table) -> Choices:
    facts = facts_of(table)
    guesses = classify_columns([one.title for one in facts], [one.telling for one in facts])
    guessed = next((k for k, guess in enumerate(guesses) if guess.role == "id"), None)
    person = find_id_column(facts, guessed)
    kinds = personal_kinds(facts, person.index if person else None)
    roles = identity_roles(facts, kinds)
    if person is not None:
        roles[person.index] = Role.ID
    asked = [one for one in facts if one.own is None or one.index in roles]
    tests = _test_rows(table, facts)
    names = _short_names(facts, asked, is_wording=bool(table.layout.maker))
    columns = []
    for one, guess in zip(facts, guesses, strict=True):
        if person is not None and one.index == person.index:
            choice = ColumnChoice(Role.ID, reason=person.reason)
        elif one.index in roles:
            choice = ColumnChoice(roles[one.index], reason=KEPT)
        elif one.own is not None:
            choice = ColumnChoice(Role.IGNORE, reason=MAKERS_OWN)
        else:
            choice = _choice(one, guess, kinds[one.index])
        columns.append(replace(choice, name=names.get(one.index, "")))
    meanings = {
        one.index: dict.fromkeys(one.declined, "")
        for one, choice in zip(facts, columns, strict=True)
        if choice.role is Role.QUESTION and one.declined
    }
    preset = Choices(tuple(columns), meanings=meanings, layout=table.layout)
    for rows, why in (
        (tests, "test"),
        (table.foot_rows, "note"),
        (table.repeated_headers, "header"),
    ):
        preset = preset.without_rows(rows, why)
    return preset


def with_guessed_order(choices: Choices, index: int, answers: Iterable[str]) -> Choices:
    """Return the choices with the answers of a column in the order that their words suggest."""
    levels, has_order = order_answers(answers)
    kind = Kind.BINARY if len(levels) == 2 else Kind.ORDINAL if has_order else Kind.NOMINAL
    return choices.with_column(index, kind=kind, levels=levels)


def _choice(column: ColumnFacts, guess: ColumnGuess, personal: Personal | None) -> ColumnChoice:
    if guess.role == "id":  # another column identifies the person
        return ColumnChoice(Role.IGNORE, reason="Every row is different.")
    if personal is not None:
        return ColumnChoice(Role.IGNORE, reason=personal.reason)
    if rule_of(column.name, column.wording, column.answers) == NEED:
        return ColumnChoice(Role.NEED, reason=WHAT_ROOMS_OFFER)
    if column.is_technical:
        return ColumnChoice(Role.IGNORE, reason=REASON)
    if column.several is not None:
        reason = f"Several of {len(column.several.options)} answers in a cell."
        return ColumnChoice(Role.IGNORE, reason=reason)
    if column.numbers is not None and guess.role != "constraint":
        count = len(column.answers)
        reason = guess.reason if guess.kind == "number" else f"A measurement, {count} values."
        return ColumnChoice(Role.IGNORE, reason=reason)
    if guess.role == "question" and column.is_free_text:
        return ColumnChoice(Role.IGNORE, reason=FREE_TEXT)
    if guess.kind not in ("binary", "ordinal", "nominal"):
        return ColumnChoice(Role(guess.role), reason=guess.reason)
    return ColumnChoice(Role(guess.role), Kind(guess.kind), guess.levels, guess.reason)


def _short_names(
    facts: Sequence[ColumnFacts], asked: Sequence[ColumnFacts], *, is_wording: bool
) -> dict[int, str]:
    """Return short names for those columns whose header is a code or a whole wording."""
    long = [one for one in asked if needs_short_name(one.name, is_wording=is_wording)]
    taken = [one.name for one in facts if one not in long]
    names = short_names([one.title for one in long], taken)
    # A code without a wording has no other name.
    return {one.index: name for one, name in zip(long, names, strict=True) if name != one.name}


def _test_rows(table: Table, facts: Sequence[ColumnFacts]) -> list[int]:
    """Return the rows that Qualtrics marks as previews, tests and spam."""
    status = next((one.index for one in facts if one.own is Own.STATUS), None)
    if status is None:
        return []
    plain = ["".join(cell.casefold().split()) for cell in table.column(status)]
    return [
        number
        for number, cell in zip(table.row_numbers, plain, strict=True)
        if cell in _TEST_STATUS
    ]
