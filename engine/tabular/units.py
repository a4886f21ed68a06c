"""Answers with several units in one of them: "30 min" and "1 hour" as 30 and 60."""

import re
from collections.abc import Sequence
from functools import cache

# Per kind: the size of each unit, and the words for it in six languages. Times come first.
_KINDS = (
    (
        (1 / 60, r"seconds?|secs?|sekunden?|sek|segundos?|secondes?|second[io]"),
        (1.0, r"minutes?|mins?|m|minuten?|minutos?|minut[io]"),
        (60.0, r"hours?|hrs?|h|stunden?|std|horas?|heures?|or[ae]"),
        (1_440.0, r"days?|tage?n?|días?|dias?|jours?|giorn[io]"),
        (10_080.0, r"weeks?|wks?|wochen?|semanas?|semaines?|settiman[ae]"),
        (43_800.0, r"months?|monate?n?|mes(?:es|e|i)?|mois|mês"),
        (525_600.0, r"years?|yrs?|jahre?n?|años?|anos?|ans?|années?|ann[io]"),
    ),
    (
        (0.001, "mm"), (0.01, "cm"), (1.0, r"m|meters?|metres?|metros?|mètres?|metr[io]"),
        (1_000.0, r"km|kilomet(?:er|re)s?|kilómetros?|quilómetros?|kilomètres?|chilometr[io]"),
        (0.0254, r"in|inch(?:es)?|\""), (0.3048, "ft|foot|feet|'"), (0.9144, "yd|yards?"),
        (1_609.344, "mi|miles?"),
    ),
    (
        (0.001, "mg"), (1.0, "g|grams?|gramm"), (1_000.0, "kg|kilos?"), (453.59, "lbs?|pounds?"),
        (28.35, "oz|ounces?"),
    ),
    ((1.0, "kb"), (1e3, "mb"), (1e6, "gb"), (1e9, "tb")),
)  # fmt: skip
_NUMBER = r"\d+(?:\.\d+)?"
_RANGE = r" ?(?:-|/|to|or|and|bis|oder|und|a|o|y|à|ou|et|e) ?"
_OR_MORE = r"(?P<more>\+| or more| oder mehr| o más| ou plus| o più| ou mais)"
_JOINS = ("", "and", "und", "y", "et", "e", ",")  # of one amount: "1 hour and 30 min"
_THOUSANDS = re.compile(rf"({_NUMBER}) ?k(?![^\W\d_])")
_SPELLED = (
    (r"\b(?:(?:an? )?half (?:an? )?hour|(?:eine )?halbe stunde|media hora|(?:une )?demi-heure|"
     r"mezz'ora|meia hora)\b", "30 min"),
    (r"(?:^|(?<=than )|(?<=about )|(?<=around )|(?<=over )|(?<=under )|(?<=within ))"
     r"an? (?=[^\W\d_])", "1 "),
    (r"(?<=\d) ?h ?([0-5]\d)(?!\d| ?[^\W\d_])", r" h \1 min"),
    (r"(?<=\d)' ?(\d\d?)(?!['\d])\"?", r" ft \1 in"),
)  # fmt: skip


def with_thousands(texts: Sequence[str]) -> list[str]:
    """Return folded answers with 10000 in place of 10k, unless all of them are in thousands."""
    found = [_THOUSANDS.search(text) is not None for text in texts]
    if not any(found) or all(found):
        return list(texts)
    return [_THOUSANDS.sub(lambda number: f"{float(number[1]) * 1_000:.6g}", x) for x in texts]


def in_one_unit(texts: Sequence[str]) -> list[str] | None:
    """Return folded answers with their numbers in one unit, which is left out.

    Answers that use fewer than two units of a kind come back as they are. None if their numbers
    cannot be compared: one of them has no unit, or is so much for a day and another for a week.

    Examples
    --------
    >>> in_one_unit(["less than 30 min", "30 min - 1 hour", "1-2 hours", "1h30"])
    ['less than 30', '30 - 60', '60 - 120', '90']
    >>> in_one_unit(["1 hour a day", "30 minutes a week"]) is None
    True
    """
    spelled = list(texts)
    for pattern, plain in _SPELLED:
        spelled = [re.sub(pattern, plain, text) for text in spelled]
    for kind in range(len(_KINDS)):
        amounts = [list(_amount(kind).finditer(text)) for text in spelled]
        if len({one.lastgroup for found in amounts for one in found}) > 1:
            sized = [_in_smallest(kind, text) for text in spelled]
            known = [text for text in sized if text is not None]
            rests = {tuple(_words(kind).findall(text)) for text in known}  # "a day"
            return known if len(known) == len(sized) and len(rests) == 1 else None
    return spelled


def _in_smallest(kind: int, text: str) -> str | None:
    """Return a text with its amounts in one unit; None if a number other than 0 has no unit."""
    parts: list[str] = []
    total, size_before, end = 0.0, 0.0, 0
    for found in _amount(kind).finditer(text):
        between = text[end : found.start()]
        if re.search(r"[1-9]", between):
            return None
        size = float(_KINDS[kind][int((found.lastgroup or "_0")[1:])][0])
        low, high = (float(found[k] or 0) * size for k in ("low", "high"))
        rest = f" - {high:.10g}" if found["high"] else found["more"] or ""
        if parts and size < size_before and not rest and between.strip() in _JOINS:
            total += low  # "1 hour 30 min"
            parts[-2:] = [f"{total:.10g}", ""]
        else:
            total = low
            parts += [between, f"{low:.10g}", rest]
        size_before, end = size, found.end()
    return None if re.search(r"[1-9]", text[end:]) else "".join([*parts, text[end:]])


@cache
def _amount(kind: int) -> re.Pattern[str]:
    """Return the pattern of one or two numbers and a unit, whose number is the last group."""
    units = "|".join(f"(?P<_{k}>{words})" for k, (_, words) in enumerate(_KINDS[kind]))
    number = rf"(?<![\w.:])(?P<low>{_NUMBER})(?:{_RANGE}(?P<high>{_NUMBER})|{_OR_MORE})?"
    return re.compile(rf"{number}[ -]?(?:{units})(?![^\W_])")


@cache
def _words(kind: int) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(words for _, words in _KINDS[kind])})\b")
