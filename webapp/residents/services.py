"""Acts on personal pages: consent, changes that students ask for, and decisions of staff.

A student has no account: lines of the audit log name the student by the id on screen.
"""

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Student
from webapp.common.errors import ConflictError, Refusal
from webapp.common.limits import count_up
from webapp.residents.links import page_of
from webapp.residents.mails import mail_decision
from webapp.residents.models import (
    MAX_ANSWER,
    MAX_ASK,
    MAX_CONTACT,
    AskState,
    ChangeAsk,
    ContactConsent,
    ResidentPage,
    Wish,
    new_nonce,
)
from webapp.residents.selectors import (
    contacts_of,
    organisation_of,
    published_place,
    published_places,
)

ASKS_A_DAY = 5
_DAY = 86_400


class ResidentError(Refusal):
    """Refusal of an act on a personal page, in one sentence in the language of the page."""


class AskConflictError(ResidentError, ConflictError):
    """Refusal because the student or another person of staff acted first."""


def _lock(page: ResidentPage) -> Student:
    """Lock the student of a page, so that acts of several tabs wait for each other."""
    rows = Student.objects.select_for_update(of=("self",)).only("pk", "number", "cohort")
    return rows.get(pk=page.student_id)


def _gone() -> ResidentError:
    return ResidentError(_("Your room is not published any more. Nothing was saved."))


@transaction.atomic
def contact_share(*, page: ResidentPage, number: int, shares: bool, contact: str) -> None:
    """Agree that a roommate sees one's contact, or take that back; keep the own contact.

    Taking it back works for everybody, also after moving out.
    """
    student = _lock(page)
    contact = " ".join(contact.split())
    if len(contact) > MAX_CONTACT or "\x00" in contact:
        raise ResidentError(_("This text is too long. Shorten it."), "contact")
    place = published_place(student)
    if place is None:
        raise _gone()
    living = [one for one in published_places(student) if one.room_id]
    mates = (contacts_of(one).filter(number=number).first() for one in living)
    mate = next((one for one in mates if one is not None), None)
    if mate is None:
        if not shares:
            ContactConsent.objects.filter(student=student, roommate__number=number).delete()
            return
        raise ResidentError(_("This person is not your roommate any more. Nothing was saved."))
    if shares:
        ContactConsent.objects.get_or_create(student=student, roommate_id=mate.student_id)
        ResidentPage.objects.filter(pk=page.pk).update(contact=contact)
    else:
        ContactConsent.objects.filter(student=student, roommate=mate.student_id).delete()
    audit(
        None,
        "agreed to share a contact" if shares else "took back the consent to share a contact",
        place.placement,
        organisation=organisation_of(page),
        student=student.label,
        roommate=mate.label,
    )


@transaction.atomic
def ask_create(*, page: ResidentPage, wish: str, text: str) -> ChangeAsk:
    """Ask for a change of the room; one ask at a time waits for a decision."""
    student = _lock(page)
    text = text.replace("\r\n", "\n").strip()
    if wish not in Wish.values:
        raise ResidentError(_("Choose what you want to change."), "wish")
    if not text or "\x00" in text:
        raise ResidentError(_("Write why you ask for it."), "text")
    if len(text) > MAX_ASK:
        raise ResidentError(_("This text is too long. Shorten it."), "text")
    place = published_place(student)
    if place is None:
        raise _gone()
    if count_up("residents:ask", str(student.pk), window=_DAY) > ASKS_A_DAY:
        raise ResidentError(_("You asked several times today. Try again tomorrow."))
    try:
        with transaction.atomic():
            ask = ChangeAsk.objects.create(
                student=student, placement=place.placement, wish=wish, text=text
            )
    except IntegrityError as error:
        raise ResidentError(_("Your housing office has not answered yet.")) from error
    audit(
        None,
        "asked for a change of room",
        place.placement,
        organisation=organisation_of(page),
        student=student.label,
        wish=wish,
    )
    return ask


@transaction.atomic
def ask_take_back(*, page: ResidentPage, ask_id: int) -> None:
    """Take back a change that nobody decided yet."""
    student = _lock(page)
    ask = ChangeAsk.objects.filter(pk=ask_id, student=student).select_related("placement").first()
    own = ChangeAsk.objects.filter(pk=ask_id, student=student, state=AskState.OPEN)
    if ask is None or not own.update(state=AskState.TAKEN_BACK, decided_at=timezone.now()):
        raise ResidentError(_("Your housing office has decided already."))
    audit(
        None,
        "took back a change of room",
        ask.placement,
        organisation=organisation_of(page),
        student=student.label,
    )


@transaction.atomic
def ask_decide(*, user: User, ask: ChangeAsk, state: str, answer: str, version: int) -> None:
    """Agree to a change or decline it, with an answer that the student reads.

    Nobody is moved by the decision: staff move the student themselves.
    """
    answer = answer.replace("\r\n", "\n").strip()
    if state not in (AskState.ACCEPTED, AskState.DECLINED):
        raise ResidentError(gettext("Choose whether you agree or decline."), "state")
    if state == AskState.DECLINED and not answer:
        raise ResidentError(gettext("Write why. The student reads it."), "answer")
    if len(answer) > MAX_ANSWER or "\x00" in answer:
        raise ResidentError(
            gettext("An answer has at most %(most)s characters.") % {"most": f"{MAX_ANSWER:,}"},
            "answer",
        )
    rows = ChangeAsk.objects.filter(pk=ask.pk, version=version).exclude(state=AskState.TAKEN_BACK)
    changed = rows.update(
        state=state,
        answer=answer,
        version=version + 1,
        decided_at=timezone.now(),
        decided_by=user,
    )
    if not changed:
        raise AskConflictError(
            gettext(
                "The student took it back, or somebody else decided meanwhile. Nothing was changed."
            )
        )
    verb = "agreed to a change of room" if state == AskState.ACCEPTED else "declined a change"
    audit(user, verb, ask.placement, student=ask.student.label)
    mail_decision(ask)


@transaction.atomic
def link_renew(*, user: User, student: Student) -> None:
    """Make the personal link of a student invalid; the next letter holds a new one."""
    page = page_of(student)
    ResidentPage.objects.filter(pk=page.pk).update(nonce=new_nonce())
    audit(user, "made a personal link invalid", student.cohort, student=student.label)
