"""Shapes of questionnaires: progress, answers, invitations and bounced mails."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from webapp.api.shapes.base import Answer, Body, Key, Paging, RowNumber, Time
from webapp.surveys.models import Questionnaire as QuestionnaireRow
from webapp.surveys.selectors.answers import Text
from webapp.surveys.selectors.progress import progress_of

Address = Annotated[str, Field(max_length=254)]


class Questionnaire(Answer):
    """A questionnaire with the number of people in each state; the counts add up to ``people``."""

    id: Key
    title: str
    code: str
    questions: int
    opens_at: Time | None
    closes_at: Time | None
    is_open: bool
    people: int
    finished: int
    started: int
    opened: int
    not_opened: int
    bounced: int = Field(description="people whose address no mail reaches")

    @classmethod
    def of(cls, row: QuestionnaireRow) -> "Questionnaire":
        """Return the answer for a questionnaire."""
        found = progress_of(row)
        return cls(
            id=row.pk,
            title=row.title,
            code=row.code,
            questions=len(row.content.questions),
            opens_at=row.opens_at,
            closes_at=row.closes_at,
            is_open=row.is_open,
            people=found.n_people,
            finished=found.n_finished,
            started=found.n_started,
            opened=found.n_opened,
            not_opened=found.n_unopened,
            bounced=row.participants.exclude(bounced_at=None).count(),
        )


class GivenAnswer(Answer):
    """One question with its answer in words; null if there is no answer."""

    question: str
    text: str
    answer: str | None


class PersonsAnswers(Answer):
    """All answers of one person.

    Number, name and e-mail are empty to people who do not see names of students.
    """

    id: int
    number: str
    name: str
    email: str
    code: str
    state: str
    finished_at: Time | None
    language: str
    answers: list[GivenAnswer]


class ClashingAnswers(PersonsAnswers):
    """One of several sets of answers under one student number.

    ``counts`` is null until staff decide.
    """

    came_by: Literal["link", "sign-in", "code"]
    began_at: Time
    changed_at: Time | None
    counts: bool | None
    is_in_cohort: bool
    is_set_aside: bool
    set_aside_by: str


class Clash(Answer):
    """A student number with several sets of answers, the first one first."""

    number: str = Field(
        description="the student number or e-mail that all sets give; empty without the right to "
        "see names"
    )
    is_open: bool = Field(description="staff have to decide; until then no set goes into a cohort")
    is_in_cohort: bool
    different: int = Field(description="questions that were answered differently")
    sets: list[ClashingAnswers]


class WrittenText(Answer):
    """A free-text answer of one person, and whether staff handled it.

    Number, name and e-mail are empty to people who do not see names of students.
    """

    id: int
    number: str
    name: str
    email: str
    question: str
    text: str
    written_at: Time
    handled_at: Time | None
    handled_by: str
    need: str

    @classmethod
    def of(cls, text: Text, *, with_names: bool) -> "WrittenText":
        """Return the answer for a written text with its person."""
        by = text.row.handled_by
        return cls(
            id=text.row.pk,
            number=text.person.identifier if with_names else "",
            name=text.person.name if with_names else "",
            email=text.person.email if with_names else "",
            question=text.question.name,
            text=text.words,
            written_at=text.row.written_at,
            handled_at=text.row.handled_at,
            handled_by=by.get_username() if by else "",
            need=text.row.need,
        )


class AnswersQuery(Paging):
    """Query for the people whose answers to return."""

    q: str = Field(
        "",
        max_length=100,
        description="part of a number, a name, an e-mail or a text; without the right to see names "
        "part of a text, a whole e-mail or a whole code",
    )
    state: Literal["", "finished", "started", "blank"] = ""


class ClashesQuery(Paging):
    """Query for the numbers with several sets of answers."""

    show: Literal["open", "all"] = Field("open", description="open: those to decide")


class ChosenAnswers(Body):
    """The set of answers that counts: one set, or the first or the latest of every open number."""

    id: RowNumber | None = Field(None, description="the set that counts; the others are set aside")
    which: Literal["first", "latest"] | None = Field(
        None, description="decide all open numbers alike"
    )

    @model_validator(mode="after")
    def _check_one(self) -> "ChosenAnswers":
        if (self.id is None) == (self.which is None):
            raise ValueError("Give either id or which.")
        return self


class SetAsideAnswers(Answer):
    """The sets of answers that do not count from now on."""

    set_aside: list[int]


class RestoredAnswers(Body):
    """Sets of answers that stand beside the others again."""

    ids: list[RowNumber] = Field(min_length=1, max_length=5000)


class CorrectNumber(Body):
    """The right student number of answers that were given under a mistyped one."""

    number: str = Field(max_length=200)


class TextsQuery(Paging):
    """Query for the written texts to return."""

    q: str = Field("", max_length=100, description="a word of the text, a number or an e-mail")
    show: Literal["open", "handled", "all"] = "open"


class HandledText(Body):
    """State of a text: handled, or false to open it again."""

    is_handled: bool = True


class NewNeed(Body):
    """A need of a student."""

    need: str = Field(max_length=80)


class Invited(Body):
    """A person to invite."""

    email: Address
    number: str = Field("", max_length=200, description="the student number, if there is one")


class NewInvitations(Body):
    """People to invite; people already there stay as they are."""

    people: list[Invited] = Field(max_length=5000)


class NewMails(Body):
    """The text of a mail; [link] becomes the personal link of each person."""

    text: str = Field(max_length=4000)
    is_reminder: bool = Field(False, description="to people who had a mail and have not finished")
    is_confirmed: bool = Field(
        False, description="send a third reminder within 24 hours all the same"
    )


class NewCohort(Body):
    """The name of the cohort of the people who have finished since the last one."""

    name: str


class ReturnedMail(Body):
    """An undeliverable address."""

    email: Address
    reason: str = Field("", max_length=200, description="what the mail server said")


class ReturnedMails(Body):
    """Undeliverable addresses."""

    addresses: list[ReturnedMail] = Field(max_length=5000)
