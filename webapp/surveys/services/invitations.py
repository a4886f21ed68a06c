"""Invitations, and mails with links: queued in one transaction, sent once each."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.utils import timezone, translation
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.outgoing import REFUSED, mails_send_due
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.invited import MAX_PEOPLE, read_people
from webapp.surveys.mails import checked_texts, compose, link_text, text_for
from webapp.surveys.models import (
    Mail,
    Participant,
    Questionnaire,
    ScheduledReminder,
    new_nonce,
)
from webapp.surveys.questions import languages_of
from webapp.translation.lazy import gettext_lazy

GONE = gettext_lazy("This person was removed meanwhile.")
REMINDERS_A_DAY = 2  # a further one must be confirmed
_DAY = timedelta(hours=24)
_LATE = timedelta(days=1)  # a reminder that is late by more is not sent any more


class TooOftenError(QuestionnaireError):
    """Refusal of one more reminder than usual in a day; once confirmed, it is sent."""


@dataclass(frozen=True, slots=True)
class Added:
    """Result of adding people: new ones, known ones, and known ones that were completed."""

    added: int
    known: int
    completed: int

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        words = (
            gettext(
                "%(added)s added, %(known)s were there already, %(completed)s of them got a number "
                "or a name."
            )
            if self.completed
            else gettext("%(added)s added, %(known)s were there already.")
        )
        return words % {
            "added": f"{self.added:,}",
            "known": f"{self.known:,}",
            "completed": f"{self.completed:,}",
        }


def invitations_add(*, user: User, questionnaire: Questionnaire, text: str) -> Added:
    """Add the people named in a text, without sending mails.

    Known people keep their number and name, and get missing ones. Raises QuestionnaireError naming
    the line that cannot be read; then nobody was added.
    """
    people = read_people(text)
    with transaction.atomic():
        Questionnaire.objects.select_for_update().get(pk=questionnaire.pk)
        known = {one.email: one for one in questionnaire.participants.exclude(email="")}
        made = [
            Participant(
                questionnaire=questionnaire,
                email=one.email,
                identifier=one.number,
                name=one.name,
            )
            for one in people
            if one.email not in known
        ]
        completed = []
        for one in people:
            found = known.get(one.email)
            if found is None:
                continue
            number, name = found.identifier or one.number, found.name or one.name
            if (number, name) != (found.identifier, found.name):
                found.identifier, found.name = number, name
                completed.append(found)
        Participant.objects.bulk_create(made, batch_size=500)
        Participant.objects.bulk_update(completed, ["identifier", "name"], batch_size=500)
        audit(user, "invited", questionnaire, people=len(made), completed=len(completed))
    return Added(len(made), len(people) - len(made), len(completed))


@transaction.atomic
def person_remove(*, user: User, questionnaire: Questionnaire, person: int) -> Participant:
    """Remove a person without answers; return the removed row, with its key."""
    found = questionnaire.participants.select_for_update().filter(pk=person).first()
    if found is None:
        raise QuestionnaireError(GONE)
    if found.updated_at or found.finished_at:
        raise QuestionnaireError(
            gettext("This person has answered. Only the student can delete their answers.")
        )
    removed = copy(found)
    found.delete()
    audit(user, "removed an invitation", questionnaire)
    return removed


def link_renew(*, user: User, questionnaire: Questionnaire, person: int, base: str = "") -> bool:
    """Give a person a new personal link, also after they finished; the old link becomes invalid.

    Returns True if the new link is queued by mail: with ``base``, and if the person has an e-mail.
    """
    with transaction.atomic():
        found = questionnaire.participants.filter(pk=person)
        if not found.update(nonce=new_nonce()):
            raise QuestionnaireError(GONE)
        audit(user, "renewed a link", questionnaire)
        one = found.get()
        if not base or not one.email or not questionnaire.is_open:
            return False
        return link_send(user=user, questionnaire=questionnaire, person=person, base=base)


@transaction.atomic
def link_send(*, user: User | None, questionnaire: Questionnaire, person: int, base: str) -> bool:
    """Queue a mail with the link to one person, finished or not.

    Returns False if such a mail is queued already.
    """
    _check_open(questionnaire)
    found = questionnaire.participants.select_for_update().filter(pk=person).first()
    if found is None:
        raise QuestionnaireError(GONE)
    if not found.email:
        raise QuestionnaireError(gettext("This person has no e-mail. They began by the code."))
    if found.mails.filter(state__in=(Mail.WAITING, Mail.SENDING)).exists():
        return False
    link_mail(found, base=base).save()
    audit(user, "sent a link", questionnaire, organisation=questionnaire.organisation, people=1)
    return True


def link_mail(person: Participant, *, base: str, address: str = "", language: str = "") -> Mail:
    """Return an unsaved mail with only the link, in the person's language."""
    language = language or person.language or person.questionnaire.content.language
    with translation.override(language):
        return Mail(
            participant=person,
            subject="[title]",
            text=link_text(),
            base=base,
            address=address,
            language=language,
        )


def mails_queue(
    *,
    user: User | None,
    questionnaire: Questionnaire,
    texts: Mapping[str, str],
    is_reminder: bool,
    base: str,
    is_confirmed: bool = False,
) -> int:
    """Queue invitations to people without a mail yet, or reminders to people who have not finished.

    ``texts`` maps languages to texts, with [link] in place of the personal link. Returns how many
    were queued. Raises TooOftenError if people got two reminders in the last 24 hours, unless
    ``is_confirmed``.
    """
    _check_open(questionnaire)
    kept = checked_texts(texts)
    people = mails_due(questionnaire, is_reminder=is_reminder)
    if is_reminder and not is_confirmed:
        _check_not_too_often(people)
    order = languages_of(questionnaire.content)
    with transaction.atomic():
        mails = [
            Mail(
                participant=person,
                is_reminder=is_reminder,
                subject=_subject(is_reminder, person, order),
                text=text_for(person, kept, order),
                base=base,
            )
            for person in people
        ]
        if not mails:
            raise QuestionnaireError(
                gettext("There is nobody to remind: all of them finished, or had no mail yet.")
                if is_reminder
                else gettext("There is nobody to write to: everybody who was invited had a mail.")
            )
        Mail.objects.bulk_create(mails, batch_size=500)
        verb = "reminded" if is_reminder else "wrote to"
        organisation = questionnaire.organisation
        audit(user, verb, questionnaire, organisation=organisation, mails=len(mails))
    return len(mails)


def _subject(is_reminder: bool, person: Participant, order: Sequence[str]) -> str:
    """Return the subject in the person's language, else in the questionnaire's."""
    language = person.language or order[0]
    with translation.override(language if language in settings.STUDENT_LANGUAGES else "en"):
        return _("Reminder: [title]") if is_reminder else "[title]"


def mails_due(questionnaire: Questionnaire, *, is_reminder: bool) -> QuerySet[Participant]:
    """Return the people to whom an invitation, or a reminder, would be sent now."""
    people = questionnaire.participants.exclude(email="").filter(finished_at=None)
    people = people.filter(bounced_at=None, unsubscribed_at=None)
    people = people.exclude(mails__state__in=(Mail.WAITING, Mail.SENDING))
    people = people.filter(mails__state=Mail.SENT) if is_reminder else people.filter(mails=None)
    return people.distinct()


def _check_open(questionnaire: Questionnaire) -> None:
    if not questionnaire.is_open:
        raise QuestionnaireError(gettext("Open the questionnaire before you send links to it."))


def _check_not_too_often(people: QuerySet[Participant]) -> None:
    since = timezone.now() - _DAY
    recent = Q(mails__is_reminder=True, mails__state=Mail.SENT, mails__sent_at__gte=since)
    reminded = Participant.objects.filter(pk__in=people.values("pk"))
    count = (
        reminded.annotate(n_recent=Count("mails", filter=recent))
        .filter(n_recent__gte=REMINDERS_A_DAY)
        .count()
    )
    if count:
        words = ngettext(
            "%(count)s person has had %(reminders)s reminders in the last 24 hours. Nothing was "
            "sent. Send one more only if it cannot wait until tomorrow.",
            "%(count)s people have had %(reminders)s reminders in the last 24 hours. Nothing was "
            "sent. Send one more only if it cannot wait until tomorrow.",
            count,
        )
        raise TooOftenError(
            words % {"count": f"{count:,}", "reminders": REMINDERS_A_DAY}, "is_confirmed"
        )


@transaction.atomic
def reminder_schedule(
    *,
    user: User,
    questionnaire: Questionnaire,
    due_at: datetime,
    texts: Mapping[str, str],
    base: str,
) -> ScheduledReminder:
    """Schedule a reminder for a time while the questionnaire is open."""
    kept = checked_texts(texts)
    if due_at <= timezone.now():
        raise QuestionnaireError(gettext("Choose a time that is still to come."), "due_at")
    if questionnaire.closes_at is None or due_at >= questionnaire.closes_at:
        raise QuestionnaireError(
            gettext("Choose a time before the questionnaire closes; open it first."), "due_at"
        )
    made = questionnaire.scheduled_reminders.create(
        created_by=user, due_at=due_at, texts=kept, base=base
    )
    audit(user, "scheduled a reminder", questionnaire, at=due_at)
    return made


@transaction.atomic
def reminder_cancel(*, user: User, questionnaire: Questionnaire, reminder: int) -> None:
    """Cancel a reminder that has not been sent yet."""
    waiting = questionnaire.scheduled_reminders.filter(pk=reminder, sent_at=None)
    if not waiting.delete()[0]:
        raise QuestionnaireError(gettext("This reminder went out already, or was cancelled."))
    audit(user, "cancelled a reminder", questionnaire)


def reminders_queue_due() -> int:
    """Queue the mails of due scheduled reminders; return how many reminders.

    A reminder is claimed by compare-and-set, so that of two processes one queues it. A reminder
    without recipients, or a day late, gets a note and sends no mails.
    """
    now, queued = timezone.now(), 0
    due = ScheduledReminder.objects.filter(sent_at=None, due_at__lte=now)
    for reminder in due.select_related("questionnaire__organisation"):
        with transaction.atomic():
            claimed = ScheduledReminder.objects.filter(pk=reminder.pk, sent_at=None)
            if not claimed.update(sent_at=now):
                continue
            count, note = _queue(reminder, is_late=now - reminder.due_at > _LATE)
            ScheduledReminder.objects.filter(pk=reminder.pk).update(n_mails=count, note=note[:200])
        queued += 1
    return queued


def _queue(reminder: ScheduledReminder, *, is_late: bool) -> tuple[int, str]:
    if is_late:
        return 0, gettext("The server was off at that time. Nothing was sent.")
    try:
        count = mails_queue(
            user=None,
            questionnaire=reminder.questionnaire,
            texts=reminder.texts,
            is_reminder=True,
            base=reminder.base,
        )
    except QuestionnaireError as problem:
        return 0, str(problem)
    return count, ""


def people_at(
    questionnaires: QuerySet[Questionnaire], addresses: Iterable[str]
) -> QuerySet[Participant]:
    """Return the people with one of these addresses who still get mails."""
    wanted = [address.lower() for address in addresses][:MAX_PEOPLE]
    return Participant.objects.filter(
        questionnaire__in=questionnaires, email__in=wanted, bounced_at=None
    )


def bounces_mark(
    *,
    user: User,
    questionnaires: QuerySet[Questionnaire],
    addresses: dict[str, str],
    at: datetime | None = None,
) -> int:
    """Mark addresses unknown to a mail server, {address: reason}; return how many were ours.

    These addresses get no more mails. Used for addresses pasted by staff, for returned mails, and
    by programs that read them. ``at`` is the moment by which ``bounces_undo`` finds them again.
    """
    count, now = 0, at or timezone.now()
    with transaction.atomic():
        for address, why in list(addresses.items())[:MAX_PEOPLE]:
            found = people_at(questionnaires, [address])
            count += found.update(bounced_at=now, bounce=why[:200])
        if count:
            audit(user, "noted bounces", user.own_organisation, people=count)
    return count


def bounces_undo(*, user: User, questionnaires: QuerySet[Questionnaire], at: datetime) -> int:
    """Resume mailing all people that were marked in one act; return how many."""
    with transaction.atomic():
        found = Participant.objects.filter(questionnaire__in=questionnaires, bounced_at=at)
        count = found.update(bounced_at=None, bounce="")
        if not count:
            raise QuestionnaireError(gettext("These addresses get mails again already."))
        audit(user, "writes again to addresses", user.own_organisation, people=count)
    return count


def bounce_forget(*, user: User, questionnaire: Questionnaire, person: int) -> None:
    """Resume mailing an address: it was corrected, or the server was wrong."""
    with transaction.atomic():
        found = questionnaire.participants.filter(pk=person)
        if not found.update(bounced_at=None, bounce=""):
            raise QuestionnaireError(GONE)
        Mail.objects.filter(participant_id=person, state=Mail.FAILED).delete()
        audit(user, "writes again to an address", questionnaire)


@transaction.atomic
def mails_stop(*, participant: Participant, stops: bool) -> None:
    """Stop the mails to a participant at their request, or resume them."""
    people = Participant.objects.filter(pk=participant.pk)
    people.update(unsubscribed_at=timezone.now() if stops else None)
    if stops:
        Mail.objects.filter(participant=participant, state=Mail.WAITING).delete()
    questionnaire = participant.questionnaire
    verb = "unsubscribed" if stops else "subscribed again"
    audit(None, verb, questionnaire, organisation=questionnaire.organisation)


def mails_send() -> int:
    """Send the due mails and return how many were sent; the sweeper calls it repeatedly.

    A mail whose sender died is tried again after some minutes: a duplicate is better than a loss.
    """
    reminders_queue_due()
    rows = Mail.objects.select_related("participant__questionnaire__organisation")
    sent = mails_send_due(rows, compose)
    refused = Mail.objects.filter(
        state=Mail.FAILED, error__startswith=REFUSED, participant__bounced_at=None
    )
    for key, error in refused.values_list("participant", "error"):
        why = error.removeprefix(REFUSED)
        Participant.objects.filter(pk=key).update(bounced_at=timezone.now(), bounce=why[:200])
    return sent
