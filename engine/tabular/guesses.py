"""Presets of the use, the kind and the answers of every column, so that staff only correct.

The engine judges what a column seems to be, the same on the command line. This module adds the
needs of an upload: columns of the survey program are separated from questions, slips do not
become answers, and a wide survey does not become 150 questions.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from engine.tabular.answer_order import order_answers
from engine.tabular.checks import MAX_QUESTIONS
from engine.tabular.choices import Choices, ColumnChoice, Kind, Role
from engine.tabular.facts import (
    declined_in,
    is_technical_in,
    made_dates_in,
    numbers_in,
    several_in,
    title_of,
)
from engine.tabular.id_column import IdColumn, find_id_column, is_number_title
from engine.tabular.identity import KEPT, identity_roles
from engine.tabular.makers import Own, own_column
from engine.tabular.numerals import (
    as_finite_number,
    is_numeral,
)
from engine.tabular.personal import E_MAILS, NUMBERS, personal_kind
from engine.tabular.rule_columns import NEED, rule_of
from engine.tabular.short_names import needs_short_name, short_names
from engine.tabular.survey_table import ColumnGuess, classify_columns, is_decimal, is_error
from engine.tabular.table import Table
from engine.tabular.technical import REASON
from engine.tabular.text import fold_answer

_STRAY_ROWS = 30  # from this number on, a single odd answer among many counts as a slip
_STRAY_SHARE = 0.1
_COMMON_COUNT = 5
_MAX_ANSWERS = 10
_TEST_STATUS = frozenset({"surveypreview", "surveytest", "spam", "1", "2", "8", "9", "17"})
_MIN_ALONE = 8  # at least this many rows that all differ are no choice of answers
_SHORT_TEXT = 16  # letters; longer texts that always differ are no answers to choose from
MAKERS_OWN = "The program that wrote the file adds it."
FREE_TEXT = "Almost every row is different."
WHAT_ROOMS_OFFER = "A room has to meet this need."


def guess_choices(table: Table, most_questions: int | None = MAX_QUESTIONS) -> Choices:
    """Return preset choices for every column.

    If there are more candidates than the model can use, all stay unused: staff
    choose the ones that matter, or let the product keep those that differ most.
    """
    owns = [own_column(table.layout.maker, name, k) for k, name in enumerate(table.header)]
    columns = [_without_strays(table, index) for index in range(table.n_columns)]
    titles = [title_of(table, index) for index in range(table.n_columns)]
    guesses = _share_scale(classify_columns(titles, list(zip(*columns, strict=True))))
    guessed = next((k for k, guess in enumerate(guesses) if guess.role == "id"), None)
    person = find_id_column(table, guessed)
    people = _people(table, person)
    choices = []
    for index, (guess, own) in enumerate(zip(guesses, owns, strict=True)):
        if person is not None and index == person.index:
            choices.append(ColumnChoice(Role.ID, reason=person.reason))
        elif own is not None:
            choices.append(ColumnChoice(Role.IGNORE, reason=MAKERS_OWN))
        else:
            choices.append(_choice(table, index, guess, people))
    chosen = _named(table, _with_identity(table, choices, people))
    n_questions = sum(choice.role is Role.QUESTION for choice in chosen)
    if most_questions is not None and n_questions > most_questions:
        chosen = [
            replace(choice, role=Role.IGNORE) if choice.role is Role.QUESTION else choice
            for choice in chosen
        ]
    meanings = {
        index: dict.fromkeys(declined, "")
        for index, choice in enumerate(chosen)
        if choice.role is Role.QUESTION and (declined := declined_in(table, index))
    }
    preset = Choices(tuple(chosen), meanings=meanings, layout=table.layout)
    for rows, why in (
        (_test_rows(table, owns), "test"),
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


def _people(table: Table, person: IdColumn | None) -> frozenset[str]:
    """Return the ids and e-mails of a file, by which its people may name each other."""
    if person is None:
        return frozenset()
    columns = [person.index]
    columns += [
        k for k in range(table.n_columns)
        if k != person.index and personal_kind("", "", table.answers(k)) == E_MAILS
    ]  # fmt: skip
    return frozenset(cell for k in columns for cell in table.answers(k))


def _choice(table: Table, index: int, guess: ColumnGuess, people: frozenset[str]) -> ColumnChoice:
    if guess.role == "id":  # another column identifies the person
        return ColumnChoice(Role.IGNORE, reason="Every row is different.")
    wording = _wording(table, index)
    personal = personal_kind(table.header[index], wording, table.answers(index), people)
    if personal is not None:
        return ColumnChoice(Role.IGNORE, reason=personal.reason)
    if is_number_title(table.header[index]):
        return ColumnChoice(Role.IGNORE, reason=NUMBERS.reason)
    if rule_of(table.header[index], wording, table.answers(index)) == NEED:
        return ColumnChoice(Role.NEED, reason=WHAT_ROOMS_OFFER)
    if is_technical_in(table, index):
        return ColumnChoice(Role.IGNORE, reason=REASON)
    several = several_in(table, index)
    if several is not None:
        reason = f"Several of {len(several.options)} answers in a cell."
        return ColumnChoice(Role.IGNORE, reason=reason)
    if numbers_in(table, index) is not None and guess.role != "constraint":
        count = len(table.answers(index))
        reason = guess.reason if guess.kind == "number" else f"A measurement, {count} values."
        return ColumnChoice(Role.IGNORE, reason=reason)
    if guess.role == "question" and _is_free_text(table, index):
        return ColumnChoice(Role.IGNORE, reason=FREE_TEXT)
    if guess.kind not in ("binary", "ordinal", "nominal"):
        return ColumnChoice(Role(guess.role), reason=guess.reason)
    return ColumnChoice(Role(guess.role), Kind(guess.kind), guess.levels, guess.reason)


def _with_identity(
    table: Table, choices: list[ColumnChoice], people: frozenset[str]
) -> list[ColumnChoice]:
    """Give the unused columns that say who a student is their use."""
    kinds = {
        k: personal_kind(table.header[k], _wording(table, k), table.answers(k), people)
        for k, choice in enumerate(choices)
        if choice.role is Role.IGNORE and choice.reason != MAKERS_OWN
    }
    found = list(choices)
    for k, role in identity_roles(table, kinds).items():
        if choices[k].role is Role.IGNORE:
            found[k] = ColumnChoice(role, reason=KEPT)
    return found


def _wording(table: Table, index: int) -> str:
    return table.wordings[index] if index < len(table.wordings) else ""


def _is_free_text(table: Table, index: int) -> bool:
    """Return True if hardly any answer repeats, though few people answered: remarks, no choice."""
    answers = table.answers(index)
    total = answers.total()
    if len(answers) == total >= _MIN_ALONE and not order_answers(answers)[1]:
        return True  # all answers differ: the model can learn nothing from them
    is_short = all(len(answer) <= _SHORT_TEXT for answer in answers)
    return total >= 4 and len(answers) > 0.7 * total and not is_short


def _named(table: Table, choices: list[ColumnChoice]) -> list[ColumnChoice]:
    """Give short names to the columns whose header is a code or a whole wording."""
    long = [
        k
        for k, choice in enumerate(choices)
        if choice.reason != MAKERS_OWN
        and needs_short_name(table.header[k], is_wording=bool(table.layout.maker))
    ]
    taken = [name for k, name in enumerate(table.header) if k not in long]
    names = short_names([title_of(table, k) for k in long], taken)
    named = list(choices)
    for k, name in zip(long, names, strict=True):
        if name != table.header[k]:  # a code without a wording has no other name
            named[k] = replace(choices[k], name=name)
    return named


def _test_rows(table: Table, owns: list[Own | None]) -> list[int]:
    """Return the rows that Qualtrics marks as previews, tests and spam."""
    if Own.STATUS not in owns:
        return []
    cells = table.column(owns.index(Own.STATUS))
    plain = ["".join(cell.casefold().split()) for cell in cells]
    return [
        number
        for number, cell in zip(table.row_numbers, plain, strict=True)
        if cell in _TEST_STATUS
    ]


def _share_scale(guesses: tuple[ColumnGuess, ...]) -> list[ColumnGuess]:
    """Extend a question without the answer 1 to 1..5 if most numeric questions run 1..5."""
    scales = Counter(
        guess.levels
        for guess in guesses
        if len(guess.levels) >= 3 and all(level.isdigit() for level in guess.levels)
    )
    if not scales:
        return list(guesses)
    usual, times = scales.most_common(1)[0]
    if times < 3 or 2 * times <= scales.total():
        return list(guesses)
    return [
        replace(guess, levels=usual, kind="ordinal")
        if len(guess.levels) >= 3 and set(guess.levels) < set(usual)
        else guess
        for guess in guesses
    ]


def _without_strays(table: Table, index: int) -> list[str]:
    """Return the cells from which answers are guessed.

    Ranges replace the dates that were made of them. Slips become blank: words among numbers, NaN,
    spreadsheet errors, and single odd answers among common ones. So do answers that decline to
    answer. A slip is still reported as a problem of its row, but is no answer by itself.
    """
    made = made_dates_in(table, index)
    cells = [made.get(cell, cell) for cell in table.answered(index)]
    counter = Counter(cells)
    del counter[""]
    out = {cell for cell in counter if is_error(cell)} | set(declined_in(table, index))
    for cell in out:
        del counter[cell]
    total = counter.total()
    numbers = {answer for answer in counter if is_decimal(answer)}
    not_finite = {
        answer for answer in counter if is_numeral(answer) and as_finite_number(answer) is None
    }
    if numbers and sum(counter[answer] for answer in numbers) >= (1 - _STRAY_SHARE) * total:
        strays = set(counter) - numbers
    else:
        strays = not_finite | _single_answers(counter, total)
    strays |= out
    return ["" if cell in strays else cell for cell in cells] if strays else cells


def _single_answers(counter: Counter[str], total: int) -> set[str]:
    common = [answer for answer, count in counter.items() if count > 1]
    folded = {fold_answer(answer) for answer in common}
    singles = {
        answer
        for answer, count in counter.items()
        if count == 1 and fold_answer(answer) not in folded  # else it is another spelling
    }
    is_choice = total >= _STRAY_ROWS and 2 <= len(common) <= _MAX_ANSWERS
    if not is_choice or min(counter[answer] for answer in common) < _COMMON_COUNT:
        return set()
    if len(singles) > _STRAY_SHARE * total:
        return set()
    # More of them than the most answers allowed are remarks, and placing them is slow.
    return singles if len(singles) > _MAX_ANSWERS else _out_of_order(common, singles)


def _out_of_order(common: list[str], singles: set[str]) -> set[str]:
    """Return answers given by one person each that have no place of their own in the order.

    "Before 6 am" among the hours of getting up is a real answer of one person, not a slip.
    """
    placed = list(common)
    longest = 2 * max(map(len, common), default=0)  # longer texts are remarks
    for answer in sorted(singles):
        if len(answer) <= longest and order_answers([*placed, answer])[1]:
            placed.append(answer)
    return singles.difference(placed)
