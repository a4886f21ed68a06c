"""Columns that read like a rule about room sharing, rather than a habit of living."""

import re
from collections.abc import Mapping

MAX_VALUES = 12
_MIN_SHARE = 0.6
NEED = "accessible"  # features that a room offers, not ones that roommates share
_GENDER_VALUES = frozenset({
    "man", "men", "male", "m", "boy", "woman", "women", "female", "f", "girl", "nonbinary",
    "non-binary", "x", "divers", "d", "w", "weiblich", "männlich", "mann", "frau", "hombre",
    "mujer", "masculino", "femenino", "varón", "homme", "femme", "masculin", "féminin", "uomo",
    "donna", "maschio", "femmina", "homem", "mulher", "kvinna", "kvinde", "kvinne", "muž", "žena",
})  # fmt: skip
# A question about others (guests, a requested roommate) is no fact about the person.
_ABOUT_OTHERS = re.compile(
    r"guest|visitor|opposite|same[- ]sex|room ?mate|comfortable|prefer|live with|partner|mind\b|"
    r"would you like|important", re.I
)  # fmt: skip
_WISH = re.compile(
    r"prefer|(?<!single )(?<!multiple )\bchoice|\bwish|\brank|\bwant|"
    r"would you (?:like|rather)|desired|favou?rite|"
    r"wunsch|möchte|preferencia|elección|préfér|souhait|choix", re.I
)  # fmt: skip
_IN_BRACKETS = re.compile(r"\([^()]*\)")  # as "(choose one)"
_WORDS = (
    ("gender", re.compile(
        r"\b(?:gender|sex|geschlecht|género|genero|sexo|genre|sesso|kön|pohlaví)\b", re.I)),
    (NEED, re.compile(
        r"accessib|wheelchair|barrier[- ]?free|barrierefrei|accesib|step[- ]free|disabilit|"
        r"^needs?$|(?:medical|health|housing|special|access|accommodation)s?(?: and \w+)? needs?\b|"
        r"accommodation requests?|ground[- ]floor|visual alarm|\bdeaf\b|hard of hearing|\bADA\b|"
        r"rollstuhl|erdgeschoss|silla de ruedas|planta baja|fauteuil roulant|rez-de-chauss", re.I)),
    ("RA", re.compile(
        r"^RA$|\bRA\b(?! ?\w*mate)|resident (?:assistant|advis[eo]r)|hall tutor|wohnheimtutor")),
    ("hall", re.compile(
        r"^(?:current |assigned |your )?(?:residence hall|hall|dorm(?:itory)?|building|house)\b"
        r"(?! rules).{0,12}$|"
        r"which (?:hall|building|dorm\w*|residence)", re.I)),
)  # fmt: skip


def rule_of(name: str, wording: str, counter: Mapping[str, int]) -> str:
    """Return the subject of the rule in a column ("gender", "hall", ...), or empty.

    Gender is recognised by its answers whatever the wording; the others by their wording. A need
    may be stated by one answer and blanks.
    """
    if not 1 <= len(counter) <= 50:
        return ""
    said = f"{name} {wording}".strip()
    if _ABOUT_OTHERS.search(said):
        return ""
    is_wish = states_a_wish(said)
    if len(counter) <= MAX_VALUES and _are_genders(counter) and not is_wish:
        return "gender"
    for rule, pattern in _WORDS:
        if rule != NEED and (is_wish or len(counter) < 2):
            continue  # who wants a step-free room needs one
        if (pattern.search(name) or pattern.search(wording)) and (
            rule in ("hall", NEED) or len(counter) <= MAX_VALUES
        ):
            return rule
    return ""


def states_a_wish(title: str) -> bool:
    """Return True if a title asks what somebody would like, such as "1st choice hall"."""
    return _WISH.search(_IN_BRACKETS.sub("", title)) is not None


def _are_genders(counter: Mapping[str, int]) -> bool:
    known = {value for value in counter if value.casefold().strip(". ") in _GENDER_VALUES}
    rows = sum(counter[value] for value in known)
    return len(known) >= 2 and rows >= _MIN_SHARE * sum(counter.values())
