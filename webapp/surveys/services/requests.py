"""Requests between students: stored as they are saved, reported at once, declined by the target."""

from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.surveys.content import QuestionnaireError
from webapp.surveys.models import Participant, RequestedPerson


@dataclass(frozen=True, slots=True)
class Wish:
    """A request of one person as that person sees it."""

    code: str
    is_mutual: bool


@dataclass(frozen=True, slots=True)
class Asking:
    """A request for one person as that person sees it."""

    code: str
    is_mutual: bool
    is_declined: bool


def request_target(participant: Participant, key: str, code: str) -> Participant:
    """Return the person with a code; raise QuestionnaireError, in the active language, if none.

    A code is refused if it does not exist, is the person's own, or was typed in another question.
    """
    if code == participant.code:
        raise QuestionnaireError(
            _("This is your own code. Type the code of the person you want to live with.")
        )
    found = Participant.objects.filter(
        questionnaire_id=participant.questionnaire_id, code=code
    ).first()
    if found is None:
        raise QuestionnaireError(
            _("Nobody has the code %(code)s. Ask the person for their code again.") % {"code": code}
        )
    if participant.asks_for.filter(target=found).exclude(key=key).exists():
        raise QuestionnaireError(_("You have typed this code before."))
    return found


def request_note(participant: Participant, key: str, target: Participant | None) -> None:
    """Store a person's present request; call it in the transaction that stores the answer.

    Requesting a person whose request was declined before reverses that decline.
    """
    rows = RequestedPerson.objects.filter(asker=participant, key=key)
    if target is None:
        rows.delete()
        return
    if not rows.filter(target=target).exists():
        rows.delete()
        RequestedPerson.objects.create(
            questionnaire_id=participant.questionnaire_id,
            asker=participant,
            target=target,
            key=key,
        )
    RequestedPerson.objects.filter(asker=target, target=participant).update(declined_at=None)


def wish_of(participant: Participant, key: str) -> Wish | None:
    """Return a person's request in a question, and whether it is mutual.

    It does not show that the other person declined, so that nobody has to justify it.
    """
    row = participant.asks_for.filter(key=key).select_related("target").first()
    if row is None:
        return None
    back = RequestedPerson.objects.filter(asker=row.target_id, target=participant)
    return Wish(row.target.code, back.exists())


def asking_for(participant: Participant) -> list[Asking]:
    """Return the people who request to live with a participant."""
    wanted = set(participant.asks_for.values_list("target", flat=True))
    rows = participant.asked_by.select_related("asker").order_by("pk")
    return [
        Asking(row.asker.code, row.asker_id in wanted, row.declined_at is not None) for row in rows
    ]


@transaction.atomic
def request_decline(*, participant: Participant, code: str, declines: bool) -> None:
    """Decline a request for oneself, or reverse that; the asker is not informed."""
    rows = participant.asked_by.filter(asker__code=code)
    if declines and participant.asks_for.filter(target__code=code).exists():
        raise QuestionnaireError(
            _("You ask for this person yourself. Remove their code from your answer first.")
        )
    if not rows.update(declined_at=timezone.now() if declines else None):
        raise QuestionnaireError(_("This person does not ask for you any more."))
