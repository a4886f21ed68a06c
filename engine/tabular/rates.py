"""Frequencies as a number of times a year: "twice a week", "mehrmals im Monat"."""

import math
import re

_UNITS = (  # times a year, and the words for it in six languages
    (8_760.0, r"hours?|hourly|stunden?|stündlich|horas?|heures?|or[ae]"),
    (365.0, r"days?|daily|everyday|nightly|nights?|tage?n?|täglich|tag|días?|dias?|diario|"
            r"diariamente|"
            r"jours?|quotidien(?:nement)?|nuit|giorn[oi]|giornaliero|quotidian[oa](?:mente)?"),
    (52.0, r"weeks?|weekly|weekends?|wochen?|wöchentlich|woche|wochenenden?|semanas?|"
           r"semanal(?:mente)?|"
           r"semaines?|hebdomadaire(?:ment)?|week-ends?|settiman[ae]|settimanal(?:e|mente)"),
    (12.0, r"months?|monthly|monate?n?|monatlich|monat|meses|mes|mensual(?:mente)?|mois|"
           r"mensuel(?:lement)?|mes[ei]|mensil(?:e|mente)|mês|mensalmente|mensal"),
    (2.5, r"semesters?|terms?|semestres?"),
    (4.0, r"quarters?|quarterly|quartale?|trimestres?"),
    (1.0, r"years?|yearly|annually|annual|jahre?n?|jährlich|jahr|años?|anual(?:mente)?|ans?|"
          r"années?|"
          r"annuel(?:lement)?|ann[oi]|annual(?:e|mente)|anos?|anualmente"),
)  # fmt: skip
_COUNTS = (
    (1.0, r"once|one time|einmal|ein mal|una vez|une fois|una volta|uma vez|1x"),
    (2.0, r"twice|two times|zweimal|zwei mal|dos veces|deux fois|due volte|duas vezes|2x"),
    (3.0, r"thrice|three times|dreimal|drei mal|tres veces|trois fois|tre volte|três vezes|3x"),
    (3.5, r"a few|a couple of|few times|ein paar|einige male|algunas veces|"
          r"unas pocas "
          r"veces|pocas veces|quelques fois|qualche volta|alcune volte|algumas vezes|poucas vezes"),
    (4.5, r"several|multiple times|many times|mehrmals|mehrere|varias|"
          r"plusieurs|più volte|diverse volte|várias vezes|muitas vezes"),
)  # fmt: skip
_EVERY = (
    (2 / 7, r"every few|every couple of|alle paar|cada pocos|cada pocas|tous les quelques|"
            r"toutes les quelques|ogni pochi|ogni poche|a cada poucos|a cada poucas"),
    (0.5, r"every other|every second|every two|jeden zweiten|jede zweite|alle zwei|cada dos|"
          r"tous les deux|"
          r"toutes les deux|un(?:e)? .{1,10} sur deux|ogni due|a cada dois|a cada duas"),
    (0.7, r"most|an den meisten|la mayoría de los|presque tous les|almost every|nearly every|"
          r"fast jeden|"
          r"fast jede|casi todos los|casi cada|presque chaque|quasi ogni|"
          r"quasi tutti i|quase todos os|quase todo"),
)  # fmt: skip
_NEVER = re.compile(
    r"never|not at all|none|no|nie|niemals|gar nicht|nunca|jamás|jamais|pas du tout|mai|per niente"
)
_VAGUE = {
    3.0: "rarely|seldom|very rarely|selten|sehr selten|raramente|rara vez|rarement|très rarement|"
    "di rado",
    1.0: "hardly ever|almost never|fast nie|casi nunca|presque jamais|quasi mai|quase nunca",
    8.0: "occasionally|gelegentlich|ocasionalmente|occasionnellement|once in a while",
}
_ALWAYS = re.compile(r"always|constantly|immer|ständig|siempre|toujours|all the time|sempre")
# A number of units, as in "every 2 weeks", "2 days a week" and "30 minutes".
_COUNTED = re.compile(
    r"(?P<every>\b(?:every|alle|cada|tous les|toutes les|ogni) )?"
    rf"\b(?P<n>\d+(?:\.\d+)?|{_COUNTS[3][1]}|{_COUNTS[4][1]}) ?(?:"
    rf"(?P<day>{_UNITS[1][1]}|{_UNITS[2][1]})|min(?:ute[ns]?|utos?|uti)?s?|h|hrs?|std|"
    + "|".join(words for _, words in (_UNITS[0], *_UNITS[3:]))
    + r")\b"
)
_LESS = re.compile(r"\b(?:less|fewer|under|weniger|seltener|unter|menos|moins|meno)\b")
_MORE = re.compile(
    r"\b(?:more|over|mehr|öfter|häufiger|über|más|plus|oltre|mais|più di)\b|\+$|\bor more\b"
)


def times_a_year(text: str) -> float | None:
    """Return the frequency stated by a lower-case plain text; None if it states none.

    Examples
    --------
    >>> times_a_year("once a week"), times_a_year("2-3 times a month"), times_a_year("never")
    (52.0, 30.0, 0.0)
    """
    if _NEVER.fullmatch(text):
        return 0.0
    if _ALWAYS.fullmatch(text):
        return math.inf
    for rate, words in _VAGUE.items():  # beside "monthly" and "weekly" they have a place
        if text in words.split("|"):
            return rate
    named = [rate for rate, words in _UNITS if re.search(rf"\b(?:{words})\b", text)]
    if not named:
        return None
    unit = named[0]
    counted = _COUNTED.search(text)
    every = next((n for n, words in _EVERY if re.search(rf"\b(?:{words})\b", text)), 1.0)
    if counted is not None and counted["every"] and counted["n"].isdecimal():
        return unit / max(float(counted["n"]), 1.0)
    if counted is not None and every == 1.0:  # "2 days a week", not "2 hours a day" or "2 weeks"
        counts_days = counted["day"] is not None
        if not counts_days or len(named) < 2:
            return None
        unit = named[1]
    count = next((n for n, words in _COUNTS if re.search(rf"\b(?:{words})\b", text)), None)
    numbers = [float(found) for found in re.findall(r"\d+(?:\.\d+)?", text)]
    if numbers:
        count = sum(numbers[:2]) / len(numbers[:2])
    if count is None:
        count = 1.0
    slightly = 0.9 if _LESS.search(text) else 1.1 if _MORE.search(text) else 1.0
    return unit * count * every * slightly
