"""Endpoints for questionnaires: answers, invitations, reminders, bounces, and their cohorts."""

from collections.abc import Sequence
from uuid import UUID

from webapp.accounts.models import Role
from webapp.api.dispatch import page_of, read_body, read_query
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import questionnaires as shapes
from webapp.api.shapes.base import Page, Paging, Sentence
from webapp.api.shapes.roommates import Cohort
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort as CohortRow
from webapp.cohorts.naming import may_see_names
from webapp.common.formats import counted
from webapp.common.selectors import get_or_404, get_owned_or_404, owned_by
from webapp.letters.services.returned import letters_returned
from webapp.surveys.bounce_mailbox import quoted_texts
from webapp.surveys.bounces import MAX_BYTES, addresses_of_mails
from webapp.surveys.mails import own_address
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import Question, questions_of
from webapp.surveys.selectors.answers import (
    PeopleFilter,
    TextFilter,
    people_found,
    state_in_words,
    texts_found,
)
from webapp.surveys.selectors.clashes import Clash, sorted_answers
from webapp.surveys.services.clashes import (
    answers_choose,
    answers_choose_all,
    answers_restore,
    number_correct,
)
from webapp.surveys.services.cohorts import cohort_from_answers
from webapp.surveys.services.invitations import bounces_mark, invitations_add, mails_queue
from webapp.surveys.services.late_answers import late_answers_join
from webapp.surveys.services.written import written_as_need, written_handle

TAG = "Questionnaires"
ONE = "/questionnaires/{questionnaire_id}"
MAILS = {"type": "string", "format": "binary", "description": "a mail, or several as mbox"}


@endpoint("GET", "/questionnaires", tag=TAG, summary="List questionnaires", query=Paging)
def list_questionnaires(request: Request) -> Page[shapes.Questionnaire]:
    """Return the organisation's questionnaires, newest first."""
    return page_of(request, owned_by(Questionnaire, request.user), shapes.Questionnaire)


@endpoint("GET", ONE, tag=TAG, summary="Look at a questionnaire")
def get_questionnaire(request: Request, questionnaire_id: UUID) -> shapes.Questionnaire:
    """Return the progress of the people of one questionnaire."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    return shapes.Questionnaire.of(found)


@endpoint(
    "GET",
    f"{ONE}/answers",
    tag=TAG,
    summary="Read answers",
    query=shapes.AnswersQuery,
    role=Role.STAFF,
)
def list_answers(request: Request, questionnaire_id: UUID) -> Page[shapes.PersonsAnswers]:
    """Return people's answers in words, including free text."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    query = read_query(request, shapes.AnswersQuery)
    with_names = may_see_names(request.user)
    people = people_found(
        found, PeopleFilter(query=query.q.strip(), state=query.state, by_name=with_names)
    )
    rows = list(people[query.offset : query.offset + query.limit])
    audit(request.user, "read answers", found, people=len(rows))
    questions = questions_of(found.content)
    return Page[shapes.PersonsAnswers](
        items=[_answers_of(one, questions, with_names=with_names) for one in rows],
        total=people.count(),
        limit=query.limit,
        offset=query.offset,
    )


def _answers_of(
    person: Participant, questions: Sequence[Question], *, with_names: bool
) -> shapes.PersonsAnswers:
    return shapes.PersonsAnswers(
        id=person.pk,
        number=person.identifier if with_names else "",
        name=person.name if with_names else "",
        email=person.email if with_names else "",
        code=person.code,
        state=state_in_words(person),
        finished_at=person.finished_at,
        language=person.language,
        answers=[
            shapes.GivenAnswer(
                question=question.name,
                text=question.text,
                answer=question.in_words(person.answers.get(question.key)) or None,
            )
            for question in questions
        ],
    )


@endpoint(
    "GET",
    f"{ONE}/clashes",
    tag=TAG,
    summary="Compare answers under one number",
    description="Where a code is enough, anybody can type the number of another student. All sets "
    "of answers are kept, and staff decide which one counts.",
    query=shapes.ClashesQuery,
    role=Role.STAFF,
)
def list_clashes(request: Request, questionnaire_id: UUID) -> Page[shapes.Clash]:
    """Return the student numbers with several sets of answers."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    query = read_query(request, shapes.ClashesQuery)
    several = [one for one in sorted_answers(found)[1] if one.is_open or query.show == "all"]
    shown = several[query.offset : query.offset + query.limit]
    if shown:
        people = sum(len(one.answers) + len(one.set_aside) for one in shown)
        audit(request.user, "compared answers", found, people=people)
    with_names = may_see_names(request.user)
    questions = questions_of(found.content)
    return Page[shapes.Clash](
        items=[_clash(one, questions, with_names=with_names) for one in shown],
        total=len(several),
        limit=query.limit,
        offset=query.offset,
    )


def _clash(clash: Clash, questions: Sequence[Question], *, with_names: bool) -> shapes.Clash:
    sets = sorted((*clash.answers, *clash.set_aside), key=lambda one: (one.created_at, one.pk))
    return shapes.Clash(
        number=clash.name if with_names else "",
        is_open=clash.is_open,
        is_in_cohort=clash.is_in_cohort,
        different=clash.n_different,
        sets=[_clashing(clash, one, questions, with_names=with_names) for one in sets],
    )


def _clashing(
    clash: Clash, one: Participant, questions: Sequence[Question], *, with_names: bool
) -> shapes.ClashingAnswers:
    aside = one.set_aside if one in clash.set_aside else None
    is_decided = aside is not None or not clash.is_open
    return shapes.ClashingAnswers(
        **_answers_of(one, questions, with_names=with_names).model_dump(),
        came_by="sign-in" if one.subject else "link" if one.email else "code",
        began_at=one.created_at,
        changed_at=one.updated_at,
        counts=one == clash.counting if is_decided else None,
        is_in_cohort=one.cohort_id is not None,
        is_set_aside=aside is not None,
        set_aside_by=aside.user.get_username() if aside and aside.user else "",
    )


@endpoint(
    "POST",
    f"{ONE}/clashes",
    tag=TAG,
    summary="Choose the answers that count",
    body=shapes.ChosenAnswers,
)
def choose_answers(request: Request, questionnaire_id: UUID) -> shapes.SetAsideAnswers:
    """Count one set of answers of a number, or the first or latest set of every open number."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    sent = read_body(request, shapes.ChosenAnswers)
    if sent.id is not None:
        aside = answers_choose(user=request.user, questionnaire=found, person=sent.id)
    else:
        aside = answers_choose_all(user=request.user, questionnaire=found, which=sent.which or "")
    return shapes.SetAsideAnswers(set_aside=aside)


@endpoint(
    "POST",
    f"{ONE}/clashes/restored",
    tag=TAG,
    summary="Bring answers back",
    body=shapes.RestoredAnswers,
)
def restore_answers(request: Request, questionnaire_id: UUID) -> Sentence:
    """Put sets of answers that were set aside beside the others again."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    ids = read_body(request, shapes.RestoredAnswers).ids
    people = answers_restore(user=request.user, questionnaire=found, people=ids)
    words = counted(len(people), "set of answers stands", "sets of answers stand")
    return Sentence(sentence=f"{words} beside the others again.")


@endpoint(
    "POST",
    f"{ONE}/answers/{{answers_id}}/number",
    tag=TAG,
    summary="Correct a student number",
    body=shapes.CorrectNumber,
)
def correct_student_number(request: Request, questionnaire_id: UUID, answers_id: int) -> Sentence:
    """Correct the student number of answers that share a mistyped one with others."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    one = get_or_404(found.participants.all(), answers_id)
    number = read_body(request, shapes.CorrectNumber).number
    number_correct(user=request.user, questionnaire=found, person=one.pk, number=number)
    return Sentence(sentence="The student number was corrected.")


@endpoint(
    "GET",
    f"{ONE}/texts",
    tag=TAG,
    summary="Read written texts",
    query=shapes.TextsQuery,
    role=Role.STAFF,
)
def list_texts(request: Request, questionnaire_id: UUID) -> Page[shapes.WrittenText]:
    """Return people's free-text answers, newest first."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    query = read_query(request, shapes.TextsQuery)
    with_names = may_see_names(request.user)
    wanted = TextFilter(query=query.q.strip(), show=query.show, by_name=with_names)
    texts = texts_found(found, wanted)
    shown = texts[query.offset : query.offset + query.limit]
    audit(request.user, "read answers", found, people=len({text.person.pk for text in shown}))
    return Page[shapes.WrittenText](
        items=[shapes.WrittenText.of(text, with_names=with_names) for text in shown],
        total=len(texts),
        limit=query.limit,
        offset=query.offset,
    )


@endpoint(
    "POST",
    f"{ONE}/texts/{{text_id}}/handled",
    tag=TAG,
    summary="Mark a text as handled",
    body=shapes.HandledText,
)
def handle_text(request: Request, questionnaire_id: UUID, text_id: int) -> Sentence:
    """Mark a written text as handled, or open it again."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    row = get_or_404(found.written_answers.all(), text_id)
    is_handled = read_body(request, shapes.HandledText).is_handled
    written_handle(user=request.user, questionnaire=found, keys=[row.pk], is_handled=is_handled)
    return Sentence(sentence=f"The text is {'handled' if is_handled else 'open again'}.")


@endpoint(
    "POST",
    f"{ONE}/texts/{{text_id}}/need",
    tag=TAG,
    summary="Turn a text into a need",
    body=shapes.NewNeed,
)
def make_need_of_text(request: Request, questionnaire_id: UUID, text_id: int) -> Sentence:
    """Add a need to the student who wrote a text, and mark the text as handled."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    row = get_or_404(found.written_answers.all(), text_id)
    need = read_body(request, shapes.NewNeed).need
    said = written_as_need(user=request.user, questionnaire=found, written=row, need=need)
    return Sentence(sentence=said)


@endpoint("POST", f"{ONE}/people", tag=TAG, summary="Invite people", body=shapes.NewInvitations)
def invite_people(request: Request, questionnaire_id: UUID) -> Sentence:
    """Add people by e-mail address without sending mail. All are added or nobody."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    people = read_body(request, shapes.NewInvitations).people
    lines = [" ".join(f"{one.email} {one.number}".split()) for one in people]
    done = invitations_add(user=request.user, questionnaire=found, text="\n".join(lines))
    return Sentence(sentence=done.sentence)


@endpoint("POST", f"{ONE}/mails", tag=TAG, summary="Send links", body=shapes.NewMails, status=202)
def send_links(request: Request, questionnaire_id: UUID) -> Sentence:
    """Queue a mail to people not yet invited, or a reminder to people who have not finished."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    sent = read_body(request, shapes.NewMails)
    count = mails_queue(
        user=request.user,
        questionnaire=found,
        texts={found.content.language: sent.text},
        is_reminder=sent.is_reminder,
        base=own_address(request),
        is_confirmed=sent.is_confirmed,
    )
    return Sentence(sentence=f"{counted(count, 'mail is', 'mails are')} on their way.")


@endpoint(
    "POST", f"{ONE}/cohorts", tag=TAG, summary="Make a cohort", body=shapes.NewCohort, status=201
)
def make_cohort_of_answers(request: Request, questionnaire_id: UUID) -> Cohort:
    """Create a cohort of the people who have finished and are in no cohort yet."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    name = read_body(request, shapes.NewCohort).name
    return Cohort.of(cohort_from_answers(user=request.user, questionnaire=found, name=name))


@endpoint(
    "POST", f"{ONE}/cohorts/{{cohort_id}}/late", tag=TAG, summary="Add late answers to a cohort"
)
def add_late_answers(request: Request, questionnaire_id: UUID, cohort_id: UUID) -> Sentence:
    """Add people who have finished since to a cohort of the questionnaire; they wait for a bed."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    cohort = get_owned_or_404(CohortRow, request.user, cohort_id)
    joined = late_answers_join(user=request.user, questionnaire=found, cohort=cohort)
    return Sentence(sentence=joined.sentence)


@endpoint("POST", "/bounces", tag=TAG, summary="Note bounces", body=shapes.ReturnedMails)
def note_returned_addresses(request: Request) -> Sentence:
    """Stop mailing the addresses that a mail service reports as undeliverable."""
    sent = read_body(request, shapes.ReturnedMails).addresses
    return _marked(request, {one.email.strip(): one.reason or "Came back" for one in sent})


@endpoint(
    "POST",
    "/bounces/mails",
    tag=TAG,
    summary="Hand in mails that came back",
    description="Delivery reports of a mail server (RFC 3464), unchanged: an alias passes each on "
    "with curl. Only lasting failures count.",
    form={"file": MAILS},
    required=("file",),
)
def hand_in_returned_mails(request: Request) -> Sentence:
    """Stop mailing the addresses named in returned mails."""
    file = request.FILES.get("file")
    if file is None:
        raise Problem(400, "Send a mail in the multipart field “file”.")
    data = file.read(MAX_BYTES)
    addresses = addresses_of_mails(data)
    why = next(iter(addresses.values()), "")
    organisation = request.user.own_organisation
    texts = quoted_texts(data) if why else []
    letters = letters_returned(texts, why, organisation=organisation)
    said = _marked(request, addresses)
    if letters:
        words = counted(letters, "letter is", "letters are")
        return Sentence(sentence=f"{said.sentence} {words} marked as come back.")
    return said


def _marked(request: Request, addresses: dict[str, str]) -> Sentence:
    owned = owned_by(Questionnaire, request.user)
    count = bounces_mark(user=request.user, questionnaires=owned, addresses=addresses)
    words = counted(count, "person is", "people are")
    return Sentence(sentence=f"{words} written to no more.")
