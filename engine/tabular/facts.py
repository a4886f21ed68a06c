"""Facts about the columns of a file, each found once: what guesses, checks and fixes read."""

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from engine.tabular.answer_order import order_answers
from engine.tabular.dates import read_times
from engine.tabular.makers import Own, own_column
from engine.tabular.multiple_answers import Several, find_several
from engine.tabular.numerals import NumberStyle, as_finite_number, is_numeral, number_style
from engine.tabular.ranges_as_dates import find_ranges_as_dates
from engine.tabular.scales import declines_to_answer, stands_beside
from engine.tabular.short_names import title_of
from engine.tabular.survey_table import is_decimal, is_error
from engine.tabular.table import Table
from engine.tabular.technical import is_technical, says_if_finished
from engine.tabular.text import fold_answer

_MAX_SCALE = 11  # more different whole numbers than this are a measurement
_MIN_NUMBERS = 6  # different numbers from which a column with decimals or units needs groups
_MAX_TOLD = 40  # with this many different answers, a column is no choice
_MIN_STEPS = 3
_CODES = re.compile(r"-(?:([6-9])\1{0,3}|9{1,3}[78])|([7-9])\2{1,3}|9{1,3}[78]")
"""Numbers by which survey programs store "refused" and "does not apply": -99, 88, 999, 998."""
_TOP_OF_SCALE = 10
_STRAY_ROWS = 30  # from this number on, a single odd answer among many counts as a slip
_STRAY_SHARE = 0.1
_COMMON_COUNT = 5
_MAX_ANSWERS = 10
_MIN_ALONE = 8  # at least this many rows that all differ are no choice of answers
_SHORT_TEXT = 16  # letters; longer texts that always differ are no answers to choose from


@dataclass(frozen=True, eq=False)
class ColumnFacts:
    """Facts about one column of a file, whatever its use; the costly ones are found when needed.

    ``cells`` are those of all rows, blank in rows that are no students. ``counts`` counts the
    different cells, ``answers`` only those that are not blank. ``own`` says what the column holds
    if the survey program added it.
    """

    index: int
    name: str
    wording: str
    own: Own | None
    cells: tuple[str, ...]
    counts: Counter[str]
    answers: Counter[str]

    @property
    def title(self) -> str:
        """Return the title of the column."""
        return title_of(self.name, self.wording)

    @cached_property
    def made_dates(self) -> dict[str, str]:
        """Return {cell: the range that was typed} for dates that a spreadsheet made of ranges."""
        return {} if self.own is not None else find_ranges_as_dates(self.answers, self.title)

    @cached_property
    def times(self) -> list[datetime | None] | None:
        """Return the time in every cell; None for columns of other things, see `read_times`."""
        return read_times(self.cells)

    @cached_property
    def declined(self) -> tuple[str, ...]:
        """Return the non-answers of the column: "Prefer not to say" beside a scale.

        "Don't know" is an answer between yes and no, and a non-answer beside a longer scale.
        """
        return _declined(self.answers)

    @cached_property
    def is_technical(self) -> bool:
        """Return True if the column says how or when somebody answered, not what."""
        return is_technical(self.title, self.answers.keys())

    @cached_property
    def several(self) -> Several | None:
        """Return how the cells of the column split into options; None if they do not."""
        found = find_several(self.answers)
        if found is None or number_style(self.answers) is None:
            return found
        return found if all(option.isdecimal() for option in found.options) else None

    @cached_property
    def numbers(self) -> NumberStyle | None:
        """Return how the column writes numbers that need groups; None for scales and for texts."""
        cells = self.answers.keys() - set(self.declined)
        if len(cells) < _MIN_NUMBERS or self.is_technical or self.several is not None:
            return None
        style = number_style(cells)
        is_scale = len(cells) <= _MAX_SCALE and (
            all(cell.isdecimal() for cell in cells) or (style is not None and style.is_clock)
        )
        return None if is_scale else style

    @cached_property
    def is_free_text(self) -> bool:
        """Return True if hardly any answer repeats, though few people answered: remarks."""
        total, different = self.answers.total(), len(self.answers)
        if different == total >= _MIN_ALONE and not order_answers(self.answers)[1]:
            return True  # all answers differ: the model can learn nothing from them
        is_short = all(len(answer) <= _SHORT_TEXT for answer in self.answers)
        return total >= 4 and different > 0.7 * total and not is_short

    @cached_property
    def telling(self) -> Counter[str]:
        """Return the counts of the cells from which answers are guessed, the others as blanks.

        Ranges replace the dates that were made of them. Slips become blank: words among numbers,
        NaN, spreadsheet errors, and single odd answers among common ones. So do answers that
        decline to answer. A slip is still reported as a problem of its row.
        """
        counts: Counter[str] = Counter()
        for cell, n in self.counts.items():
            counts[self.made_dates.get(cell, cell)] += n
        n_blank = counts.pop("", 0)
        out = {cell for cell in counts if is_error(cell)}.union(self.declined)
        n_blank += sum(counts.pop(cell, 0) for cell in out)
        n_blank += sum(counts.pop(cell) for cell in _strays(counts))
        if n_blank:
            counts[""] = n_blank
        return counts


def facts_of(table: Table) -> tuple[ColumnFacts, ...]:
    """Return the facts about every column of a file, kept with its table."""
    if "facts" not in table.memo:
        table.memo["facts"] = tuple(_facts(table, index) for index in range(table.n_columns))
    found: tuple[ColumnFacts, ...] = table.memo["facts"]
    return found


def _facts(table: Table, index: int) -> ColumnFacts:
    name = table.header[index]
    own = own_column(table.layout.maker, name, index)
    if not table.layout.maker and says_if_finished(name, table.answers(index).keys()):
        own = Own.FINISHED
    return ColumnFacts(
        index,
        name,
        table.wordings[index] if index < len(table.wordings) else "",
        own,
        table.answered(index),
        table.counts(index),
        table.answers(index),
    )


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


def _strays(counts: Counter[str]) -> Collection[str]:
    """Return the slips of a column: words among numbers, NaN, and single odd answers."""
    numbers = {answer for answer in counts if is_decimal(answer)}
    total = counts.total()
    if numbers and sum(counts[answer] for answer in numbers) >= (1 - _STRAY_SHARE) * total:
        return counts.keys() - numbers
    not_finite = {cell for cell in counts if is_numeral(cell) and as_finite_number(cell) is None}
    return not_finite | _single_answers(counts)


def _single_answers(counter: Counter[str]) -> set[str]:
    """Return the odd answers of one person each beside a few common ones."""
    common = [answer for answer, count in counter.items() if count > 1]
    total = counter.total()
    is_choice = total >= _STRAY_ROWS and 2 <= len(common) <= _MAX_ANSWERS
    if not is_choice or min(counter[answer] for answer in common) < _COMMON_COUNT:
        return set()
    folded = {fold_answer(answer) for answer in common}
    singles = {
        answer
        for answer, count in counter.items()
        if count == 1 and fold_answer(answer) not in folded  # else it is another spelling
    }
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
