"""Cells that are no valid id: a word for "none", or a number that a spreadsheet cut off."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from engine.tabular.scales import declines_to_answer
from engine.tabular.survey_table import is_blank, is_error
from engine.tabular.text import fold_answer

_NO_ID = frozenset({
    "none", "no", "no id", "unknown", "not known", "tbd", "tba", "pending", "?", "??", "???", "x",
    "xx", "xxx", "xxxx", "don't know", "i don't know", "idk", "don't have one", "not sure", "keine",
    "keiner", "unbekannt", "weiß nicht", "ninguno", "ninguna", "desconocido", "no tengo", "no sé",
    "aucun", "aucune", "inconnu", "je ne sais pas", "nan", "nil", "false",
})  # fmt: skip
_SCIENTIFIC = re.compile(r"\d(?:[.,]\d+)?E\+?\d{1,3}", re.IGNORECASE)
_MIN_SHARE = 0.5
_ZEROS_BEHIND = re.compile(r"(\d+)[.,]0+")


def is_no_id(cell: str) -> bool:
    """Return True if an id cell means that there is none: blank, N/A, "unknown", #N/A.

    Examples
    --------
    >>> is_no_id("N/A"), is_no_id("don’t know"), is_no_id("N00012")
    (True, True, False)
    """
    if is_blank(cell) or is_error(cell):
        return True
    if any(c.isdigit() for c in cell) or "@" in cell:
        return False
    return fold_answer(cell).strip(" .!") in _NO_ID or declines_to_answer(cell)


def is_destroyed(answers: Mapping[str, int]) -> bool:
    """Return True if Excel cut the last digits of a column of numbers: 1.00E+11."""
    broken = sum(n for cell, n in answers.items() if _SCIENTIFIC.fullmatch(cell))
    return broken > 0 and broken >= _MIN_SHARE * sum(answers.values())


def bare_number(text: str) -> str:
    """Return an id without the changes of spreadsheets: zeros before it, ".0" after it.

    Examples
    --------
    >>> bare_number("00123"), bare_number("123.0"), bare_number("N012")
    ('123', '123', 'N012')
    """
    found = _ZEROS_BEHIND.fullmatch(text)
    text = found[1] if found else text
    return text.lstrip("0") or text if text.isdecimal() else text


def differing_by_zeros(cells: Sequence[str], ids: Sequence[str]) -> dict[str, str]:
    """Return {cell: id} of the cells that match exactly one id, but for zeros."""
    times = Counter(map(bare_number, ids))
    by_number = {bare_number(one): one for one in ids if times[bare_number(one)] == 1}
    known = set(ids)
    found = {}
    for cell in dict.fromkeys(cells):
        bare = bare_number(cell)
        if cell not in known and bare.isdecimal() and bare in by_number:
            found[cell] = by_number[bare]
    return found
