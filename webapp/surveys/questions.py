"""What a questionnaire consists of: plain data, read and checked here and nowhere else.

``content`` is {"sections": [{"title", "questions": [...]}]}; a question is {"key", "kind", "name",
"text", "hint", "reason", "answers", "rule"}. ``key`` never changes, ``name`` is what tables of
weights show, ``reason`` says to staff and students why it is asked. ``language`` is what it is
written in; ``translations`` maps other languages to {text: text in that language}, so that a text
that was reworded shows as it is until somebody translates it anew.
"""

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.translation import gettext as _

from webapp.common.errors import Refusal

MAX_QUESTIONS = 60
MAX_ANSWERS = 15
MAX_TEXT = 2_000
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


class QuestionnaireError(Refusal):
    """A change or an answer that makes no sense. The message is one sentence."""


class Kind(StrEnum):
    """How a question is answered."""

    YES_NO = "yes-no"
    SCALE = "scale"
    ORDERED = "ordered"
    ONE = "one"
    SEVERAL = "several"
    TIME = "time"
    TEXT = "text"
    REQUEST = "request"
    CONSENT = "consent"


WORDS = {
    Kind.YES_NO: "Yes or no",
    Kind.SCALE: "Scale 1 to 5",
    Kind.ORDERED: "One of, in order",
    Kind.ONE: "One of",
    Kind.SEVERAL: "Several of",
    Kind.TIME: "Time of day",
    Kind.TEXT: "Free text, never scored",
    Kind.REQUEST: "Roommate request",
    Kind.CONSENT: "Consent",
}
_WITH_ANSWERS = (Kind.ORDERED, Kind.ONE, Kind.SEVERAL)


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its place: ``number`` counts from 1 over all sections."""

    key: str
    kind: Kind
    name: str
    text: str
    hint: str
    reason: str
    answers: tuple[str, ...]
    is_rule: bool
    section: str
    number: int

    @property
    def options(self) -> tuple[str, ...]:
        """The answers to choose from; empty where one types."""
        if self.kind is Kind.YES_NO:
            return ("No", "Yes")
        if self.kind is Kind.SCALE:
            return ("1", "2", "3", "4", "5")
        return self.answers if self.kind in _WITH_ANSWERS else ()

    @property
    def kind_words(self) -> str:
        """How it is answered, in words of the page."""
        words = WORDS[self.kind]
        return f"{words} {len(self.answers)}" if self.kind in (Kind.ONE, Kind.SEVERAL) else words

    @property
    def is_scored(self) -> bool:
        """Whether a model learns from it."""
        return not self.is_rule and self.kind not in (Kind.TEXT, Kind.REQUEST, Kind.CONSENT)

    def in_words(self, value: Any) -> str:
        """Return a kept answer as people read it; empty for a blank."""
        if value is None or value == "":
            return ""
        if isinstance(value, list):
            return "; ".join(self.options[k] for k in value)
        return self.options[value] if isinstance(value, int) else str(value)


def questions_of(content: Mapping[str, Any], language: str = "") -> list[Question]:
    """Return all questions in order, in a language where there is a translation."""
    return list(_questions(content, translator(content, language)))


def translator(content: Mapping[str, Any], language: str) -> Callable[[str], str]:
    """Return a function from a text to itself in a language, as far as it was translated."""
    known: Mapping[str, str] = content.get("translations", {}).get(language, {})
    return lambda text: known.get(text) or text


def languages_of(content: Mapping[str, Any]) -> list[str]:
    """Return the languages in which there are questions: that of the texts first."""
    return [content.get("language", "en"), *content.get("translations", {})]


def texts_of(content: Mapping[str, Any]) -> list[str]:
    """Return every text that students read, each once, in the order of the pages."""
    found: dict[str, None] = {}
    for section in content["sections"]:
        found[section["title"]] = None
        for data in section["questions"]:
            for name in ("text", "hint", "reason"):
                found[data.get(name, "")] = None
            found |= dict.fromkeys(data.get("answers", ()))
    found.pop("", None)
    return list(found)


def _questions(content: Mapping[str, Any], said: Callable[[str], str]) -> Iterator[Question]:
    number = 0
    for section in content["sections"]:
        for data in section["questions"]:
            number += 1
            yield Question(
                data["key"],
                Kind(data["kind"]),
                data["name"],
                said(data["text"]),
                said(data.get("hint", "")),
                said(data.get("reason", "")),
                tuple(said(answer) for answer in data.get("answers", ())),
                bool(data.get("rule")),
                said(section["title"]),
                number,
            )


def read_answer(question: Question, values: Sequence[str]) -> Any:
    """Return what is kept of a submitted answer; None for a blank.

    Raises QuestionnaireError for what is none of the answers.
    """
    given = [value for value in values if value != ""]
    if not given:
        return None
    if question.options:
        chosen = sorted({_position(question, value) for value in given})
        return chosen if question.kind is Kind.SEVERAL else chosen[0]
    text = given[0].strip()
    if len(text) > MAX_TEXT or "\x00" in text:
        raise QuestionnaireError(
            _("At most %(count)s letters are kept.") % {"count": f"{MAX_TEXT:,}"}
        )
    if question.kind is Kind.CONSENT:
        return "yes" if text == "yes" else None
    if question.kind is Kind.TIME and not _TIME.fullmatch(text):
        raise QuestionnaireError(_("A time reads 22:30."))
    if question.kind is Kind.REQUEST:
        return "".join(text.upper().split())[:12]
    return text


def _position(question: Question, value: str) -> int:
    is_position = value.isascii() and value.isdecimal() and len(value) <= 2
    if not is_position or int(value) >= len(question.options):
        raise QuestionnaireError(_("Choose one of the answers."))
    return int(value)


def new_question(
    kind: str, *, name: str, text: str, answers: Sequence[str] = (), **more: Any
) -> dict[str, Any]:
    """Return a checked question as plain data; raise QuestionnaireError in one sentence."""
    try:
        known = Kind(kind)
    except ValueError as error:
        raise QuestionnaireError("Choose how the question is answered.") from error
    name, text = " ".join(name.split()), " ".join(text.split())
    answers = [" ".join(answer.split()) for answer in answers if answer.strip()]
    if not name or len(name) > 40:
        raise QuestionnaireError("The short name has 1 to 40 letters.")
    if not text or len(text) > 500:
        raise QuestionnaireError("The question has 1 to 500 letters.")
    if known in _WITH_ANSWERS and not 2 <= len(answers) <= MAX_ANSWERS:
        raise QuestionnaireError(f"Give 2 to {MAX_ANSWERS} answers, one a line.")
    if len({answer.casefold() for answer in answers}) < len(answers):
        raise QuestionnaireError("Two answers are the same.")
    kept = {key: value for key, value in more.items() if value}
    question = {"key": secrets.token_hex(4), "kind": known.value, "name": name, "text": text}
    return question | ({"answers": answers} if known in _WITH_ANSWERS else {}) | kept
