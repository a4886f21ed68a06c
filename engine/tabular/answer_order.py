"""Order of the answers to a question, derived from their wording."""

import math
import re
from collections.abc import Iterable, Sequence

from engine.tabular.clocks import HALF, past_midnight
from engine.tabular.numerals import NAMED_TIMES, plain_numbers
from engine.tabular.rates import times_a_year
from engine.tabular.scales import rank_answers
from engine.tabular.text import fold_answer
from engine.tabular.units import in_one_unit, with_thousands

_NUMBER_WORDS = {
    **{"|".join(words): f"12 {'pm' if minute else 'am'}" for minute, words in NAMED_TIMES.items()},
    "none|no|zero|nothing|never|keine[rs]?|null|nie|ningun[oa]|cero|nunca|aucune?|zéro|jamais": "0",
    "nessun[oa]?|nenhuma?": "0",
    "once": "1",
    "twice": "2",
    "one|eine?s?|un[oa]?|une": "1",
    "two|zwei|dos|deux|due|dois|duas": "2",
    "three|drei|tres|trois|tre|três": "3",
    "four|vier|cuatro|quatre|quattro|quatro": "4",
    "five|fünf|cinco|cinq|cinque": "5",
    "six|sechs|seis": "6",
    "seven|sieben|siete|sept|sette|sete": "7",
    "eight|acht|ocho|huit|otto|oito": "8",
    "nine|neun|nueve|neuf|nove": "9",
    "ten|zehn|diez|dix|dieci|dez": "10",
}  # fmt: skip
_NUMBER = re.compile(r"\d+(?:[.:]\d+)?")
_NEGATIVE = re.compile(r"[^\d]*(?<!\w)-\d")
_POINTED_HALF = re.compile(r"(?<=[\d\s])([ap])\. ?m\b\.?")
_HALF_OF_FIRST = re.compile(r"\D*\d+(?:[.:]\d+)? ?(?:am|pm)\b")
# Before midnight or before noon, as the other answers tell.
_TO_TWELVE = re.compile(r"\D*\d+(?:[.:]\d+)? ?(?:-|to|bis) ?12(?:[.:]00)? ?(?:am|pm)\b")
_STARS = re.compile("([★⭐*]+)[☆✩]*")
_SPAN = re.compile(r"\d ?(?:-|to|bis|a|à) ?(\d+(?:[.:]\d+)?)")  # and its end
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_DECIMAL_COMMA = re.compile(r"(?<![\d,.])(\d+),(\d{1,2})(?![\d,])")
_DECIMAL_POINT = re.compile(r"(?<![\d,.])\d+\.\d{1,2}(?![\d.])")
_HUNDREDS = re.compile(r"(?<![\d,.])[1-9]\d\d(?![\d]|[.,]\d)")
_GROUPS = {
    mark: re.compile(rf"(?<![\d.,])[1-9]\d{{0,2}}(?:[{mark}]\d{{3}})+(?!\d|[{mark}]\d)")
    for mark in (",", ".", "' ")
}


# The first number of an answer, -1 or 1 for what is below or above it, and the end of its range.
_Key = tuple[float, float, float]


def is_whole_number(text: str) -> bool:
    """Return True if the text is an integer such as 4 or -1 or 3.0."""
    return re.fullmatch(r"[+-]?\d{1,9}(?:\.0+)?", text) is not None


def is_number(text: str) -> bool:
    """Return True if the text is a plain decimal number."""
    return re.fullmatch(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?", text) is not None


def order_answers(answers: Iterable[str]) -> tuple[tuple[str, ...], bool]:
    """Return the answers in order, and True if that order has a meaning.

    Numbers are ordered by size, known scales by their steps, frequencies by the times in a year,
    and phrases with numbers or times ("10-11 pm", "less than 2") by those. Anything else is
    alphabetical and nominal. Answers in several languages are in the order of their scale, but form
    no scale until the words for one answer count as one.
    """
    levels = sorted(set(answers), key=lambda text: (text.lower(), text))
    plain = [_counted_stars(text) for text in plain_numbers(levels)]
    if levels and all(map(is_number, plain)):
        numbers = _with_plain_numbers(plain)
        values = [float(x.replace(",", ".")) for x in numbers]
        if past_midnight(numbers) is None:  # "00.30" beside "22.30" is a time
            return tuple(x for _, x in sorted(zip(values, levels, strict=True))), True
    ranking = rank_answers(levels)
    if ranking is not None:
        return ranking.ordered, not ranking.same
    steps = _roman_steps(levels)
    if steps:
        return tuple(x for _, x in sorted(zip(steps, levels, strict=True))), True
    for keys in ([times_a_year(fold_answer(x)) for x in plain], _number_keys(_comparable(plain))):
        known = [key for key in keys if key is not None]
        if len(known) == len(levels) > 2 and len(set(known)) == len(levels):
            return tuple(x for _, x in sorted(zip(known, levels, strict=True))), True
    return tuple(levels), False


def _counted_stars(text: str) -> str:
    """Return the number of filled stars in place of an answer of stars alone."""
    stars = _STARS.fullmatch(fold_answer(text))
    return str(len(stars[1])) if stars else text


def _roman_steps(levels: Sequence[str]) -> list[int]:
    """Return the numbers of answers that differ in a Roman numeral, as "Level IV"; else none."""
    words = [re.findall(r"\w+", fold_answer(text)) for text in levels]
    if len(levels) < 3 or len({len(one) for one in words}) > 1:
        return []
    changing = [k for k, column in enumerate(zip(*words, strict=True)) if len(set(column)) > 1]
    if len(changing) != 1:
        return []
    numerals = [one[changing[0]] for one in words]
    if len(set(numerals)) < len(levels) or not {"ii", "iii"} & set(numerals):
        return []
    return [_ROMAN.index(x) for x in numerals] if set(numerals) <= set(_ROMAN) else []


def _with_plain_numbers(levels: Sequence[str]) -> list[str]:
    """Return folded answers whose numbers have a decimal point and no thousands separators.

    A point before three digits separates thousands where another answer has a decimal comma, or a
    bare number of hundreds: "500 EUR", "1.000 EUR".
    """
    texts = [fold_answer(text) for text in levels]
    has_comma = any(_DECIMAL_COMMA.search(text) for text in texts)
    has_point = any(_DECIMAL_POINT.search(text) for text in texts)
    is_point_group = not has_point and (has_comma or any(map(_HUNDREDS.search, texts)))
    marks = ["' "] + [","] * (not has_comma) + ["."] * is_point_group
    for mark in marks:
        texts = [
            _GROUPS[mark].sub(lambda found: re.sub(r"\D", "", found[0]), text) for text in texts
        ]
    return [_DECIMAL_COMMA.sub(r"\1.\2", text) for text in texts]


def _comparable(levels: Sequence[str]) -> list[str] | None:
    """Return folded answers with numbers that can be compared; None if theirs cannot."""
    texts = [_worded(text) for text in _with_plain_numbers(levels)]
    return past_midnight(texts) or in_one_unit(with_thousands(texts))


def _number_keys(texts: Sequence[str] | None) -> list[_Key | None]:
    """Return the sort key of every phrase; "after 12" beside "11 pm" is a time near it.

    So is "11-12 am" beside "10-11 pm" and "12-1 am".
    """
    texts = texts or []
    keys = [_number_key(text) for text in texts]
    clear = [HALF.search(text) and not _TO_TWELVE.match(text) for text in texts]
    hours = [key[0] for key, is_clear in zip(keys, clear, strict=True) if key and is_clear]
    if not hours:
        return keys
    low, high = min(hours), max(hours)
    near: list[_Key | None] = []
    for key, text, is_clear in zip(keys, texts, clear, strict=True):
        if key and not is_clear and (1 <= key[0] < 13 or HALF.search(text)):
            times = [key[0] % 12 + half for half in (0, 12, 24)]
            hour = min(times, key=lambda time: max(low - time, time - high, 0))
            near.append((hour, *key[1:]))
        else:
            near.append(key)
    return near


def _worded(text: str) -> str:
    """Return a folded answer with numbers in place of the words for them."""
    lowered = _POINTED_HALF.sub(r"\1m", fold_answer(text))
    for word, number in _NUMBER_WORDS.items():
        lowered = re.sub(rf"\b(?:{word})\b", number, lowered)
    return lowered


def _number_key(lowered: str) -> _Key | None:
    """Return the sort key of a phrase with a number or clock time: "after 1 am" after "12-1 am"."""
    numbers = [float(x.replace(":", ".")) for x in _NUMBER.findall(lowered)]
    if not numbers:
        return None
    first = numbers[0]
    has_clock = HALF.search(lowered) is not None
    if has_clock:
        halves = re.findall(r"(am|pm)", lowered)
        has_own = _HALF_OF_FIRST.match(lowered) is not None
        half = halves[0] if has_own else halves[-1]
        if not has_own and len(numbers) > 1 and numbers[1] < first < 12:
            half = {"am": "pm", "pm": "am"}[half]  # "11-1 am"
        hour = first % 12 + (12 if half == "pm" else 0)
        first = hour + 24 if hour < 5 else hour
    elif _NEGATIVE.match(lowered):
        first = -first
    shift = 0.0
    if re.match(
        r"\s*(?:<|≤|less|under|before|earlier|up to|at most|fewer|until|below|unter|vor|bis|"
        r"weniger|"
        r"höchstens|menos|antes|hasta|máximo|moins|avant|jusqu|meno|prima|fino|al massimo|até|"
        r"no máximo)",
        lowered,
    ):
        shift = -1.0
    elif re.match(
        r"\s*(?:>|≥|more|over|after|later|above|at least|über|nach|ab\b|mehr|mindestens|más|"
        r"después|"
        r"desde|plus|après|dès|au moins|più|oltre|dopo|almeno|mais|depois|acima|pelo menos)|"
        r".*\d.*\b(?:or (?:more|later|over)|and (?:more|over|up)|"
        r"oder "
        r"(?:mehr|später)|o más|ou plus|y más|et plus|o più|ou mais|e oltre)\b",
        lowered,
    ) or lowered.endswith("+"):
        shift = 1.0
    span = _SPAN.search(lowered)
    return first, shift, float(span[1].replace(":", ".")) if span else -math.inf
