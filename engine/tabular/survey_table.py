"""Guess of each column's role in a survey; shared by the command line and the import preview."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from engine.tabular.answer_order import is_number, is_whole_number, order_answers
from engine.tabular.rule_columns import states_a_wish

ColumnRole = Literal["id", "question", "constraint", "ignore"]
ColumnKind = Literal["id", "binary", "ordinal", "nominal", "number", "text", "constant", "empty"]

BLANK_WORDS = frozenset({
    "", "na", "n/a", "#n/a", "n.a.", "#nv", "#n/d", "null", "none given", "-", "--", "–", "—", ".",
    "k.a.", "k. a.",
})  # fmt: skip
# Values that spreadsheet programs show if they could not compute a cell.
_ERRORS = re.compile(
    r"#(?:REF|DIV/0|VALUE|NAME|NUM|NULL|SPILL|CALC|FIELD|BUSY|BEZUG|WERT|ZAHL|VALEUR|NOM|NOMBRE|"
    r"¡REF|¡VALOR|¡DIV/0|¡NUM|¡NULO|¿NOMBRE|RIF|VALORE|NOME|ÜBERLAUF|KALK)[!?]?|#GETTING_DATA|#[ÉE]RROR!|"
    r"Err:\d{3}", re.I
)  # fmt: skip
MAX_NOMINAL = 12  # more different texts than this are not answers to choose from
MIN_SHARING = 3  # columns that must share a scale before it applies to others
MAX_DECIMALS = 5  # more different numbers with decimals are a measurement, which groups may divide
MAX_NUMBERED = 11  # more different whole numbers than this are a measurement; 0..10 is a scale
ID_TITLE = re.compile(
    r"^(?:id|.*[ _-]id|ids?|student(?:[ _-]?(?:no|number|nr|id))?|.*number id)$", re.I
)
_CONSTRAINT = re.compile(
    r"^(?:gender|sex|hall|halls|house|building|campus|dorm(?:itory)?|residence|floor|wing|college|"
    r"year|class year|cohort|same[ _-].*|.*\bhall\b)$",
    re.I,
)
_PERSONAL = re.compile(
    r"name$|^name|e-?mail|phone|birth|address|post ?code|\bzip\b|home ?town|comment|free text|"
    r"notes?$",
    re.I,
)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:([.,' ])\d{3})(?:\1\d{3})*(?:[.,]\d+)?")
_MEASURE = re.compile(r"^(?:age|height|weight|gpa|income|bmi|.*\bnumber of siblings)\b", re.I)


@dataclass(frozen=True, slots=True)
class ColumnGuess:
    """Guess of a column's role and kind; people confirm or correct it.

    Parameters
    ----------
    name : str
    role : "id", "question", "constraint" or "ignore"
    kind : "binary", "ordinal", "nominal" for columns with answers; "id", "number", "text",
        "constant" or "empty" for the others.
    levels : tuple of str, the answers in order; empty for "id", "number", "text" and "empty".
    counts : tuple of int, rows per level.
    blanks : int, rows without an answer.
    n_distinct : int, different values, blanks not counted.
    reason : str, one sentence.
    examples : tuple of up to three values.
    """

    name: str
    role: ColumnRole
    kind: ColumnKind
    levels: tuple[str, ...]
    counts: tuple[int, ...]
    blanks: int
    n_distinct: int
    reason: str
    examples: tuple[str, ...]


def is_blank(cell: str) -> bool:
    """Return True if a cell counts as no answer: empty, NA, N/A, null, a dash or a dot."""
    return cell.strip().lower() in BLANK_WORDS


def is_decimal(cell: str) -> bool:
    """Return True if a cell holds a number, with a decimal point or comma and any thousands marks.

    Examples
    --------
    >>> is_decimal("18.5"), is_decimal("18,5"), is_decimal("1.250,5"), is_decimal("about 18")
    (True, True, True, False)
    """
    return is_number(cell) or _GROUPED.fullmatch(cell) is not None


def is_error(cell: str) -> bool:
    """Return True if a cell holds a spreadsheet error in place of a value: #REF!, #DIV/0!."""
    return cell[:1] in "#E" and _ERRORS.fullmatch(cell) is not None


def classify_columns(
    header: Sequence[str], columns: Sequence[Counter[str]]
) -> tuple[ColumnGuess, ...]:
    """Guess role, kind and order of answers of every column.

    Parameters
    ----------
    header : sequence of str
    columns : sequence of the counts of each column's cells, blanks included.

    Notes
    -----
    At most one column becomes the id: the first that is named so and whose values all differ,
    else the first column if its values all differ and are no measurement. A scale of whole numbers
    that several columns share is assumed for columns in which nobody chose one of its ends.
    """
    guesses = [_classify(name, counts) for name, counts in zip(header, columns, strict=True)]
    guesses = _share_scale(guesses)
    chosen = _find_id(header, columns)
    if chosen is not None:
        counts = columns[chosen]
        guesses[chosen] = ColumnGuess(
            header[chosen],
            "id",
            "id",
            (),
            (),
            sum(n for cell, n in counts.items() if is_blank(cell)),
            len(counts),
            "Every row has its own value.",
            tuple(list(counts)[:3]),
        )
    return tuple(_with_usual_scale(guesses))


def _find_id(header: Sequence[str], columns: Sequence[Counter[str]]) -> int | None:
    """Return the column of ids, if any; a named id column may repeat values by mistake."""
    for index, (name, counts) in enumerate(zip(header, columns, strict=True)):
        # Only half of the values differ if a file was pasted twice.
        if ID_TITLE.match(name.strip()) and 0 < counts.total() <= 2 * len(counts):
            return index
    if columns and len(columns[0]) == columns[0].total() > 1:
        first = columns[0]
        measure = _MEASURE.match(header[0]) or all(
            is_number(c) and not is_whole_number(c) for c in first
        )
        if not measure and not any(is_blank(cell) for cell in first) and len(first) > 5:
            return 0
    return None


def _classify(name: str, counts: Counter[str]) -> ColumnGuess:
    counter = Counter({cell: n for cell, n in counts.items() if not is_blank(cell)})
    answered = counter.total()
    role, kind, levels, reason = _judge(name, counter, answered)
    return ColumnGuess(
        name,
        role,
        kind,
        levels,
        tuple(counter[level] for level in levels),
        counts.total() - answered,
        len(counter),
        reason,
        tuple(list(counter)[:3]),
    )


def _judge(
    name: str, counter: Counter[str], answered: int
) -> tuple[ColumnRole, ColumnKind, tuple[str, ...], str]:
    """Return role, kind, levels and reason of a column that is no id."""
    distinct = len(counter)
    if distinct == 0:
        return "ignore", "empty", (), "No row has a value."
    whole = all(is_whole_number(value) for value in counter)
    numeric = whole or all(is_decimal(value) for value in counter)
    is_choice = distinct <= (MAX_NUMBERED if whole else min(MAX_DECIMALS, 0.5 * answered))
    if numeric and (_MEASURE.match(name) or not is_choice):
        return "ignore", "number", (), "A measurement, not a choice of answers."
    if _PERSONAL.search(name) and distinct > max(MAX_NOMINAL, 0.1 * answered):
        return "ignore", "text", (), "It may identify people."
    if distinct > MAX_NOMINAL and not whole:
        many = distinct > 0.5 * answered
        reason = "Almost every row is different." if many else f"{distinct} different texts."
        return "ignore", "text", (), reason
    levels, ordered = order_answers(counter)
    if distinct == 1:
        return "ignore", "constant", levels, f"Every row says {levels[0]}."
    kind: ColumnKind = "ordinal" if ordered else "nominal"
    if distinct == 2:
        kind = "binary"
    if _CONSTRAINT.match(name.strip()) and not states_a_wish(name):
        return "constraint", kind, levels, "Rooms are often given within one value."
    if numeric:
        numbers = "Whole numbers" if whole else "Numbers"
        levels = fill_gaps(levels) if whole else levels
        return "question", kind, levels, f"{numbers} from {levels[0]} to {levels[-1]}."
    if kind == "ordinal":
        return "question", kind, levels, "The wording has an order."
    return "question", kind, levels, f"{distinct} different answers."


def _share_scale(guesses: list[ColumnGuess]) -> list[ColumnGuess]:
    """Complete numbered columns to the scale that most numbered columns have."""
    numbered = [g for g in guesses if g.role == "question" and all(map(str.isdigit, g.levels))]
    if len(numbered) < MIN_SHARING:
        return guesses
    scale, columns = Counter(g.levels for g in numbered).most_common(1)[0]
    if columns < max(MIN_SHARING, len(numbered) / 2):
        return guesses
    return [
        _on_scale(guess, scale)
        if guess in numbered and set(guess.levels) < set(scale) and len(guess.levels) > 2
        else guess
        for guess in guesses
    ]


def _with_usual_scale(guesses: Sequence[ColumnGuess]) -> list[ColumnGuess]:
    """Complete the scale of any column to the usual one of those with three or more numbers."""
    scales = Counter(
        guess.levels
        for guess in guesses
        if len(guess.levels) > 2 and all(map(str.isdigit, guess.levels))
    )
    usual, times = scales.most_common(1)[0] if scales else ((), 0)
    if times < MIN_SHARING or 2 * times <= scales.total():
        return list(guesses)
    return [
        _on_scale(guess, usual)
        if len(guess.levels) > 2 and set(guess.levels) < set(usual)
        else guess
        for guess in guesses
    ]


def _on_scale(guess: ColumnGuess, scale: tuple[str, ...]) -> ColumnGuess:
    counts = dict(zip(guess.levels, guess.counts, strict=True))
    counted = tuple(counts.get(level, 0) for level in scale)
    return replace(guess, kind="ordinal", levels=scale, counts=counted)


def fill_gaps(levels: tuple[str, ...]) -> tuple[str, ...]:
    """Add whole numbers that nobody chose between the smallest and the largest."""
    if len(levels) < 3 or not all(re.fullmatch(r"\d+", level) for level in levels):
        return levels
    first, last = int(levels[0]), int(levels[-1])
    if last - first + 1 > MAX_NUMBERED or {str(int(x)) for x in levels} != set(levels):
        return levels
    return tuple(str(k) for k in range(first, last + 1))
