"""Questions to students by e-mail about the target of a request with an uncertain name.

Each mail goes to the asker and quotes their text, without data of other people: no name, id or
address of possible targets.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.addresses import address_of
from webapp.cohorts.models import Cohort
from webapp.common.outgoing import RefusedError, mails_send_due
from webapp.housing.models import RoommateRequest
from webapp.letters.errors import LetterError
from webapp.letters.fields import fill, unknown_fields
from webapp.letters.models import RequestQuestion
from webapp.translation.lazy import gettext_lazy

FIELDS = {
    "written": gettext_lazy("what the student typed as the roommate"),
    "name": gettext_lazy("the name of the student who asked"),
    "cohort": gettext_lazy("the name of the cohort"),
    "organisation": gettext_lazy("the name of your organisation"),
}
FIRST_SUBJECT = "Whom do you want to live with?"
FIRST_TEXT = """Hello [name],

you asked to live with “[written]”. We could not tell for sure who that is.

Answer this mail with their student id or their university e-mail, or say that you have no wish.
Nobody learns that you asked.

[organisation]"""
LOST = gettext_lazy("Its sending was cut off, and it may have arrived. Ask again if it did not.")
MAX_SUBJECT, MAX_TEXT = 150, 5_000
_UNDERWAY = (RequestQuestion.WAITING, RequestQuestion.SENDING)


@dataclass(frozen=True, slots=True)
class Wording:
    """Text of the question, with fields in square brackets, and reply address ("": the sender)."""

    subject: str = FIRST_SUBJECT
    text: str = FIRST_TEXT
    reply_to: str = ""

    def checked(self) -> "Wording":
        """Return the cleaned wording; raise LetterError with one sentence if it cannot be sent."""
        subject, text = " ".join(self.subject.split()), self.text.strip()
        reply_to = self.reply_to.strip()
        for field, words, most in (("subject", subject, MAX_SUBJECT), ("text", text, MAX_TEXT)):
            if not words:
                raise LetterError(_("A mail needs a subject and a text. Nothing was sent."), field)
            if len(words) > most:
                raise LetterError(
                    _(
                        "A subject has at most %(max_subject)s letters and a text "
                        "%(max_text)s. Nothing was sent."
                    )
                    % {"max_subject": MAX_SUBJECT, "max_text": f"{MAX_TEXT:,}"},
                    field,
                )
            unknown = unknown_fields(words, tuple(FIELDS))
            if unknown:
                raise LetterError(
                    _("%(unknown)s Nothing was sent.") % {"unknown": unknown[0]}, field
                )
        try:
            if reply_to:
                validate_email(reply_to)
        except ValidationError as error:
            raise LetterError(
                _("Give the e-mail that answers go to, or none."), "reply_to"
            ) from error
        return Wording(subject, text, reply_to)


def filled(wording: Wording | RequestQuestion, request: RoommateRequest) -> tuple[str, str]:
    """Return subject and text of the mail about one request."""
    cohort = request.cohort
    values = {
        "written": " ".join(request.written.split()),
        "name": " ".join(request.student.name.split()),
        "cohort": cohort.name,
        "organisation": cohort.organisation.name,
    }
    text = fill(wording.text, values).replace("Hello ,", "Hello,")
    return " ".join(fill(wording.subject, values).split())[:200], text


def askable(cohort: Cohort) -> list[RoommateRequest]:
    """Return the requests that name no certain student, with askers and earlier questions."""
    rows = RoommateRequest.objects.filter(cohort=cohort, target=None, is_ignored=False)
    found = rows.select_related("student", "question", "cohort__organisation")
    return list(found.defer("student__answers", "student__attributes"))


@transaction.atomic
def questions_ask(
    *,
    user: User,
    cohort: Cohort,
    wording: Wording,
    requests: Collection[int],
    seen: int = 0,
) -> int:
    """Queue a mail about each of these unknown requests, by key, and return how many.

    ``seen`` is how often the page showed that they were asked. Students asked more often since are
    skipped, so that two people who press the button send one mail; so are queued mails.

    Raises LetterError with one sentence if nobody is left to ask, or the mail cannot be sent.
    """
    wording = wording.checked()
    Cohort.objects.select_for_update().get(pk=cohort.pk)
    chosen = [one for one in askable(cohort) if one.pk in set(requests)]
    if not chosen:
        raise LetterError(_("These requests were settled meanwhile. Nobody was asked."))
    reachable = [one for one in chosen if address_of(one.student)]
    if not reachable:
        raise LetterError(
            _(
                "None of these students has an e-mail. Take addresses from a file on the "
                "page of letters first. Nobody was asked."
            )
        )
    due = [one for one in reachable if _is_due(one, seen)]
    if not due:
        raise LetterError(_("They were asked already. Nobody was asked twice."))
    for request in due:
        times = _times(request) + 1
        RequestQuestion.objects.update_or_create(
            request=request,
            defaults={
                "address": address_of(request.student),
                "subject": wording.subject,
                "text": wording.text,
                "reply_to": wording.reply_to,
                "times": times,
                "state": RequestQuestion.WAITING,
                "attempts": 0,
                "error": "",
                "due_at": timezone.now(),
                "sent_at": None,
                "created_by": user,
            },
        )
    audit(
        user,
        "asked whom requests mean",
        cohort,
        students=[request.student.label for request in due][:50],
        mails=len(due),
    )
    return len(due)


def _question(request: RoommateRequest) -> RequestQuestion | None:
    return getattr(request, "question", None)


def _times(request: RoommateRequest) -> int:
    question = _question(request)
    return question.times if question else 0


def _is_due(request: RoommateRequest, seen: int) -> bool:
    question = _question(request)
    return question is None or (question.times <= seen and question.state not in _UNDERWAY)


def questions_send() -> int:
    """Send the due questions and return how many were sent; the sweep calls it."""
    rows = RequestQuestion.objects.select_related(
        "request__student", "request__cohort__organisation"
    )
    return mails_send_due(rows, _compose, lost=str(LOST))


def _compose(question: RequestQuestion) -> EmailMessage:
    request = question.request
    if request.target_id is not None or request.is_ignored:
        raise RefusedError(_("The request was settled before it was sent."))
    subject, text = filled(question, request)
    return EmailMessage(
        subject,
        text,
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[question.address],
        reply_to=[question.reply_to] if question.reply_to else None,
        headers={"Auto-Submitted": "auto-generated"},
    )


def asked_in_words(count: int) -> str:
    """Return a sentence such as '2 students are asked by e-mail.'"""
    return ngettext(
        "%(count)s student is asked by e-mail.", "%(count)s students are asked by e-mail.", count
    ) % {"count": f"{count:,}"}


def without_address(requests: Sequence[RoommateRequest]) -> list[str]:
    """Return the ids on screen of the askers without a valid e-mail."""
    return [request.student.label for request in requests if not address_of(request.student)]
