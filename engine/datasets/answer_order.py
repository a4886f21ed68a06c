"""In which order the answers to a question stand, told from their wording."""

import re
from collections.abc import Iterable, Sequence

# Each scale lists its steps in order; a step is a set of wordings. A column follows a scale when
# every answer matches one step and no two answers match the same one.
_SCALES: tuple[tuple[tuple[str, ...], ...], ...] = (
    (("no", "n", "false"), ("yes", "y", "true")),
    (("no", "no, never"), ("maybe", "sometimes", "don't know", "unsure"), ("yes", "yes, always")),
    (
        ("strongly disagree", "disagree strongly", "completely disagree"),
        ("disagree", "somewhat disagree", "rather disagree"),
        ("neutral", "neither agree nor disagree", "undecided", "neither"),
        ("agree", "somewhat agree", "rather agree"),
        ("strongly agree", "agree strongly", "completely agree"),
    ),
    (
        ("never", "not at all", "none"),
        ("almost never", "hardly ever", "very rarely"),
        ("rarely", "seldom", "a few times a year", "yearly"),
        ("occasionally", "monthly", "a few times a month"),
        ("sometimes", "now and then", "weekly", "a few times a week"),
        ("often", "frequently", "most days", "usually"),
        ("very often", "almost always", "daily", "every day"),
        ("always",),
    ),
    (("very low",), ("low",), ("medium", "moderate", "average", "mild"), ("high",), ("very high",)),
    (
        ("very quiet", "silent"),
        ("quiet",),
        ("in between", "medium", "moderate", "average"),
        ("outgoing", "loud", "noisy"),
        ("very outgoing", "very loud", "very noisy"),
    ),
    (
        ("very messy", "very untidy"),
        ("messy", "untidy"),
        ("in between", "average", "moderate"),
        ("tidy", "neat", "clean"),
        ("very tidy", "very neat", "very clean", "spotless"),
    ),
    (("very poor", "very bad"), ("poor", "bad"), ("fair", "ok"), ("good",), ("very good",)),
    (("cold", "cool"), ("mild", "medium"), ("warm",), ("hot",)),
    (("small",), ("medium",), ("large",)),
    (("introvert", "introverted"), ("ambivert", "in between"), ("extrovert", "extroverted")),
    (
        ("never smoked", "non-smoker", "non smoker"),
        ("tried smoking",),
        ("former smoker", "quit"),
        ("social smoker", "occasional smoker"),
        ("current smoker", "smoker", "regular smoker"),
    ),
    (("never", "non-drinker"), ("social drinker", "drink socially"), ("drink a lot",)),
    (
        ("i am often early", "often early", "early"),
        ("i am always on time", "always on time", "on time"),
        ("i am often running late", "often late", "late"),
    ),
    (
        ("never",),
        ("only to avoid hurting someone",),
        ("sometimes",),
        ("often",),
        ("everytime it suits me", "every time it suits me"),
    ),
    (
        ("no time at all",),
        ("less than an hour a day",),
        ("few hours a day", "a few hours a day"),
        ("most of the day",),
    ),
    (
        ("currently a primary school pupil",),
        ("primary school", "elementary school"),
        ("secondary school", "high school"),
        ("some college",),
        ("college/bachelor degree", "bachelor", "bachelor degree", "bachelor's degree"),
        ("masters degree", "master", "master's degree"),
        ("doctorate degree", "doctorate", "phd"),
    ),
    (
        ("very cold", "freezing"),
        ("cold",),
        ("cool",),
        ("mild", "medium", "moderate", "in between"),
        ("warm",),
        ("hot", "very warm"),
    ),
    (("freshman",), ("sophomore",), ("junior",), ("senior",)),
    (("early bird", "morning"), ("in between", "neither"), ("night owl", "evening")),
)

_NUMBER = re.compile(r"\d+(?:[.:]\d+)?")
_CLOCK = re.compile(r"\b([01]?\d|2[0-4]):[0-5]\d\b")  # of 24 hours


def is_whole_number(text: str) -> bool:
    """Whether the text is an integer such as 4 or -1 or 3.0."""
    return re.fullmatch(r"[+-]?\d{1,9}(?:\.0+)?", text) is not None


def is_number(text: str) -> bool:
    """Whether the text is a plain decimal number."""
    return re.fullmatch(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?", text) is not None


def order_answers(answers: Iterable[str]) -> tuple[tuple[str, ...], bool]:
    """Return the answers in order and whether that order means something.

    Numbers by size; known scales by their steps; phrases with numbers or times ("10-11 pm",
    "less than 2") by those; anything else alphabetically, as nominal.
    """
    levels = sorted(set(answers), key=lambda text: (text.lower(), text))
    if levels and all(is_number(x) for x in levels):
        return tuple(sorted(levels, key=lambda x: float(x.replace(",", ".")))), True
    for scale in _SCALES:
        ranks = _ranks(levels, scale)
        if ranks is not None:
            return tuple(x for _, x in sorted(zip(ranks, levels, strict=True))), True
    night = _runs_past_midnight(levels)
    keys = [_number_key(x, night) for x in levels]
    known = [key for key in keys if key is not None]
    if len(known) == len(levels) and len(set(known)) == len(levels) and len(levels) > 2:
        return tuple(x for _, x in sorted(zip(known, levels, strict=True))), True
    return tuple(levels), False


def _ranks(levels: Sequence[str], scale: Sequence[Sequence[str]]) -> list[int] | None:
    step_of = {wording: rank for rank, step in enumerate(scale) for wording in step}
    plain = [re.sub(r"[\s_]+", " ", x.lower().replace("’", "'")).strip(" .!") for x in levels]
    ranks = [step_of.get(text, -1) for text in plain]
    if len(levels) < 2 or min(ranks) < 0 or len(set(ranks)) < len(ranks):
        return None
    return ranks


def _runs_past_midnight(levels: Sequence[str]) -> bool:
    """Whether times by the 24-hour clock run from an evening into the night: 22:30 to 01:00."""
    hours = [int(hour) for text in levels for hour in _CLOCK.findall(text)]
    return max(hours, default=0) >= 18 and all(hour >= 18 or hour < 5 for hour in hours)


def _number_key(text: str, night: bool) -> tuple[float, float] | None:
    """Return where a phrase with a number or a clock time stands: "after 1 am" behind "12-1 am".

    With ``night``, the hours after midnight stand behind those of the evening.
    """
    lowered = text.lower().replace("midnight", "12 am").replace("noon", "12 pm")
    numbers = [float(x.replace(":", ".")) for x in _NUMBER.findall(lowered)]
    if not numbers:
        return None
    first = numbers[0]
    has_clock = re.search(r"\b(?:am|pm)\b|\d(?:am|pm)\b", lowered) is not None
    if has_clock:
        halves = re.findall(r"(am|pm)", lowered)
        half = halves[0] if len(halves) == len(numbers) else halves[-1]
        crossing = len(numbers) > 1 and first > numbers[1] and len(halves) < len(numbers)
        half = {"am": "pm", "pm": "am"}[half] if crossing and first < 12 else half
        hour = first % 12 + (12 if half == "pm" else 0)
        first = hour + 24 if hour < 5 else hour
    elif night and first < 5:
        first += 24
    shift = 0.0
    if re.match(r"\s*(?:<|less|under|before|earlier|up to|at most|fewer|until)", lowered):
        shift = -1.0
    elif re.match(r"\s*(?:>|more|over|after|later|above)", lowered) or lowered.endswith("+"):
        shift = 1.0
    return first, shift
