"""Students' answers for staff: by person, by question, and as a file.

Answers are encrypted in the database, which therefore cannot search in them. A search reads the
answers of one questionnaire here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from django.db.models import Q, QuerySet
from django.utils.translation import gettext

from webapp.common.listing import MAX_QUERY
from webapp.common.parameters import whole_number
from webapp.housing.models import Room
from webapp.surveys.models import Participant, Questionnaire, WrittenAnswer
from webapp.surveys.names import IDENTITY, is_meant, number_label
from webapp.surveys.questions import Question, counted_answers, questions_of, shown_questions
from webapp.translation.lazy import gettext_lazy

STATES = {
    "finished": (gettext_lazy("Finished"), ~Q(finished_at=None)),
    "started": (gettext_lazy("Started, not finished"), Q(finished_at=None) & ~Q(updated_at=None)),
    "blank": (gettext_lazy("Nothing answered"), Q(finished_at=None, updated_at=None)),
}
OPEN, HANDLED, ALL = "open", "handled", "all"
SHOWN = {
    OPEN: gettext_lazy("To be read"),
    HANDLED: gettext_lazy("Handled"),
    ALL: gettext_lazy("All"),
}


@dataclass(frozen=True, slots=True)
class PeopleFilter:
    """Filter of the people whose answers are shown; the default is everybody.

    ``query`` is searched in number, name, e-mail, code and written texts; without ``by_name``, the
    right to see names, only a whole e-mail or code finds a person by identity. ``question`` and
    ``option`` choose the people who gave one answer to one question.
    """

    query: str = ""
    state: str = ""
    has_text: bool = False
    question: str = ""
    option: int | None = None
    by_name: bool = False

    @classmethod
    def of(cls, parameters: Mapping[str, str], *, by_name: bool) -> "PeopleFilter":
        """Read the parameters of an address; invalid ones are ignored."""
        state = parameters.get("state", "")
        return cls(
            query=parameters.get("q", "").strip()[:MAX_QUERY],
            state=state if state in STATES else "",
            has_text=bool(parameters.get("written")),
            question=parameters.get("question", "")[:16],
            option=whole_number(parameters.get("option", "")),
            by_name=by_name,
        )


def _is_in(words: str, texts: Iterable[str]) -> bool:
    """Return True if one of the texts holds the words, whatever the capitals."""
    return any(words in text.casefold() for text in texts)


def people_found(questionnaire: Questionnaire, wanted: PeopleFilter) -> QuerySet[Participant]:
    """Return the people that a filter selects, in the order in which they came."""
    people: QuerySet[Participant] = questionnaire.participants.all()
    if wanted.state:
        people = people.filter(STATES[wanted.state][1])
    if wanted.has_text:
        people = people.filter(pk__in=questionnaire.written_answers.values("participant"))
    questions = questions_of(questionnaire.content)
    if wanted.question and wanted.option is not None:
        people = people.filter(pk__in=_choosing(people, wanted.question, wanted.option))
    if wanted.query:
        words = wanted.query.casefold()
        found = _naming(people, words, questions, by_name=wanted.by_name)
        people = people.filter(pk__in=found)
    return people


def _choosing(people: QuerySet[Participant], question: str, option: int) -> list[int]:
    """Return the keys of the people who gave one answer to one question."""
    found = []
    for key, answers in people.values_list("pk", "answers"):
        value = answers.get(question)
        if option in (value if isinstance(value, list) else (value,)):
            found.append(key)
    return found


def _naming(
    people: QuerySet[Participant], words: str, questions: Sequence[Question], *, by_name: bool
) -> list[int]:
    """Return the keys of the people whose identity or written texts hold the words.

    Only the answers of people who wrote something are read.
    """
    found = {
        key
        for key, *identity in people.values_list("pk", *IDENTITY)
        if is_meant(words, key, identity, by_name=by_name)
    }
    written = [question for question in questions if question.is_written]
    if written:
        authors = people.filter(pk__in=WrittenAnswer.objects.values("participant"))
        for key, answers in authors.values_list("pk", "answers"):
            if _is_in(words, (one.in_words(answers.get(one.key)) for one in written)):
                found.add(key)
    return list(found)


@dataclass(frozen=True, slots=True)
class Text:
    """One written answer with its text, its question and its author."""

    row: WrittenAnswer
    question: Question
    words: str

    @property
    def person(self) -> Participant:
        """The author of the text."""
        return self.row.participant


@dataclass(frozen=True, slots=True)
class TextFilter:
    """Filter of the written answers; the default is those that staff have not handled.

    Without ``by_name``, the right to see names, only a whole e-mail or code finds an author.
    """

    query: str = ""
    question: str = ""
    show: str = OPEN
    by_name: bool = False

    @classmethod
    def of(cls, parameters: Mapping[str, str], *, by_name: bool) -> "TextFilter":
        """Read the parameters of an address; invalid ones give the default."""
        show = parameters.get("show", OPEN)
        return cls(
            query=parameters.get("q", "").strip()[:MAX_QUERY],
            question=parameters.get("question", "")[:16],
            show=show if show in SHOWN else OPEN,
            by_name=by_name,
        )


class Texts(Sequence[Text]):
    """Written answers in order; a slice reads only its own from the database."""

    def __init__(self, keys: Sequence[int], questions: Mapping[str, Question]) -> None:
        self._keys, self._questions = keys, questions

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, place: int) -> Text: ...
    @overload
    def __getitem__(self, place: slice) -> list[Text]: ...
    def __getitem__(self, place: int | slice) -> Text | list[Text]:
        if not isinstance(place, slice):
            return self[place : place + 1 or None][0]
        keys = self._keys[place]
        rows = WrittenAnswer.objects.select_related("participant", "handled_by").in_bulk(keys)
        return [self._text(rows[key]) for key in keys if key in rows]

    def __iter__(self) -> Iterator[Text]:
        return iter(self[:])

    def _text(self, row: WrittenAnswer) -> Text:
        question = self._questions[row.key]
        return Text(row, question, question.in_words(row.participant.answers.get(row.key)))


def texts_found(questionnaire: Questionnaire, wanted: TextFilter) -> Texts:
    """Return the written answers that a filter selects, the newest first."""
    questions = {question.key: question for question in questions_of(questionnaire.content)}
    rows = questionnaire.written_answers.filter(key__in=questions)
    if wanted.show != ALL:
        rows = rows.filter(handled_at__isnull=wanted.show == OPEN)
    if wanted.question:
        rows = rows.filter(key=wanted.question)
    if not wanted.query:
        return Texts(list(rows.values_list("pk", flat=True)), questions)
    words = wanted.query.casefold()
    authors = questionnaire.participants.filter(pk__in=rows.order_by().values("participant"))
    people = {key: texts for key, *texts in authors.values_list("pk", "answers", *IDENTITY)}
    found = []
    for key, question, author in rows.values_list("pk", "key", "participant_id"):
        if author not in people:
            continue  # began since the people were read
        answers, *identity = people[author]
        text = questions[question].in_words(answers.get(question))
        if words in text.casefold() or is_meant(words, author, identity, by_name=wanted.by_name):
            found.append(key)
    return Texts(found, questions)


def n_open_texts(questionnaire: Questionnaire) -> int:
    """Return how many written answers staff still have to read."""
    return questionnaire.written_answers.filter(handled_at=None).count()


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """One question with one person's answer in words; ``is_given`` is False for no answer."""

    question: Question
    words: str
    is_given: bool
    is_declined: bool
    written: WrittenAnswer | None


def answers_of(person: Participant, questions: Sequence[Question]) -> list[GivenAnswer]:
    """Return every question that one person is shown, with the person's answer."""
    written = {row.key: row for row in person.written_answers.select_related("handled_by")}
    return [
        GivenAnswer(
            question=question,
            words=question.in_words(person.answers.get(question.key)),
            is_given=person.answers.get(question.key) is not None,
            is_declined=question.key in person.answers and person.answers[question.key] is None,
            written=written.get(question.key),
        )
        for question in shown_questions(questions, person.answers)
    ]


def neighbours(questionnaire: Questionnaire, person: int) -> tuple[int | None, int | None]:
    """Return the keys of the people before and after a person."""
    people = questionnaire.participants.order_by("pk").values_list("pk", flat=True)
    before = people.filter(pk__lt=person).last()
    return before, people.filter(pk__gt=person).first()


NAME_COLUMNS = ("student number", "name", "e-mail")
PERSON_COLUMNS = ("code", "state", "finished", "language")


def _identity(person: Participant, *, with_names: bool) -> tuple[str, ...]:
    """Return the cells that tell who a person is, for a file with or without names."""
    if with_names:
        return (person.identifier, person.name, person.email)
    return (number_label(person),)


def answer_table(
    questionnaire: Questionnaire, people: QuerySet[Participant], *, with_names: bool
) -> Iterator[list[Any]]:
    """Yield the rows of a file: the person, every answer in words, needs made of texts.

    Without names the number of the person, as in addresses of pages, tells who it is.
    """
    questions = questions_of(questionnaire.content)
    needs: dict[int, list[str]] = {}
    for row in questionnaire.written_answers.exclude(need=""):
        needs.setdefault(row.participant_id, []).append(row.need)
    head = (*(NAME_COLUMNS if with_names else ("person",)), *PERSON_COLUMNS)
    yield [*head, *(question.name for question in questions), "needs"]
    for one in people.iterator(chunk_size=1000):
        answers = counted_answers(questions, one.answers)
        yield [
            *_identity(one, with_names=with_names),
            one.code,
            state_in_words(one),
            one.finished_at.strftime("%Y-%m-%d %H:%M") if one.finished_at else "",
            one.language,
            *(question.in_words(answers.get(question.key)) for question in questions),
            "; ".join(needs.get(one.pk, ())),
        ]


def text_table(texts: Sequence[Text], *, with_names: bool) -> Iterator[list[Any]]:
    """Yield the rows of a file of written answers, with or without names."""
    head = NAME_COLUMNS if with_names else ("person",)
    yield [*head, "question", "text", "written", "handled", "need"]
    for text in texts:
        yield [
            *_identity(text.person, with_names=with_names),
            text.question.name,
            text.words,
            text.row.written_at.strftime("%Y-%m-%d %H:%M"),
            text.row.handled_at.strftime("%Y-%m-%d %H:%M") if text.row.handled_at else "",
            text.row.need,
        ]


def state_in_words(person: Participant) -> str:
    """Return a person's progress in words."""
    if person.finished_at:
        return gettext("Finished")
    if person.updated_at:
        return gettext("Started")
    return gettext("Opened") if person.opened_at else gettext("Not opened")


def known_needs(questionnaire: Questionnaire) -> list[str]:
    """Return needs for staff to choose from: those that rooms meet, and those noted already."""
    rooms = Room.objects.filter(buildings__organisation_id=questionnaire.organisation_id)
    offered = {need for room in rooms.only("meets") for need in room.meets}
    noted = set(questionnaire.written_answers.exclude(need="").values_list("need", flat=True))
    return sorted(offered | noted, key=str.casefold)[:200]
