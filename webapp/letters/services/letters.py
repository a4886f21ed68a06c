"""Sending letters: to oneself, to all students of a published placement, and after changes.

No student gets the same letter twice: the placement's row is locked while letters are queued, every
letter is numbered for its template and student by a constraint, and a new letter is due only if the
place differs from the last one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.events import send_event
from webapp.common.limits import TooManyError, count_up, seconds_left
from webapp.common.outgoing import RefusedError, mails_send_due, sentence_of
from webapp.housing.models import Placement
from webapp.housing.services.conflicts import check_nobody_moved
from webapp.housing.services.locking import lock_placement
from webapp.letters.errors import LetterError
from webapp.letters.models import Letter, LetterTemplate
from webapp.letters.recipients import (
    PAGE,
    Recipient,
    place_now,
    problems_of,
    recipients_of,
    subject_for,
    text_for,
)
from webapp.letters.services.returned import HEADER, ticket_of
from webapp.residents.links import link_to
from webapp.tabular.tables_out import table_file
from webapp.translation.lazy import gettext_lazy

TESTS_A_MINUTE = 10
LOST = gettext_lazy(
    "Its sending was cut off, and it may have arrived. Send it again if it did not."
)
_UNDERWAY = (Letter.WAITING, Letter.SENDING)
_GIVEN_UP = (Letter.FAILED, Letter.BOUNCED, Letter.STOPPED)


@dataclass(frozen=True, slots=True)
class Due:
    """Students due a letter: those without a letter, and those whose place changed since."""

    first: list[Recipient]
    again: list[Recipient]

    @property
    def everybody(self) -> list[Recipient]:
        """All students due a letter."""
        return self.first + self.again


def letters_due(
    template: LetterTemplate, placement: Placement, recipients: Sequence[Recipient]
) -> Due:
    """Return the recipients who have an address and no letter about their present place yet.

    Letters about a placement for another term do not count.

    Students whose letter about this place failed, bounced or was stopped are not included: staff
    check such letters and send them again on purpose.
    """
    letters = _of_term(_letters_of(template, recipients), placement)
    told = dict(letters.values_list("student_id", "place"))
    due = Due([], [])
    for recipient in recipients:
        if not recipient.address:
            continue
        place = told.get(recipient.student.pk)
        if place is None:
            due.first.append(recipient)
        elif place != recipient.place:
            due.again.append(recipient)
    return due


def _letters_of(template: LetterTemplate, recipients: Sequence[Recipient]) -> QuerySet[Letter]:
    """Return the letters to the students of the recipients' cohort, the last of each at the end."""
    cohort = recipients[0].student.cohort_id if recipients else None
    return template.letters.filter(student__cohort=cohort).order_by("number")


def _of_term(letters: QuerySet[Letter], placement: Placement) -> QuerySet[Letter]:
    """Return the letters about placements of a cohort for the same term, or about removed ones."""
    same = Placement.objects.filter(placement.same_term)
    return letters.filter(Q(placement__in=same) | Q(placement=None))


def _last_letters(
    template: LetterTemplate,
    recipients: Sequence[Recipient],
    placement: Placement | None = None,
) -> dict[int, Letter]:
    """Return the last letter to each student, of all terms or of those of a placement's term."""
    letters = _letters_of(template, recipients).defer("text")
    if placement is not None:
        letters = _of_term(letters, placement)
    return {letter.student_id: letter for letter in letters}


@transaction.atomic
def letters_queue(
    *, user: User, placement: Placement, template: LetterTemplate, version: int
) -> int:
    """Queue a letter to every student who is due, and return how many.

    Waiting letters about an older place are stopped: their content is out of date.

    Raises
    ------
    LetterError
        If the placement is not published, the template has a problem, or no letter is due.
    PlacesChangedError
        If any student got another bed since ``version``.
    """
    placement = lock_placement(placement)
    check_nobody_moved(placement, version)
    recipients = recipients_of(placement, template)
    blocking = [p for p in problems_of(template, placement, recipients) if p.blocks]
    if blocking:
        raise LetterError(_("%(sentence)s Nothing was sent.") % {"sentence": blocking[0].sentence})
    due = letters_due(template, placement, recipients)
    if not due.everybody:
        raise LetterError(_("Everybody with a room and an e-mail was written to already."))
    last = _last_letters(template, recipients)
    _of_term(template.letters.all(), placement).filter(
        state=Letter.WAITING, student__in=[r.student.pk for r in due.again]
    ).update(state=Letter.STOPPED, error=_("The room changed before it was sent."))
    numbers = {key: letter.number + 1 for key, letter in last.items()}
    letters = [
        Letter(
            template=template,
            placement=placement,
            student=recipient.student,
            number=numbers.get(recipient.student.pk, 1),
            address=recipient.address,
            subject=subject_for(template, recipient),
            text=text_for(template, recipient),
            place=recipient.place,
            created_by=user,
        )
        for recipient in due.everybody
    ]
    try:
        with transaction.atomic():
            Letter.objects.bulk_create(letters, batch_size=500)
    except IntegrityError as error:
        raise LetterError(
            _("Somebody sent these letters a moment ago. No letter was sent twice.")
        ) from error
    audit(
        user,
        "sent letters",
        placement,
        letter=template.name,
        first=len(due.first),
        again=len(due.again),
    )
    return len(letters)


def letter_test(
    *, user: User, template: LetterTemplate, recipient: Recipient, address: str
) -> None:
    """Send one student's letter to oneself, at once; the subject marks it as a test.

    Raises LetterError if the address is invalid or the mail server refuses it, TooManyError after
    ten in a minute.
    """
    address = address.strip()
    try:
        validate_email(address)
    except ValidationError as error:
        raise LetterError(_("Give the e-mail that the test goes to."), "address") from error
    if count_up("letter-tests", str(user.pk)) > TESTS_A_MINUTE:
        wait = seconds_left()
        raise TooManyError(
            _("%(tests_a_minute)s tests a minute are enough. Wait %(wait)s s.")
            % {"tests_a_minute": TESTS_A_MINUTE, "wait": wait},
            wait,
        )
    subject = _("Test: %(subject)s") % {"subject": subject_for(template, recipient)}
    message = _message(template, [address], subject[:200], text_for(template, recipient))
    with transaction.atomic():
        audit(user, "sent a test letter", template, to=address)
        try:
            message.send()
        except Exception as error:
            raise LetterError(
                _("The test was not sent. %(sentence_of)s")
                % {"sentence_of": sentence_of(error)[:200]},
                "address",
            ) from error


def _message(template: LetterTemplate, to: list[str], subject: str, text: str) -> EmailMessage:
    return EmailMessage(
        subject,
        text,
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=to,
        reply_to=[template.reply_to] if template.reply_to else None,
        headers={"Auto-Submitted": "auto-generated"},
    )


def letters_send() -> int:
    """Send the due letters and return how many were sent; the sweep calls it."""
    letters = Letter.objects.select_related("template", "placement__organisation", "student")
    before = _batches()
    sent = mails_send_due(letters, _compose, lost=str(LOST))
    for template, placement in before - _batches():
        _tell_sent(template, placement)
    return sent


def _batches() -> set[tuple[UUID | None, UUID | None]]:
    """Return (template, placement) of all letters that are queued or being sent."""
    underway = Letter.objects.filter(state__in=_UNDERWAY, placement__isnull=False).order_by()
    return set(underway.values_list("template_id", "placement_id").distinct())


def _tell_sent(template_id: UUID | None, placement_id: UUID | None) -> None:
    letters = Letter.objects.filter(template=template_id, placement=placement_id)
    counts = Counter(letters.values_list("state", flat=True))
    placement = Placement.objects.filter(pk=placement_id).first() if placement_id else None
    if placement is not None:
        send_event(
            placement.organisation_id,
            "letters.sent",
            placement=str(placement_id),
            letter=str(template_id),
            sent=counts[Letter.SENT],
            failed=counts[Letter.FAILED],
        )


def _compose(letter: Letter) -> EmailMessage:
    placement = letter.placement
    if placement is None or not placement.is_published:
        raise RefusedError(_("The placement is not published any more."))
    if not place_now(letter, placement):
        raise RefusedError(_("The room changed before it was sent."))
    text = letter.text
    if PAGE in text:
        link = link_to(letter.student)
        if not link:
            raise RefusedError(_("This installation has no public address for links."))
        text = text.replace(PAGE, link)
    message = _message(letter.template, [letter.address], letter.subject, text)
    message.extra_headers[HEADER] = ticket_of(letter)
    return message


def letters_stop(*, user: User, placement: Placement, template: LetterTemplate) -> int:
    """Stop waiting letters, and return how many; sent letters are not affected."""
    with transaction.atomic():
        waiting = template.letters.filter(placement=placement, state=Letter.WAITING)
        count = waiting.update(
            state=Letter.STOPPED, error=_("Stopped by %(name)s.") % {"name": user.get_username()}
        )
        if not count:
            raise LetterError(_("No letter waits any more."))
        audit(user, "stopped letters", placement, letter=template.name, letters=count)
    return count


def letters_retry(*, user: User, placement: Placement, template: LetterTemplate) -> int:
    """Send failed, bounced or stopped letters again, to the present addresses.

    Only the last letter of a student counts, and only if its place is still correct.
    """
    with transaction.atomic():
        placement = lock_placement(placement)
        if not placement.is_published:
            raise LetterError(
                _("%(placement)s is not published. Nothing was sent.")
                % {"placement": placement.name}
            )
        recipients = recipients_of(placement, template)
        last = _last_letters(template, recipients, placement)
        count = 0
        for recipient in recipients:
            letter = last.get(recipient.student.pk)
            if letter is None or not recipient.address or letter.place != recipient.place:
                continue
            count += template.letters.filter(pk=letter.pk, state__in=_GIVEN_UP).update(
                state=Letter.WAITING,
                attempts=0,
                error="",
                due_at=timezone.now(),
                address=recipient.address,
                placement=placement,
                subject=subject_for(template, recipient),
                text=text_for(template, recipient),
            )
        if not count:
            raise LetterError(_("There is nothing to send again."))
        audit(user, "sent letters again", placement, letter=template.name, letters=count)
    return count


def letters_to(
    placement: Placement, template: LetterTemplate, addresses: Iterable[str]
) -> list[int]:
    """Return the keys of the sent letters that went to any of these addresses."""
    wanted = {address.strip().strip("<>").casefold() for address in addresses} - {""}
    sent = template.letters.filter(placement=placement, state=Letter.SENT).defer("text")
    return [letter.pk for letter in sent if letter.address.casefold() in wanted]


def letters_bounced(
    *, user: User, placement: Placement, template: LetterTemplate, addresses: Iterable[str]
) -> int:
    """Mark sent letters to returned addresses as bounced, and return how many."""
    with transaction.atomic():
        keys = letters_to(placement, template, addresses)
        if not keys:
            raise LetterError(_("No letter went to any of these addresses."), "addresses")
        count = template.letters.filter(pk__in=keys).update(
            state=Letter.BOUNCED, error=_("Came back, as staff noted.")
        )
        audit(user, "noted bounces", placement, letter=template.name, letters=count)
    return count


def letter_counts(placement: Placement, template: LetterTemplate) -> Counter[str]:
    """Return how many letters of a template and placement are in each state."""
    letters = template.letters.filter(placement=placement)
    return Counter(letters.values_list("state", flat=True))


def letters_file(
    *, user: User, placement: Placement, template: LetterTemplate, shape: str
) -> tuple[bytes, str, str]:
    """Return a mail-merge file, its content type and the ending of its name.

    One row for each student with a room. "csv" and "xlsx" hold the fields and the finished letter;
    "word" is CSV whose headings Word reads as merge fields, each roommate in a column of its own.
    """
    recipients = recipients_of(placement, template)
    if not recipients:
        raise LetterError(_("Nobody has a room yet, so there is no letter to write."))
    rows = _word_rows(recipients) if shape == "word" else _rows(template, recipients)
    kind = "xlsx" if shape == "xlsx" else "csv"
    data, media_type = table_file("Letters", rows, kind)
    audit(user, "exported", placement, what="Letters", letters=len(recipients), format=shape)
    return data, media_type, kind


def _rows(template: LetterTemplate, recipients: Sequence[Recipient]) -> list[list[str]]:
    names = [name for name in recipients[0].values if name != "page"]
    rows = [["email", *names, "subject", "letter"]]
    for one in recipients:
        own = [subject_for(template, one), text_for(template, one)]
        rows.append([one.address, *(one.values[name] for name in names), *own])
    return rows


def _word_rows(recipients: Sequence[Recipient]) -> list[list[str]]:
    most = max(len(one.roommates) for one in recipients)
    names = [name for name in recipients[0].values if name != "roommates"]
    columns = ["".join(word.capitalize() for word in name.split()) for name in names]
    rows = [["Email", *columns, *(f"Roommate{k + 1}" for k in range(most))]]
    for one in recipients:
        mates = [" ".join(mate.name.split()) for mate in one.roommates]
        blank = [""] * (most - len(mates))
        rows.append([one.address, *(one.values[name] for name in names), *mates, *blank])
    return rows


def sent_in_words(count: int) -> str:
    """Return a sentence such as '12 letters are on their way.'"""
    return ngettext(
        "%(count)s letter is on its way.", "%(count)s letters are on their way.", count
    ) % {"count": f"{count:,}"}
