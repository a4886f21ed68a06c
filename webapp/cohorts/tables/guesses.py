"""Preset the use, the kind and the answers of every column, so that staff only correct.

What a column seems to be is the engine's judgement, the same on the command line; this adds what
an upload needs: a maker's own columns are told from questions, slips must not become answers, and
a wide survey must not become 150 questions.
"""

import re
from collections import Counter
from dataclasses import replace

from engine.datasets.answer_order import order_answers
from engine.datasets.survey_table import ColumnGuess, classify_columns
from webapp.cohorts.tables.checks import MAX_QUESTIONS
from webapp.cohorts.tables.choices import Choices, ColumnChoice, Kind, Role
from webapp.cohorts.tables.makers import Own, own_column
from webapp.cohorts.tables.numerals import (
    NumberStyle,
    as_finite_number,
    is_numeral,
    number_style,
)
from webapp.cohorts.tables.persons import find_person_column
from webapp.cohorts.tables.several import Several, find_several
from webapp.cohorts.tables.short_names import is_code, needs_short_name, short_names
from webapp.cohorts.tables.table import Table
from webapp.cohorts.tables.technical import REASON, is_technical

_STRAY_ROWS = 30  # from here on, a single odd answer among many is taken for a slip
_STRAY_SHARE = 0.1
_COMMON_COUNT = 5
_MAX_ANSWERS = 10
_MAX_SCALE = 11  # more different whole numbers than this are a measurement
_MIN_NUMBERS = 6  # different numbers from which a column with decimals or units needs groups
_TEST_STATUS = frozenset({"surveypreview", "surveytest", "spam", "1", "2", "8", "9", "17"})
_SHORT_TEXT = 16  # letters; what is longer and always different is no answer to choose
_NOTE = re.compile(r"(?:grand )?totals?\b|sum\b|average\b|mean\b|generated\b|exported\b|"
                   r"report\b|summe\b|gesamt\b|source:|n ?= ?\d", re.I)  # fmt: skip

MAKERS_OWN = "The program that wrote the file adds it."
FREE_TEXT = "Almost every row is different."


def guess_choices(table: Table) -> Choices:
    """Return preset choices for every column.

    More candidate questions than can be learned from are all left unused: staff choose the ones
    that matter, or let the product keep those that differ most.
    """
    owns = [own_column(table.layout.maker, name, k) for k, name in enumerate(table.header)]
    columns = [_without_strays(table.column(index)) for index in range(table.n_columns)]
    titles = [_title(table, index) for index in range(table.n_columns)]
    guesses = _share_scale(classify_columns(titles, list(zip(*columns, strict=True))))
    guessed = next((k for k, guess in enumerate(guesses) if guess.role == "id"), None)
    person = find_person_column(table, guessed)
    choices = []
    for index, (guess, own) in enumerate(zip(guesses, owns, strict=True)):
        if person is not None and index == person.index:
            choices.append(ColumnChoice(Role.ID, reason=person.reason))
        elif own is not None:
            choices.append(ColumnChoice(Role.IGNORE, reason=MAKERS_OWN))
        else:
            choices.append(_choice(table, index, guess))
    chosen = _named(table, choices)
    if sum(choice.role is Role.QUESTION for choice in chosen) > MAX_QUESTIONS:
        chosen = [
            replace(choice, role=Role.IGNORE) if choice.role is Role.QUESTION else choice
            for choice in chosen
        ]
    preset = Choices(tuple(chosen), layout=table.layout)
    return preset.without_rows(_test_rows(table, owns), "test").without_rows(_notes(table), "note")


def _title(table: Table, index: int) -> str:
    """Return what the name of a column says, which for a code is its wording."""
    name = table.header[index]
    wording = table.wordings[index] if index < len(table.wordings) else ""
    return wording if wording and is_code(name) else name


def _choice(table: Table, index: int, guess: ColumnGuess) -> ColumnChoice:
    if guess.role == "id":  # another column tells the person
        return ColumnChoice(Role.IGNORE, reason="Every row is different.")
    if _is_technical(table, index):
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


def _is_free_text(table: Table, index: int) -> bool:
    """Whether hardly an answer comes twice, though few answered: remarks, not a choice."""
    answers = table.answers(index)
    total = answers.total()
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
    names = short_names([_title(table, k) for k in long], taken)
    named = list(choices)
    for k, name in zip(long, names, strict=True):
        named[k] = replace(choices[k], name=name)
    return named


def several_in(table: Table, index: int) -> Several | None:
    """Return how the cells of a column split into options, if they do; worked out once."""
    key = ("several", index)
    if key not in table.memo:
        counter = table.answers(index)
        found = find_several(counter) if number_style(counter) is None else None
        table.memo[key] = found
    return table.memo[key]


def numbers_in(table: Table, index: int) -> NumberStyle | None:
    """Return how a column writes numbers that need groups; None for scales and for texts."""
    key = ("numbers", index)
    if key not in table.memo:
        cells = set(table.answers(index))
        is_number = len(cells) >= _MIN_NUMBERS and not _is_technical(table, index)
        style = number_style(cells) if is_number else None
        is_scale = len(cells) <= _MAX_SCALE and (
            all(cell.isdecimal() for cell in cells) or (style is not None and style.is_clock)
        )
        table.memo[key] = None if is_scale else style
    return table.memo[key]


def _is_technical(table: Table, index: int) -> bool:
    key = ("technical", index)
    if key not in table.memo:
        table.memo[key] = is_technical(_title(table, index), set(table.answers(index)))
    found: bool = table.memo[key]
    return found


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


def _notes(table: Table) -> list[int]:
    """Return the rows at the foot that are no students: a total, a note, when it was written."""
    found: list[int] = []
    if table.n_columns < 4:
        return found
    for number, row in reversed(list(zip(table.row_numbers, table.rows, strict=True))):
        filled = [cell for cell in row if cell]
        is_note = len(filled) == 1 and row[0] and (" " in row[0] or ":" in row[0])
        if not is_note and not (_NOTE.match(filled[0]) and len(filled) < table.n_columns):
            break
        found.append(number)
    return found if len(found) < min(6, table.n_rows - 1) else []


def _share_scale(guesses: tuple[ColumnGuess, ...]) -> list[ColumnGuess]:
    """Where most numeric questions run 1..5, a question on which nobody chose 1 does so too."""
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


def _without_strays(cells: tuple[str, ...]) -> list[str]:
    """Blank out slips: words among numbers, NaN, and single odd answers among common ones.

    A slip is still shown as a problem of its row; it only does not become an answer by itself.
    """
    counter = Counter(cells)
    del counter[""]
    total = counter.total()
    numbers = {answer for answer in counter if as_finite_number(answer) is not None}
    not_finite = {answer for answer in counter if is_numeral(answer)} - numbers
    if numbers and sum(counter[answer] for answer in numbers) >= (1 - _STRAY_SHARE) * total:
        strays = set(counter) - numbers
    else:
        strays = not_finite | _single_answers(counter, total)
    return ["" if cell in strays else cell for cell in cells] if strays else list(cells)


def _single_answers(counter: Counter[str], total: int) -> set[str]:
    common = [answer for answer, count in counter.items() if count > 1]
    singles = {answer for answer, count in counter.items() if count == 1}
    is_choice = total >= _STRAY_ROWS and 2 <= len(common) <= _MAX_ANSWERS
    if not is_choice or min(counter[answer] for answer in common) < _COMMON_COUNT:
        return set()
    if len(singles) > _STRAY_SHARE * total:
        return set()
    # More of them than there can be answers are remarks, and looking for their places is slow.
    return singles if len(singles) > _MAX_ANSWERS else _out_of_order(common, singles)


def _out_of_order(common: list[str], singles: set[str]) -> set[str]:
    """Return the answers of one person each that have no place of their own in the order.

    "Before 6 am" among the hours of getting up is an answer that one person gave, no slip.
    """
    placed = list(common)
    longest = 2 * max(map(len, common), default=0)  # beyond it, it is a remark
    for answer in sorted(singles):
        if len(answer) <= longest and order_answers([*placed, answer])[1]:
            placed.append(answer)
    return singles.difference(placed)
