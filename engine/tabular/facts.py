"""Facts about the cells of a column, computed once per table and cached in its memo."""

import re
from collections import Counter

from engine.tabular.answer_order import order_answers
from engine.tabular.makers import own_column
from engine.tabular.multiple_answers import Several, find_several
from engine.tabular.numerals import NumberStyle, number_style
from engine.tabular.ranges_as_dates import find_ranges_as_dates
from engine.tabular.scales import declines_to_answer, stands_beside
from engine.tabular.short_names import is_code
from engine.tabular.table import Table
from engine.tabular.technical import is_technical

_MAX_SCALE = 11  # more different whole numbers than this are a measurement
_MIN_NUMBERS = 6  # different numbers from which a column with decimals or units needs groups
_MAX_TOLD = 40  # with this many different answers, a column is no choice
_MIN_STEPS = 3
_CODES = re.compile(r"-(?:([6-9])\1{0,3}|9{1,3}[78])|([7-9])\2{1,3}|9{1,3}[78]")
"""Numbers by which survey programs store "refused" and "does not apply": -99, 88, 999, 998."""
_TOP_OF_SCALE = 10


def title_of(table: Table, index: int) -> str:
    """Return the title of a column; for a code, its wording."""
    name = table.header[index]
    wording = table.wordings[index] if index < len(table.wordings) else ""
    return wording if wording and is_code(name) else name


def made_dates_in(table: Table, index: int) -> dict[str, str]:
    """Return {cell: the range that was typed} for dates that a spreadsheet made of ranges."""
    key = ("made dates", index)
    if key not in table.memo:
        own = own_column(table.layout.maker, table.header[index], index)
        answers = table.answers(index)
        found = {} if own is not None else find_ranges_as_dates(answers, title_of(table, index))
        table.memo[key] = found
    made: dict[str, str] = table.memo[key]
    return made


def declined_in(table: Table, index: int) -> tuple[str, ...]:
    """Return the non-answers of a column: "Prefer not to say" beside a scale.

    "Don't know" is an answer between yes and no, and a non-answer beside a longer scale.
    """
    key = ("declined", index)
    if key not in table.memo:
        table.memo[key] = _declined(table.answers(index))
    found: tuple[str, ...] = table.memo[key]
    return found


def _declined(answers: Counter[str]) -> tuple[str, ...]:
    if len(answers) > _MAX_TOLD:
        return ()
    declined = [answer for answer in answers if declines_to_answer(answer)]
    rest = [answer for answer in answers if answer not in declined]
    beside = [answer for answer in rest if stands_beside(answer)]
    scale = [answer for answer in rest if answer not in beside]
    declined += _codes_beside(rest)
    if beside and len(scale) >= _MIN_STEPS and not order_answers(rest)[1]:
        declined += beside if order_answers(scale)[1] else []
    return tuple(declined) if len(declined) < len(answers) else ()


def _codes_beside(answers: list[str]) -> list[str]:
    """Return the codes for no answer beside a scale of whole numbers from 0 to 10 at most."""
    codes = [answer for answer in answers if _CODES.fullmatch(answer)]
    steps = [answer for answer in answers if answer not in codes]
    is_scale = len(steps) >= _MIN_STEPS and all(
        answer.isdecimal() and int(answer) <= _TOP_OF_SCALE for answer in steps
    )
    return codes if is_scale else []


def several_in(table: Table, index: int) -> Several | None:
    """Return how the cells of a column split into options, or None; computed once."""
    key = ("several", index)
    if key not in table.memo:
        counter = table.answers(index)
        found = find_several(counter)
        if found is not None and number_style(counter) is not None:
            is_coded = all(option.isdecimal() for option in found.options)
            found = found if is_coded else None
        table.memo[key] = found
    several: Several | None = table.memo[key]
    return several


def numbers_in(table: Table, index: int) -> NumberStyle | None:
    """Return how a column writes numbers that need groups; None for scales and for texts."""
    key = ("numbers", index)
    if key not in table.memo:
        cells = set(table.answers(index)).difference(declined_in(table, index))
        is_number = len(cells) >= _MIN_NUMBERS and not is_technical_in(table, index)
        is_number = is_number and several_in(table, index) is None
        style = number_style(cells) if is_number else None
        is_scale = len(cells) <= _MAX_SCALE and (
            all(cell.isdecimal() for cell in cells) or (style is not None and style.is_clock)
        )
        table.memo[key] = None if is_scale else style
    numbers: NumberStyle | None = table.memo[key]
    return numbers


def is_technical_in(table: Table, index: int) -> bool:
    key = ("technical", index)
    if key not in table.memo:
        table.memo[key] = is_technical(title_of(table, index), set(table.answers(index)))
    found: bool = table.memo[key]
    return found
