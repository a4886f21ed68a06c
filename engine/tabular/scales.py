"""Answer scales of surveys in ten languages, and answers outside them.

The languages are English, German, Spanish, French, Italian and Portuguese; of Dutch, Chinese,
Japanese and Korean the usual scales are known.

Two kinds of scales are known; their words stand in ``scale_words.toml``. Words that have a place of
their own ("never", "sometimes", "first year") stand in lists. Graded answers ("very satisfied",
"eher unwichtig", "pas du tout d'accord") are read by their parts: a degree, a negation, and what is
graded, which may be any word that all answers of a question share. So the default scales of
Qualtrics, SurveyMonkey, Google Forms, Microsoft Forms, LimeSurvey and REDCap have their order, and
scales like them.

An answer that declines to answer ("Prefer not to say", "keine Angabe") is on no scale.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from engine.tabular.text import fold_answer

LANGUAGES = (
    "English", "German", "Spanish", "French", "Italian", "Portuguese", "Dutch", "Chinese",
    "Japanese", "Korean",
)  # fmt: skip

_WORDS = Path(__file__).with_name("scale_words.toml")
_SAY_NOTHING = frozenset({"yes", "much"})  # concepts that only state a degree
_BARE = 3.0  # the degree of an answer without a degree word
_GENDERED = re.compile(
    r"\((?:a|as|e|es|ne|s)\)|/(?:a|as|e|ne|in|innen)\b|[·.](?:e|es|ne|nes|a)\b|\*in\b|:in\b"
)
_UN = ("un", "in", "im", "dis", "il", "ir", "non", "des", "dés", "mé")
_LONGEST_PHRASE = 5
_DETAIL = re.compile(r"\s*\([^()]*\)\s*$")  # what a step means: "Cold (below 66 °F)"


@dataclass(frozen=True, slots=True)
class Place:
    """Position of an answer on a scale, and the languages that use its word; "" for any."""

    rank: float
    languages: frozenset[str]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The answers of a question on one scale.

    ``places`` has one entry per answer. ``same`` are answers that mean the same in other languages.
    """

    places: Mapping[str, Place]
    same: tuple[tuple[str, ...], ...] = ()

    @property
    def ordered(self) -> tuple[str, ...]:
        """Return the answers in the order of the scale."""
        return tuple(sorted(self.places, key=lambda answer: (self.places[answer].rank, answer)))


def rank_answers(answers: Iterable[str]) -> Ranking | None:
    """Return the places of all answers on one scale; None if they are on none.

    Two answers may share a place only in different languages.

    Examples
    --------
    >>> rank_answers(["Somewhat satisfied", "Very satisfied", "Not at all satisfied"]).ordered
    ('Not at all satisfied', 'Somewhat satisfied', 'Very satisfied')
    >>> rank_answers(["Yes", "No", "Ja", "Nein"]).same
    (('Nein', 'No'), ('Ja', 'Yes'))
    """
    different = list(dict.fromkeys(answers))
    if len(different) < 2 or any(map(declines_to_answer, different)):
        return None
    plain = {answer: _plain(answer) for answer in different}
    bare = {answer: _DETAIL.sub("", text).strip() for answer, text in plain.items()}
    for texts in (plain, bare) if bare != plain else (plain,):
        ranking = (
            _listed(texts)
            or _listed(_without_shared_words(texts))
            or _listed(_without_usual_words(texts))
            or _ranking(_graded(texts))
        )
        if ranking is not None:
            return ranking
    return None


def _listed(texts: Mapping[str, str]) -> Ranking | None:
    """Return the places of all answers on the first list that has them all."""
    for scale, needed in _indexed_lists():
        ranking = _ranking({answer: scale.get(text) for answer, text in texts.items()})
        if ranking is not None and (not needed or not needed.isdisjoint(texts.values())):
            return ranking
    return None


def _without_shared_words(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the answers without the words with which all begin or end: "light", "heavy" sleeper.

    Every answer keeps at least one word.
    """
    words = [text.split() for text in texts.values()]
    most = min(map(len, words)) - 1
    first = next((k for k in range(most) if len({one[k] for one in words}) > 1), max(most, 0))
    rest = most - first
    last = next((k for k in range(rest) if len({one[-1 - k] for one in words}) > 1), max(rest, 0))
    return {
        answer: " ".join(one[first : len(one) - last])
        for answer, one in zip(texts, words, strict=True)
    }


def _without_usual_words(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the answers without the words that most have: "never drink", "drink often".

    Words of a degree or a negation stay.
    """
    words = {answer: text.split() for answer, text in texts.items()}
    times = Counter(word for one in words.values() for word in set(one))
    usual = {word for word, n in times.items() if 2 * n > len(words)}
    usual -= {word for phrase in (*_degrees(), *_negations()) for word in phrase.split()}
    return {answer: " ".join(w for w in one if w not in usual) for answer, one in words.items()}


def _plain(answer: str) -> str:
    """Return an answer without the marks, forms of gender and numbers around its words."""
    text = _GENDERED.sub("", fold_answer(answer))
    text = re.sub(r"^\(?\d{1,2}\)?\s*(?:[-.:=)]\s*)+(?=[^\W\d_])", "", text)
    if re.search(r"[^\W\d_]{3}", text):
        text = re.sub(r"(?<![\d\s])\s*[-=(]\s*\(?\d{1,2}\)?$", "", text)
    return " ".join(text.strip(' .!?*"').replace("_", " ").split())


def _ranking(places: Mapping[str, Place | None]) -> Ranking | None:
    found = {answer: place for answer, place in places.items() if place is not None}
    if len(found) < len(places) or len(found) < 2:
        return None
    by_rank: dict[float, list[str]] = {}
    for answer in sorted(found):
        by_rank.setdefault(round(found[answer].rank, 6), []).append(answer)
    groups = [tuple(by_rank[rank]) for rank in sorted(by_rank)]
    if len(groups) < 2:
        return None
    shared = [group for group in groups if len(group) > 1]
    for group in shared:
        languages = [found[answer].languages for answer in group]
        if any(one & other for k, one in enumerate(languages) for other in languages[:k]):
            return None  # two words of one language: which one is higher is not known
    return Ranking(found, tuple(shared))


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(_WORDS.read_text(encoding="utf-8"))


@cache
def _indexed_lists() -> tuple[tuple[dict[str, Place], frozenset[str]], ...]:
    """Return {wording: place} of every list of words, with the words that it needs."""
    found = []
    for scale in _words()["list"]:
        index: dict[str, Place] = {}
        for language in LANGUAGES:
            for rank, step in enumerate(scale.get(language, ())):
                for wording in filter(None, map(fold_answer, step.split("|"))):
                    old = index.get(wording)
                    if old is None:
                        index[wording] = Place(rank, frozenset([language]))
                    elif old.rank == rank:
                        index[wording] = Place(rank, old.languages | {language})
        found.append((index, frozenset(filter(None, scale.get("needs", "").split("|")))))
    return tuple(found)


# -- the parts of a graded answer ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Grade:
    """A graded answer: its score and its graded word, empty if the degree is the whole answer."""

    score: float
    concept: str


def _graded(plain: Mapping[str, str]) -> dict[str, Place | None]:
    grades = {answer: _grade(text) for answer, text in plain.items()}
    concepts = _joined_opposites(
        {grade.concept for grade in grades.values() if grade and grade.concept}
    )
    if None in grades.values() or len(set(concepts.values())) > 1:
        return dict.fromkeys(plain)
    named = {bool(grade.concept) for grade in grades.values() if grade and grade.score}
    if len(named) > 1:  # "never" beside "no answer" grades nothing that both mention
        return dict.fromkeys(plain)
    has_degree = any(grade is not None and abs(grade.score) != _BARE for grade in grades.values())
    if not concepts and not has_degree:
        return dict.fromkeys(plain)
    places: dict[str, Place | None] = {}
    for answer, grade in grades.items():
        if grade is None:
            return dict.fromkeys(plain)
        sign = -1 if grade.concept and concepts[grade.concept] != grade.concept else 1
        places[answer] = Place(sign * grade.score, _languages(plain[answer]))
    return places


def _joined_opposites(concepts: set[str]) -> dict[str, str]:
    """Return {concept: its opposite, or itself}: "unkind" belongs to "kind"."""
    joined = {}
    for concept in concepts:
        roots = [concept.removeprefix(prefix) for prefix in _UN if concept.startswith(prefix)]
        joined[concept] = next((root for root in roots if root in concepts), concept)
    return joined


@lru_cache(maxsize=4_000)
def _grade(text: str) -> _Grade | None:
    """Return the grade of an answer; None if it states nothing or is too long."""
    if not text or len(text) > 80:
        return None
    if _pattern("neutral").fullmatch(text):
        return _Grade(0.0, "")
    words = re.findall(r"[^\W\d_]+(?:['-][^\W\d_]+)*'?|\d+", text)
    degrees, negations = _degrees(), _negations()
    degree: float | None = None
    negation: float | None = None
    is_negated = False
    rest: list[str] = []
    k = 0
    while k < len(words):
        size, phrase = _phrase(words, k)
        if not size:
            rest.append(words[k])
            k += 1
            continue
        if phrase in negations:
            is_negated = True  # "No, not at all" is as negative as "not at all"
            negation = negations[phrase] if negation is None else negation
        else:
            degree = degrees[phrase] if degree is None else max(degree, degrees[phrase])
        k += size
    return _scored(rest, degree, negation, is_negated=is_negated)


def _phrase(words: Sequence[str], start: int) -> tuple[int, str]:
    """Return the longest degree or negation that begins at a word: its word count, and its key."""
    for size in range(min(_LONGEST_PHRASE, len(words) - start), 0, -1):
        phrase = " ".join(words[start : start + size])
        if phrase in _negations() or phrase in _degrees():
            # "leicht" and "wahrscheinlich" are degrees, and at the end the graded word.
            is_last = start + size == len(words)
            if is_last and phrase in _stems() and phrase not in _negations():
                return 0, ""
            return size, phrase
    return 0, ""


def _scored(
    rest: Sequence[str], degree: float | None, negation: float | None, *, is_negated: bool
) -> _Grade | None:
    head = [word for word in rest if word not in _fillers()]
    if len(head) > 4:
        return None
    if not head and degree is None and not is_negated:
        return None
    concept, base, sign = _concept(head)
    if is_negated:
        sign = -sign
        amount = negation if negation is not None else degree if degree is not None else _BARE
    else:
        amount = degree if degree is not None else _BARE
    if degree is None and not is_negated:
        return _Grade(sign * base, concept)
    score = base + (amount - _BARE) * (1.0 if base == _BARE else 0.5)
    return _Grade(sign * score, concept)


def _concept(head: Sequence[str]) -> tuple[str, float, int]:
    """Return the graded concept, the score of its bare word, and its sign."""
    if not head:
        return "", _BARE, 1
    stems = _stems()
    known = [_stem_of(word, stems) for word in head]
    named = [one for one in known if one is not None]
    if named and len(named) == len(head) and len({concept for concept, _, _ in named}) == 1:
        concept, base, sign = named[-1]
        for _, other, other_sign in named[:-1]:
            base, sign = max(base, other), sign * (1 if other_sign == sign else -1)
        return ("" if concept in _SAY_NOTHING else concept), base, sign
    return " ".join(head), _BARE, 1


def _stem_of(
    word: str, stems: Mapping[str, tuple[str, float, int]]
) -> tuple[str, float, int] | None:
    for end in range(len(word), max(1, len(word) - 5), -1):
        found = stems.get(word[:end])
        if found is not None and (end == len(word) or end >= 4):
            return found
    return None


@cache
def _degrees() -> dict[str, float]:
    return {
        phrase: float(degree)
        for degree, phrases in _words()["degrees"].items()
        for phrase in _phrases(phrases)
    }


@cache
def _negations() -> dict[str, float | None]:
    return {
        phrase: None if degree == "plain" else float(degree)
        for degree, phrases in _words()["negations"].items()
        for phrase in _phrases(phrases)
    }


def _phrases(text: str) -> list[str]:
    return [fold_answer(phrase) for phrase in text.split("|")]


@cache
def _fillers() -> frozenset[str]:
    return frozenset(fold_answer(_words()["fillers"]["words"]).split())


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile("|".join(_words()[name]["patterns"]).replace("ß", "ss"))


@cache
def _stems() -> dict[str, tuple[str, float, int]]:
    found: dict[str, tuple[str, float, int]] = {}
    for concept, words in _words()["concepts"].items():
        for word in fold_answer(words).split():
            stem, _, base = word.removeprefix("-").partition(":")
            found.setdefault(
                stem.replace("_", " "), (concept, float(base or 3), -1 if word[0] == "-" else 1)
            )
    return found


def _languages(text: str) -> frozenset[str]:
    """Return the possible languages of a graded answer; all of them if nothing decides."""
    words = set(re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", text))
    hits = {
        name: len(words & set(fold_answer(telling).split()))
        for name, telling in _words()["languages"].items()
    }
    best = max(hits.values())
    return frozenset(name for name, n in hits.items() if n == best)


# -- answers on no scale -------------------------------------------------------------------------


def declines_to_answer(answer: str) -> bool:
    """Return True if a text declines to answer: "Prefer not to say", "keine Angabe", "NS/NC".

    Examples
    --------
    >>> declines_to_answer("Prefer not to answer"), declines_to_answer("Not often")
    (True, False)
    """
    text = fold_answer(answer).strip(" .!()[]*-")
    return 0 < len(text) <= 60 and _pattern("declines").fullmatch(text) is not None


def stands_beside(answer: str) -> bool:
    """Return True if an answer is on no scale of three or more steps: "Don't know", "Other"."""
    return _pattern("beside").fullmatch(fold_answer(answer).strip(" .!()[]*-")) is not None
