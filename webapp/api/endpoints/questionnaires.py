"""Questionnaires: looking, inviting, reminding, noting bounces, making a cohort."""

from uuid import UUID

from webapp.api.dispatch import page_of, read_body
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import questionnaires as shapes
from webapp.api.shapes.base import Page, Paging, Sentence
from webapp.api.shapes.roommates import Cohort
from webapp.common.formats import counted
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.letters.services.returned import letters_returned
from webapp.surveys.bounce_mailbox import quoted_texts
from webapp.surveys.bounces import MAX_BYTES, addresses_of_mails
from webapp.surveys.models import Questionnaire
from webapp.surveys.services.cohorts import cohort_from_answers
from webapp.surveys.services.invitations import bounces_mark, invitations_add, mails_queue

TAG = "Questionnaires"
ONE = "/questionnaires/{questionnaire_id}"
MAILS = {"type": "string", "format": "binary", "description": "a mail, or several as mbox"}


@endpoint("GET", "/questionnaires", tag=TAG, summary="List questionnaires", query=Paging)
def list_questionnaires(request: Request) -> Page[shapes.Questionnaire]:
    """Return the organisation's questionnaires, newest first."""
    return page_of(request, owned_by(Questionnaire, request.user), shapes.Questionnaire)


@endpoint("GET", ONE, tag=TAG, summary="Look at a questionnaire")
def get_questionnaire(request: Request, questionnaire_id: UUID) -> shapes.Questionnaire:
    """Return how far the people of one questionnaire are."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    return shapes.Questionnaire.of(found)


@endpoint("POST", f"{ONE}/people", tag=TAG, summary="Invite people", body=shapes.NewInvitations)
def invite_people(request: Request, questionnaire_id: UUID) -> Sentence:
    """Add people by e-mail; no mail is sent by that. All are added or nobody."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    people = read_body(request, shapes.NewInvitations).people
    lines = [" ".join(f"{one.email} {one.number}".split()) for one in people]
    added, known = invitations_add(user=request.user, questionnaire=found, text="\n".join(lines))
    return Sentence(sentence=f"{added:,} added, {known:,} were there already.")


@endpoint("POST", f"{ONE}/mails", tag=TAG, summary="Send links", body=shapes.NewMails, status=202)
def send_links(request: Request, questionnaire_id: UUID) -> Sentence:
    """Queue a mail to who had none, or a reminder to who has not finished."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    sent = read_body(request, shapes.NewMails)
    count = mails_queue(
        user=request.user,
        questionnaire=found,
        text=sent.text,
        is_reminder=sent.is_reminder,
        base=request.build_absolute_uri("/")[:-1],
    )
    return Sentence(sentence=f"{counted(count, 'mail is', 'mails are')} on their way.")


@endpoint(
    "POST", f"{ONE}/cohorts", tag=TAG, summary="Make a cohort", body=shapes.NewCohort, status=201
)
def make_cohort_of_answers(request: Request, questionnaire_id: UUID) -> Cohort:
    """Make a cohort of who finished and is in none yet."""
    found = get_owned_or_404(Questionnaire, request.user, questionnaire_id)
    name = read_body(request, shapes.NewCohort).name
    return Cohort.of(cohort_from_answers(user=request.user, questionnaire=found, name=name))


@endpoint("POST", "/bounces", tag=TAG, summary="Note bounces", body=shapes.ReturnedMails)
def note_returned_addresses(request: Request) -> Sentence:
    """Write no more to addresses that a mail service says came back."""
    sent = read_body(request, shapes.ReturnedMails).addresses
    return _marked(request, {one.email.strip(): one.reason or "Came back" for one in sent})


@endpoint(
    "POST",
    "/bounces/mails",
    tag=TAG,
    summary="Hand in mails that came back",
    description="What a mail server sends back (RFC 3464), as it is: an alias hands each on with "
    "curl. Only lasting failures count.",
    form={"file": MAILS},
    required=("file",),
)
def hand_in_returned_mails(request: Request) -> Sentence:
    """Read the addresses out of mails that came back, and write there no more."""
    file = request.FILES.get("file")
    if file is None:
        raise Problem(400, "Send a mail in the multipart field “file”.")
    data = file.read(MAX_BYTES)
    addresses = addresses_of_mails(data)
    why = next(iter(addresses.values()), "")
    organisation = request.user.organisation
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
