"""Endpoints for letters: write, preview and send them, and read their delivery."""

from typing import Any, Literal
from uuid import UUID

from django.http import Http404, HttpResponse, HttpResponseBase

from webapp.accounts.models import Role
from webapp.api.dispatch import page_of, read_body, read_query
from webapp.api.endpoints.buildings import FILE
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import letters as shapes
from webapp.api.shapes.base import Page, Paging, Sentence
from webapp.api.shapes.housing import SeenVersion
from webapp.cohorts.models import Cohort
from webapp.cohorts.student_files import left_out_words
from webapp.common.formats import counted
from webapp.common.parameters import digits_of
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.files.file_headers import as_attachment
from webapp.housing.models import Placement
from webapp.letters.models import Letter, LetterTemplate
from webapp.letters.recipients import (
    Recipient,
    problems_of,
    recipients_of,
    subject_for,
    text_for,
)
from webapp.letters.services import letters as services
from webapp.letters.services.addresses import addresses_import
from webapp.letters.services.templates import template_remove, template_save

TAG = "Letters"
ONE = "/placements/{placement_id}/letters/{letter_id}"


@endpoint("GET", "/letters", tag=TAG, summary="List letters", query=Paging, role=Role.STAFF)
def list_letters(request: Request) -> Page[shapes.Letter]:
    """Return the organisation's letter templates, by name."""
    return page_of(request, owned_by(LetterTemplate, request.user), shapes.Letter)


@endpoint("POST", "/letters", tag=TAG, summary="Write a letter", body=shapes.NewLetter, status=201)
def create_letter(request: Request) -> shapes.Letter:
    """Create a letter template; an unknown field is refused with the nearest known one."""
    sent = read_body(request, shapes.NewLetter)
    return shapes.Letter.of(template_save(user=request.user, template=None, **sent.model_dump()))


@endpoint("GET", "/letters/{letter_id}", tag=TAG, summary="Look at a letter", role=Role.STAFF)
def get_letter(request: Request, letter_id: UUID) -> shapes.Letter:
    """Return one letter template."""
    return shapes.Letter.of(get_owned_or_404(LetterTemplate, request.user, letter_id))


@endpoint("PUT", "/letters/{letter_id}", tag=TAG, summary="Change a letter", body=shapes.NewLetter)
def change_letter(request: Request, letter_id: UUID) -> shapes.Letter:
    """Change a letter template; sent letters stay as they were."""
    found = get_owned_or_404(LetterTemplate, request.user, letter_id)
    sent = read_body(request, shapes.NewLetter)
    return shapes.Letter.of(template_save(user=request.user, template=found, **sent.model_dump()))


@endpoint("DELETE", "/letters/{letter_id}", tag=TAG, summary="Remove a letter", status=204)
def delete_letter(request: Request, letter_id: UUID) -> None:
    """Delete a letter template that was never sent."""
    found = get_owned_or_404(LetterTemplate, request.user, letter_id)
    template_remove(user=request.user, template=found, typed_name=found.name)


def _options(request: Request, placement_id: UUID, letter_id: UUID) -> dict[str, Any]:
    placements = Placement.objects.select_related("cohort", "model", "job", "buildings")
    return {
        "placement": get_owned_or_404(placements, request.user, placement_id),
        "template": get_owned_or_404(LetterTemplate, request.user, letter_id),
    }


@endpoint("GET", ONE, tag=TAG, summary="Look at a sending", role=Role.STAFF)
def get_sending(request: Request, placement_id: UUID, letter_id: UUID) -> shapes.Sending:
    """Return the students who are due, the problems, and the delivery of sent letters."""
    found = _options(request, placement_id, letter_id)
    recipients = recipients_of(**found)
    due = services.letters_due(found["template"], found["placement"], recipients)
    counts = services.letter_counts(**found)
    return shapes.Sending(
        due=len(due.everybody),
        due_again=len(due.again),
        waiting=counts[Letter.WAITING] + counts[Letter.SENDING],
        sent=counts[Letter.SENT],
        failed=counts[Letter.FAILED],
        bounced=counts[Letter.BOUNCED],
        stopped=counts[Letter.STOPPED],
        problems=[
            shapes.LetterProblem.of(problem)
            for problem in problems_of(found["template"], found["placement"], recipients)
        ],
    )


@endpoint("GET", f"{ONE}/sent", tag=TAG, summary="List sent letters", query=Paging, role=Role.STAFF)
def list_sent_letters(
    request: Request, placement_id: UUID, letter_id: UUID
) -> Page[shapes.SentLetter]:
    """Return every letter of a template and placement with its delivery."""
    found = _options(request, placement_id, letter_id)
    letters = found["template"].letters.filter(placement=found["placement"])
    return page_of(request, letters.select_related("student").defer("text"), shapes.SentLetter)


@endpoint(
    "GET",
    f"{ONE}/preview",
    tag=TAG,
    summary="Look at one student's letter",
    query=shapes.PreviewQuery,
    role=Role.STAFF,
)
def preview_letter(request: Request, placement_id: UUID, letter_id: UUID) -> shapes.LetterPreview:
    """Return a letter as one student would read it."""
    found = _options(request, placement_id, letter_id)
    student = read_query(request, shapes.PreviewQuery).student
    recipient = _recipient(found, student)
    return shapes.LetterPreview(
        student=recipient.student.label,
        address=recipient.address,
        subject=subject_for(found["template"], recipient),
        text=text_for(found["template"], recipient),
    )


def _recipient(found: dict[str, Any], student: str) -> Recipient:
    recipients = recipients_of(**found)
    number = digits_of(student)
    chosen = [one for one in recipients if not student or str(one.number) == number]
    if not chosen:
        raise Problem(422, "student: nobody of that id has a room in this placement.")
    return chosen[0]


@endpoint(
    "POST",
    f"{ONE}/send",
    tag=TAG,
    summary="Send letters",
    description="Queue the letter to students with a room and an e-mail address who have not "
    "received it for their present place. "
    "Refused with 409 when the placement changed since the version given.",
    body=SeenVersion,
    status=202,
    role=Role.ADMINISTRATOR,
)
def send_letters(request: Request, placement_id: UUID, letter_id: UUID) -> Sentence:
    """Queue the letters of a published placement."""
    found = _options(request, placement_id, letter_id)
    version = read_body(request, SeenVersion).version
    count = services.letters_queue(user=request.user, version=version, **found)
    return Sentence(sentence=services.sent_in_words(count))


@endpoint(
    "POST",
    f"{ONE}/retry",
    tag=TAG,
    summary="Send again what did not arrive",
    status=202,
    role=Role.ADMINISTRATOR,
)
def retry_letters(request: Request, placement_id: UUID, letter_id: UUID) -> Sentence:
    """Queue failed, bounced and stopped letters again, to the current addresses."""
    found = _options(request, placement_id, letter_id)
    count = services.letters_retry(user=request.user, **found)
    return Sentence(sentence=services.sent_in_words(count))


@endpoint("POST", f"{ONE}/stop", tag=TAG, summary="Stop what waits")
def stop_letters(request: Request, placement_id: UUID, letter_id: UUID) -> Sentence:
    """Stop the letters that are not sent yet."""
    found = _options(request, placement_id, letter_id)
    count = services.letters_stop(user=request.user, **found)
    return Sentence(sentence=f"{counted(count, 'letter')} stopped.")


@endpoint("POST", f"{ONE}/test", tag=TAG, summary="Send a test", body=shapes.NewTest)
def test_letter(request: Request, placement_id: UUID, letter_id: UUID) -> Sentence:
    """Send the letter of one student to the token's person."""
    found = _options(request, placement_id, letter_id)
    sent = read_body(request, shapes.NewTest)
    recipient = _recipient(found, sent.student)
    services.letter_test(
        user=request.user,
        template=found["template"],
        recipient=recipient,
        address=sent.address,
    )
    return Sentence(sentence=f"The letter of {recipient.student.label} went to {sent.address}.")


@endpoint("POST", f"{ONE}/bounces", tag=TAG, summary="Note bounces", body=shapes.NewBounces)
def note_bounces(request: Request, placement_id: UUID, letter_id: UUID) -> Sentence:
    """Mark sent letters whose addresses bounced."""
    found = _options(request, placement_id, letter_id)
    addresses = read_body(request, shapes.NewBounces).addresses
    count = services.letters_bounced(user=request.user, addresses=addresses, **found)
    words = counted(count, "letter is", "letters are")
    return Sentence(sentence=f"{words} marked as come back.")


@endpoint(
    "GET",
    f"{ONE}/file/{{shape}}",
    tag=TAG,
    summary="Take a mail-merge file",
    description="csv and xlsx hold fields and finished letters, word is CSV for merge fields. "
    "Leaves an audit line.",
    media_type="text/csv",
    changes=True,
)
def get_letters_file(
    request: Request, placement_id: UUID, letter_id: UUID, shape: Literal["csv", "xlsx", "word"]
) -> HttpResponseBase:
    """Send a mail-merge file of a placement."""
    found = _options(request, placement_id, letter_id)
    if shape not in ("csv", "xlsx", "word"):
        raise Http404("There is no such shape.")
    data, kind, ending = services.letters_file(user=request.user, shape=shape, **found)
    response = HttpResponse(data, content_type=kind)
    return as_attachment(response, f"{found['placement'].name} letters.{ending}")


@endpoint(
    "POST",
    "/cohorts/{cohort_id}/addresses",
    tag=TAG,
    summary="Import e-mails",
    description="One line a student: the id and the e-mail, and the name if there is one.",
    form={"file": FILE},
    required=("file",),
)
def import_addresses(request: Request, cohort_id: UUID) -> Sentence:
    """Import e-mail addresses and names of a cohort from a file."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    file = request.FILES.get("file")
    if file is None:
        raise Problem(400, "Send a CSV or XLSX file in the multipart field “file”.")
    kept, strangers = addresses_import(
        user=request.user,
        cohort=cohort,
        filename=file.name or "",
        size=file.size or 0,
        read=file.read,
    )
    rest = left_out_words(strangers)
    return Sentence(sentence=f"{counted(kept, 'student')} found{rest}.")
