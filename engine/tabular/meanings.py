"""Matching of a text to the answer of a question with another spelling or language."""

from collections.abc import Sequence

from engine.tabular.answer_order import is_number
from engine.tabular.garbled import repaired
from engine.tabular.scales import rank_answers
from engine.tabular.text import fold_answer


def same_writing(text: str, levels: Sequence[str]) -> str | None:
    """Return the answer that equals a text but for capitals, quotes, widths or decimals, or None.

    Examples
    --------
    >>> same_writing("don’t KNOW", ["Yes", "Don't know"]), same_writing("3.0", ["3", "4"])
    ("Don't know", '3')
    """
    wanted = _compared(text)
    return next((level for level in levels if _compared(level) == wanted), None)


def same_meaning(text: str, levels: Sequence[str]) -> str | None:
    """Return the answer that a text states in another language or garbled letters, or None.

    Examples
    --------
    >>> same_meaning("Ja", ["No", "Yes"]), same_meaning("CafÃ©", ["Café", "Thé"])
    ('Yes', 'Café')
    >>> same_meaning("Perhaps", ["No", "Yes"]) is None
    True
    """
    found = same_writing(text, levels) or same_writing(repaired(text), levels)
    if found is not None or len(levels) < 2:
        return found
    own, joined = rank_answers(levels), rank_answers([*levels, text])
    if own is None or joined is None:
        return None
    group = next((group for group in joined.same if text in group), ())
    return next((level for level in group if level != text), None)


def _compared(text: str) -> str:
    plain = fold_answer(text)
    return f"{float(plain.replace(',', '.')):g}" if is_number(plain) else plain
