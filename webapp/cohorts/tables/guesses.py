"""Preset the use, the kind and the answers of every column, so that staff only correct.

What a column seems to be is the engine's judgement, the same on the command line; this adds what
an upload needs: slips must not become answers, and a wide survey must not become 150 questions.
"""

from collections import Counter
from dataclasses import replace

from engine import ColumnGuess, classify_columns
from webapp.cohorts.tables.checks import MAX_QUESTIONS
from webapp.cohorts.tables.choices import Choices, ColumnChoice, Kind, Role
from webapp.cohorts.tables.numerals import as_finite_number, is_numeral
from webapp.cohorts.tables.table import Table

_STRAY_ROWS = 30  # from here on, a single odd answer among many is taken for a slip
_STRAY_SHARE = 0.1
_COMMON_COUNT = 5
_MAX_ANSWERS = 10


def guess_choices(table: Table) -> Choices:
    """Return preset choices for every column.

    More candidate questions than can be learned from are all left unused: staff choose the ones
    that matter, or let the product keep those that differ most.
    """
    columns = [_without_strays(table.column(index)) for index in range(table.n_columns)]
    rows = list(zip(*columns, strict=True))
    guesses = _share_scale(classify_columns(table.header, rows))
    choices = tuple(_choice(guess) for guess in guesses)
    if sum(choice.role is Role.QUESTION for choice in choices) > MAX_QUESTIONS:
        choices = tuple(
            replace(choice, role=Role.IGNORE) if choice.role is Role.QUESTION else choice
            for choice in choices
        )
    return Choices(choices)


def _choice(guess: ColumnGuess) -> ColumnChoice:
    if guess.kind not in ("binary", "ordinal", "nominal"):
        return ColumnChoice(Role(guess.role), reason=guess.reason)
    return ColumnChoice(Role(guess.role), Kind(guess.kind), guess.levels, guess.reason)


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
    counter = Counter(cell for cell in cells if cell)
    total = counter.total()
    numbers = {answer for answer in counter if as_finite_number(answer) is not None}
    not_finite = {answer for answer in counter if is_numeral(answer)} - numbers
    if numbers and sum(counter[answer] for answer in numbers) >= (1 - _STRAY_SHARE) * total:
        strays = set(counter) - numbers
    else:
        strays = not_finite | _single_answers(counter, total)
    return ["" if cell in strays else cell for cell in cells]


def _single_answers(counter: Counter[str], total: int) -> set[str]:
    common = [answer for answer, count in counter.items() if count > 1]
    singles = {answer for answer, count in counter.items() if count == 1}
    is_choice = total >= _STRAY_ROWS and 2 <= len(common) <= _MAX_ANSWERS
    if not is_choice or min(counter[answer] for answer in common) < _COMMON_COUNT:
        return set()
    return singles if len(singles) <= _STRAY_SHARE * total else set()
