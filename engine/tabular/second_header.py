"""A second row that names the columns, in files of programs that no rule knows.

Many programs write short codes above the wordings of the questions, or below them. In nearly every
column, such a row is unlike all answers. The answers of a student are not.
"""

import re
from collections.abc import Sequence

from engine.tabular.source import Line
from engine.tabular.text import fold_answer

_LOOKED_AT = 60  # rows below, which show what answers of a column look like
_LEAST_ANSWERS = 8  # in a column; fewer do not show which answers are usual
_LEAST_COLUMNS = 3  # in which the row must be unlike the answers
_SHARE = 0.8  # of the columns that can be compared
_CODE = re.compile(r"[A-Za-z]{1,12}[_.-]?\d{1,4}(?:[_.-]?\w{1,8})?")


def is_second_header(header: Line, line: Line, below: Sequence[Line]) -> bool:
    """Return True if the row after the header describes columns too, instead of answering.

    Each of its cells must be unlike the answers below it: without a digit where all have one, or an
    answer that nobody else gave in a column whose answers repeat, and then longer than all of them
    or a code such as "Q3_2". This must hold in four of five columns that can be compared, and in at
    least three; the cells must differ from each other and from the header.
    """
    cells = [fold_answer(cell) for cell in line.cells if cell]
    if len(set(cells)) < max(_LEAST_COLUMNS, 0.9 * len(cells)):
        return False
    compared = unlike = 0
    for k, (title, cell) in enumerate(zip(header.cells, line.cells, strict=False)):
        answers = [x.cells[k] for x in below[:_LOOKED_AT] if k < len(x.cells) and x.cells[k]]
        if not title or not cell or len(answers) < _LEAST_ANSWERS:
            continue
        found = _is_unlike(cell, answers)
        if found is None:
            continue
        compared += 1
        unlike += found and fold_answer(cell) != fold_answer(title)
    return unlike >= max(_LEAST_COLUMNS, _SHARE * compared)


def holds_wordings(header: Line, line: Line) -> bool:
    """Return True if a second header row holds the wordings and the first one codes."""
    return sum(map(len, line.cells)) > sum(map(len, header.cells))


def _is_unlike(cell: str, answers: Sequence[str]) -> bool | None:
    """Return True if a cell is unlike the answers below it; None if these all differ."""
    is_code = _CODE.fullmatch(cell) is not None
    if all(map(_has_digit, answers)):
        return not _has_digit(cell) or (is_code and not any(map(_CODE.fullmatch, answers)))
    usual = {fold_answer(answer) for answer in answers}
    if 2 * len(usual) > len(answers):
        return None
    if fold_answer(cell) in usual:
        return False
    is_longest = len(cell) > max(map(len, answers))
    return is_longest or cell.endswith("?") or is_code


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))
