"""Content of a questionnaire: frozen models, read from the database and changed by methods.

A method that changes a content returns a new one, or raises :class:`QuestionnaireError` in one
sentence. ``format`` is the version of the stored shape. Content stored before versions existed is
format 1 and can still be read.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, Final, Literal

from django.db import models
from django.utils.translation import gettext
from pydantic import BaseModel, ConfigDict, model_validator

from webapp.common.errors import Refusal
from webapp.translation.lazy import gettext_lazy

FORMAT: Final = 2
MAX_QUESTIONS = 60
MAX_SECTIONS = 20
MAX_ANSWERS = 15
MAX_NAME, MAX_QUESTION, MAX_HINT, MAX_TITLE, MAX_LABEL = 40, 500, 300, 60, 60
NO_QUESTION = gettext_lazy("This question was removed meanwhile.")
NO_SECTION = gettext_lazy("This section was removed meanwhile.")


class QuestionnaireError(Refusal):
    """Refusal of an invalid change or answer; the message is one sentence."""


class Kind(StrEnum):
    """Kind of a question, by the way it is answered."""

    YES_NO = "yes-no"
    SCALE = "scale"
    ORDERED = "ordered"
    ONE = "one"
    SEVERAL = "several"
    TIME = "time"
    TEXT = "text"
    FILE = "file"
    REQUEST = "request"
    CONSENT = "consent"


WITH_ANSWERS = (Kind.ORDERED, Kind.ONE, Kind.SEVERAL)
SCALE = ("1", "2", "3", "4", "5")
N_OPTIONS = {Kind.YES_NO: 2, Kind.SCALE: len(SCALE)}


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Condition(_Frozen):
    """A condition: show a question only to people who gave one of these answers to an earlier one.

    ``answers`` are positions among the earlier question's options.
    """

    question: str
    answers: tuple[int, ...]


class QuestionContent(_Frozen):
    """One question as it is stored.

    ``key`` never changes. ``name`` is what tables of weights show. ``reason`` tells staff and
    students why the question is asked. ``low`` and ``high`` name the ends of a scale.
    """

    key: str
    kind: Kind
    name: str
    text: str
    hint: str = ""
    reason: str = ""
    answers: tuple[str, ...] = ()
    rule: bool = False
    required: bool = False
    low: str = ""
    high: str = ""
    shown_if: Condition | None = None

    @property
    def n_options(self) -> int:
        """Number of answers to choose from; 0 for a typed answer."""
        return N_OPTIONS.get(self.kind, len(self.answers))

    @property
    def meaning(self) -> tuple[Any, ...]:
        """The parts that cannot change once somebody may have answered."""
        fixed_text = self.text if self.kind is Kind.CONSENT else ""
        return (
            self.key, self.kind, self.name, self.answers, self.rule, self.required, self.low,
            self.high, self.shown_if, fixed_text,
        )  # fmt: skip


class SectionContent(_Frozen):
    """Questions under a title."""

    title: str
    questions: tuple[QuestionContent, ...] = ()


class Content(_Frozen):
    """The sections of a questionnaire, the language they are written in, and translations.

    ``translations`` maps other languages to {text: text in that language}: a reworded text is shown
    untranslated until somebody translates it.
    """

    format: Literal[2] = FORMAT
    language: str = "en"
    sections: tuple[SectionContent, ...] = ()
    translations: dict[str, dict[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _read_old(cls, data: Any) -> Any:
        """Read content stored before versions existed: the same fields, no format."""
        return {"format": FORMAT, **data} if isinstance(data, dict) else data

    @property
    def questions(self) -> list[QuestionContent]:
        """All questions in order."""
        return [question for section in self.sections for question in section.questions]

    @property
    def meaning(self) -> list[tuple[Any, ...]]:
        """The parts that cannot change once somebody may have answered."""
        return [question.meaning for question in self.questions]

    def find(self, key: str) -> QuestionContent:
        """Return the question with the given key."""
        for question in self.questions:
            if question.key == key:
                return question
        raise QuestionnaireError(NO_QUESTION)

    def section_of(self, key: str) -> int:
        """Return the index of the section that holds a question."""
        for place, section in enumerate(self.sections):
            if any(question.key == key for question in section.questions):
                return place
        raise QuestionnaireError(NO_QUESTION)

    def with_question(self, section: int, question: QuestionContent) -> "Content":
        """Return the content with a question added at the end of a section."""
        if len(self.questions) >= MAX_QUESTIONS:
            raise QuestionnaireError(
                gettext("A questionnaire has at most %(most)s questions.") % {"most": MAX_QUESTIONS}
            )
        self._section(section)
        return self._in_section(section, lambda found: (*found, question))._checked()

    def with_edited(self, question: QuestionContent) -> "Content":
        """Return the content with the question of the same key replaced."""
        self.find(question.key)
        return self._everywhere(
            lambda found: tuple(question if q.key == question.key else q for q in found)
        )._checked()

    def without_question(self, key: str) -> "Content":
        """Return the content without a question."""
        self.find(key)
        return self._everywhere(lambda found: tuple(q for q in found if q.key != key))._checked()

    def with_moved(self, key: str, step: int) -> "Content":
        """Return the content with a question one place up (-1) or down (1) in its section."""
        place = self.section_of(key)
        questions = list(self.sections[place].questions)
        here = [question.key for question in questions].index(key)
        there = here + (1 if step > 0 else -1)
        if not 0 <= there < len(questions):
            return self
        questions[here], questions[there] = questions[there], questions[here]
        return self._in_section(place, lambda _: tuple(questions))._checked()

    def with_placed(self, key: str, section: int, place: int) -> "Content":
        """Return the content with a question moved to a place of any section, from 0."""
        question = self.find(key)
        self._section(section)
        without = self._everywhere(lambda found: tuple(q for q in found if q.key != key))

        def insert(found: tuple[QuestionContent, ...]) -> tuple[QuestionContent, ...]:
            at = max(0, place)
            return (*found[:at], question, *found[at:])

        return without._in_section(section, insert)._checked()

    def with_section(self, title: str) -> "Content":
        """Return the content with an empty section added at the end."""
        if len(self.sections) >= MAX_SECTIONS:
            raise QuestionnaireError(
                gettext("A questionnaire has at most %(most)s sections.") % {"most": MAX_SECTIONS}
            )
        made = SectionContent(title=self._free_title(title))
        return self.model_copy(update={"sections": (*self.sections, made)})

    def with_title(self, section: int, title: str) -> "Content":
        """Return the content with another title of a section."""
        found = self._section(section)
        title = self._free_title(title, but=section)
        return self._replaced(section, found.model_copy(update={"title": title}))

    def without_section(self, section: int) -> "Content":
        """Return the content without an empty section."""
        if self._section(section).questions:
            raise QuestionnaireError(gettext("Move its questions to another section first."))
        kept = tuple(one for place, one in enumerate(self.sections) if place != section)
        return self.model_copy(update={"sections": kept})

    def with_translations(self, translations: dict[str, dict[str, str]]) -> "Content":
        """Return the content with all translations replaced."""
        return self.model_copy(update={"translations": translations})

    def with_language(self, language: str) -> "Content":
        """Return the content with another language of the texts."""
        return self.model_copy(update={"language": language})

    def _section(self, section: int) -> SectionContent:
        if not 0 <= section < len(self.sections):
            raise QuestionnaireError(NO_SECTION)
        return self.sections[section]

    def _replaced(self, section: int, made: SectionContent) -> "Content":
        sections = tuple(made if k == section else one for k, one in enumerate(self.sections))
        return self.model_copy(update={"sections": sections})

    def _in_section(self, section: int, change: "_Change") -> "Content":
        found = self.sections[section]
        made = found.model_copy(update={"questions": change(found.questions)})
        return self._replaced(section, made)

    def _everywhere(self, change: "_Change") -> "Content":
        sections = tuple(
            one.model_copy(update={"questions": change(one.questions)}) for one in self.sections
        )
        return self.model_copy(update={"sections": sections})

    def _free_title(self, title: str, *, but: int | None = None) -> str:
        title = " ".join(title.split())
        if not 1 <= len(title) <= MAX_TITLE:
            raise QuestionnaireError(
                gettext("The title of a section has 1 to %(most)s letters.") % {"most": MAX_TITLE},
                "title",
            )
        others = [one.title.casefold() for k, one in enumerate(self.sections) if k != but]
        if title.casefold() in others:
            raise QuestionnaireError(
                gettext("Another section is called “%(title)s”.") % {"title": title}, "title"
            )
        return title

    def _checked(self) -> "Content":
        """Return the content; refuse duplicate names and conditions without an earlier question."""
        names: set[str] = set()
        before: dict[str, QuestionContent] = {}
        for question in self.questions:
            if question.name.casefold() in names:
                raise QuestionnaireError(
                    gettext("Another question is called “%(name)s”.") % {"name": question.name},
                    "name",
                )
            names.add(question.name.casefold())
            _check_condition(question, before)
            before[question.key] = question
        return self


_Change = Callable[[tuple[QuestionContent, ...]], tuple[QuestionContent, ...]]


def _check_condition(question: QuestionContent, before: dict[str, QuestionContent]) -> None:
    wanted = question.shown_if
    if wanted is None:
        return
    asked = before.get(wanted.question)
    if asked is None:
        raise QuestionnaireError(
            gettext(
                "“%(name)s” is shown only after a certain answer to another question. "
                "That question has to come before it."
            )
            % {"name": question.name},
            "shown_if",
        )
    if not wanted.answers or not all(0 <= k < asked.n_options for k in wanted.answers):
        raise QuestionnaireError(
            gettext(
                "“%(name)s” is shown only after certain answers to “%(earlier)s”. "
                "Choose at least one of its answers."
            )
            % {"name": question.name, "earlier": asked.name},
            "shown_if",
        )


def make_question(
    kind: str,
    *,
    name: str,
    text: str,
    answers: Sequence[str] = (),
    key: str = "",
    hint: str = "",
    reason: str = "",
    low: str = "",
    high: str = "",
    **more: Any,
) -> QuestionContent:
    """Return a checked question; raise QuestionnaireError in one sentence."""
    try:
        known = Kind(kind)
    except ValueError as error:
        raise QuestionnaireError(gettext("Choose how the question is answered."), "kind") from error
    name, text, hint, reason = (_one_line(words) for words in (name, text, hint, reason))
    answers = tuple(_one_line(answer) for answer in answers if answer.strip())
    if not 1 <= len(name) <= MAX_NAME:
        raise QuestionnaireError(
            gettext("The short name has 1 to %(most)s letters.") % {"most": MAX_NAME}, "name"
        )
    if not 1 <= len(text) <= MAX_QUESTION:
        raise QuestionnaireError(
            gettext("The question has 1 to %(most)s letters.") % {"most": MAX_QUESTION}, "text"
        )
    if max(len(hint), len(reason)) > MAX_HINT:
        raise QuestionnaireError(
            gettext("Hint and reason have at most %(most)s letters each.") % {"most": MAX_HINT},
            "hint",
        )
    if known in WITH_ANSWERS and not 2 <= len(answers) <= MAX_ANSWERS:
        raise QuestionnaireError(
            gettext("Give 2 to %(most)s answers, one a line.") % {"most": MAX_ANSWERS}, "answers"
        )
    if len({answer.casefold() for answer in answers}) < len(answers):
        raise QuestionnaireError(gettext("Two answers are the same."), "answers")
    low, high = (_one_line(end) if known is Kind.SCALE else "" for end in (low, high))
    if max(len(low), len(high)) > MAX_LABEL:
        raise QuestionnaireError(
            gettext("The words at the ends have at most %(most)s letters each.")
            % {"most": MAX_LABEL},
            "low",
        )
    return QuestionContent(
        key=key or secrets.token_hex(4),
        kind=known,
        name=name,
        text=text,
        hint=hint,
        reason=reason,
        answers=answers if known in WITH_ANSWERS else (),
        low=low,
        high=high,
        **more,
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


class ContentField(models.JSONField):
    """A column of JSON whose value is a :class:`Content`."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Content | None:
        """Return the content from a column's text, in any format."""
        found = super().from_db_value(value, expression, connection)
        return None if found is None else Content.model_validate(found)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        """Return the column's text."""
        return super().get_db_prep_value(plain(value), connection, prepared)

    def value_from_object(self, obj: models.Model) -> Any:
        """Return plain data for a fixture."""
        return plain(super().value_from_object(obj))


def plain(value: Any) -> Any:
    """Return a content as plain data, without empty fields."""
    if not isinstance(value, Content):
        return value
    return {"format": FORMAT} | value.model_dump(mode="json", exclude_defaults=True)


def iterate_texts(content: Content) -> Iterator[str]:
    """Yield every text that students read, in the order of the pages."""
    for section in content.sections:
        yield section.title
        for question in section.questions:
            yield from (question.text, question.hint, question.reason, question.low, question.high)
            yield from question.answers
