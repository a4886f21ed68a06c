"""Questions of several answers that their maker wrote as one column an option.

Qualtrics ("Q5_1", "Q5_2", ... with "Question - Option" below) and SurveyMonkey (options below their
question) leave a cell blank where an option was not chosen, which is a No of somebody who chose
another one, and no answer only of somebody who chose none. Read as they stand, every Yes would be
"answered alike by everyone", and every No lost among the blanks.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

YES, NO = "Yes", "No"
# What stands for a chosen option where its own words do not.
_MARKS = {"1", "x", "selected", "checked", "true", "yes"}
_CODE = re.compile(r"(?P<question>.+)_(?P<option>\d+)$")
_MIN_OPTIONS = 2
_BEFORE = " - "  # stands between a question and its option


@dataclass(frozen=True, slots=True)
class OptionColumns:
    """Columns (positions) of one question, each with its option."""

    positions: tuple[int, ...]
    options: tuple[str, ...]


def find_option_columns(
    header: Sequence[str], wordings: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[OptionColumns, ...]:
    """Return the questions that stand as one column an option, in the order of the columns.

    Neighbours belong together that carry one number ("Q5_1", "Q5_2") or one question before
    their option. A column is of that kind if it holds one text only, which is its option or a mark;
    at least one person has to have chosen two, or it would be "one of".
    """
    said = tuple(wordings) or tuple(header)
    found = []
    for positions, stem in _runs(header, said, has_codes=bool(wordings)):
        options = tuple(said[k].removeprefix(stem).strip() for k in positions)
        chosen = [{row[k].strip() for row in rows} - {""} for k in positions]
        is_marked = all(
            len(values) <= 1 and all(_is_choice(value, option) for value in values)
            for values, option in zip(chosen, options, strict=True)
        )
        if is_marked and any(sum(bool(row[k]) for k in positions) >= 2 for row in rows):
            found.append(OptionColumns(positions, options))
    return tuple(found)


def with_answers(
    rows: Sequence[tuple[str, ...]], groups: Sequence[OptionColumns]
) -> tuple[tuple[str, ...], ...]:
    """Return the rows with Yes and No in these columns, and blanks of who chose nothing at all."""
    if not groups:
        return tuple(rows)
    changed = []
    for row in rows:
        cells = list(row)
        for group in groups:
            has_any = any(row[k] for k in group.positions)
            for k in group.positions:
                cells[k] = (YES if row[k] else NO) if has_any else ""
        changed.append(tuple(cells))
    return tuple(changed)


def _runs(
    header: Sequence[str], said: Sequence[str], *, has_codes: bool
) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield neighbours of one question, with the words that stand before their options."""
    start = 0
    while start < len(header) - 1:
        stem = _shared(said[start], said[start + 1])
        code = _CODE.match(header[start]) if has_codes else None
        end = start
        while end < len(header) and stem and said[end].startswith(stem):
            other = _CODE.match(header[end]) if has_codes else None
            if code and (other is None or other["question"] != code["question"]):
                break
            end += 1
        if end - start >= _MIN_OPTIONS:
            yield tuple(range(start, end)), stem
        start = max(end, start + 1)


def _shared(one: str, other: str) -> str:
    """Return the longest beginning that both share and that ends before an option."""
    words, others = one.split(_BEFORE)[:-1], other.split(_BEFORE)[:-1]
    same = 0
    while same < min(len(words), len(others)) and words[same] == others[same]:
        same += 1
    return _BEFORE.join(words[:same]) + _BEFORE if same else ""


def _is_choice(value: str, option: str) -> bool:
    plain = " ".join(value.split()).casefold()
    return plain in _MARKS or plain == " ".join(option.split()).casefold()
