"""Questions as pages show them: in a language, numbered, with the meaning of their answers."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext as _

from webapp.surveys.content import (
    SCALE,
    WITH_ANSWERS,
    Condition,
    Content,
    Kind,
    QuestionnaireError,
    iterate_texts,
)
from webapp.translation.lazy import gettext_lazy

MAX_TEXT = 2_000
MAX_CODE = 12
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")

WORDS = {
    Kind.YES_NO: gettext_lazy("Yes or no"),
    Kind.SCALE: gettext_lazy("Scale 1 to 5"),
    Kind.ORDERED: gettext_lazy("One of, in order"),
    Kind.ONE: gettext_lazy("One of"),
    Kind.SEVERAL: gettext_lazy("Several of"),
    Kind.TIME: gettext_lazy("Time of day"),
    Kind.TEXT: gettext_lazy("Free text, never scored"),
    Kind.FILE: gettext_lazy("File, read by staff"),
    Kind.REQUEST: gettext_lazy("Roommate request"),
    Kind.CONSENT: gettext_lazy("Consent"),
}
_UNSCORED = (Kind.TEXT, Kind.FILE, Kind.REQUEST, Kind.CONSENT)


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
    is_required: bool
    low: str
    high: str
    shown_if: Condition | None
    section: str
    number: int

    @property
    def options(self) -> tuple[str, ...]:
        """The answers to choose from; empty for a typed answer."""
        if self.kind is Kind.YES_NO:
            return (_("No"), _("Yes"))
        if self.kind is Kind.SCALE:
            return SCALE
        return self.answers if self.kind in WITH_ANSWERS else ()

    @property
    def kind_words(self) -> str:
        """The kind of answer, in words of the page."""
        if self.kind is Kind.ONE:
            return gettext("One of %(count)s") % {"count": len(self.answers)}
        if self.kind is Kind.SEVERAL:
            return gettext("Several of %(count)s") % {"count": len(self.answers)}
        return str(WORDS[self.kind])

    @property
    def is_scored(self) -> bool:
        """Return True if a model learns from the question."""
        return not self.is_rule and self.kind not in _UNSCORED

    @property
    def is_written(self) -> bool:
        """Return True if staff read the answers, which are free text or a file."""
        return self.kind in (Kind.TEXT, Kind.FILE)

    def in_words(self, value: Any) -> str:
        """Return a stored answer in words; "" for a blank."""
        if value is None or value == "":
            return ""
        if isinstance(value, list):
            return "; ".join(self.options[k] for k in value)
        if isinstance(value, dict):
            return str(value.get("name", ""))
        return self.options[value] if isinstance(value, int) else str(value)


def questions_of(content: Content, language: str = "") -> list[Question]:
    """Return all questions in order, in a language if they are translated."""
    return list(_questions(content, translator(content, language)))


def translator(content: Content, language: str) -> Callable[[str], str]:
    """Return a function that translates a text into a language if there is a translation."""
    known = content.translations.get(language, {})
    return lambda text: known.get(text) or text


def languages_of(content: Content) -> list[str]:
    """Return the languages of the questions, that of the original texts first."""
    return [content.language, *content.translations]


def texts_of(content: Content) -> list[str]:
    """Return every text that students read, each once, in the order of the pages."""
    return [text for text in dict.fromkeys(iterate_texts(content)) if text]


def _questions(content: Content, said: Callable[[str], str]) -> Iterator[Question]:
    number = 0
    for section in content.sections:
        for one in section.questions:
            number += 1
            yield Question(
                key=one.key,
                kind=one.kind,
                name=one.name,
                text=said(one.text),
                hint=said(one.hint),
                reason=said(one.reason),
                answers=tuple(said(answer) for answer in one.answers),
                is_rule=one.rule,
                is_required=one.required,
                low=said(one.low),
                high=said(one.high),
                shown_if=one.shown_if,
                section=said(section.title),
                number=number,
            )


def shown_questions(questions: Sequence[Question], answers: Mapping[str, Any]) -> list[Question]:
    """Return the questions that a person with these answers is shown.

    A question whose condition names a question that is not shown is not shown either.
    """
    shown: dict[str, Question] = {}
    for question in questions:
        wanted = question.shown_if
        if wanted is not None:
            given = answers.get(wanted.question) if wanted.question in shown else None
            chosen = given if isinstance(given, list) else [given]
            if not set(chosen) & set(wanted.answers):
                continue
        shown[question.key] = question
    return list(shown.values())


def counted_answers(questions: Sequence[Question], answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers to shown questions; others were given before an earlier answer changed."""
    asked = (question.key for question in shown_questions(questions, answers))
    return {key: answers[key] for key in asked if key in answers}


def read_answer(question: Question, values: Sequence[str]) -> Any:
    """Return the value to store for a submitted answer; None for a blank.

    Raises QuestionnaireError for an invalid answer.
    """
    given = [value for value in values if value.strip()]
    if not given:
        return None
    if question.options:
        chosen = sorted({_position(question, value) for value in given})
        return chosen if question.kind is Kind.SEVERAL else chosen[0]
    text = given[0].strip()
    if len(text) > MAX_TEXT:
        raise QuestionnaireError(
            _("Your text has %(count)s characters. Shorten it to %(most)s or fewer.")
            % {"count": f"{len(text):,}", "most": f"{MAX_TEXT:,}"}
        )
    if "\x00" in text:
        raise QuestionnaireError(
            _("Your text contains a character that cannot be saved. Type it again.")
        )
    if question.kind is Kind.CONSENT:
        return "yes" if text == "yes" else None
    if question.kind is Kind.TIME and not _TIME.fullmatch(text):
        raise QuestionnaireError(_("Type a time such as 22:30."))
    if question.kind is Kind.REQUEST:
        return plain_code(text)
    return text


def plain_code(text: str) -> str:
    """Return a code as it is stored: capitals and digits, without other characters."""
    return "".join(sign for sign in text.upper() if sign.isascii() and sign.isalnum())[:MAX_CODE]


def _position(question: Question, value: str) -> int:
    is_position = value.isascii() and value.isdecimal() and len(value) <= 2
    if not is_position or int(value) >= len(question.options):
        raise QuestionnaireError(_("Choose one of the answers."))
    return int(value)
