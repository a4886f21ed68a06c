"""The acts of staff on who takes part: invite, remind, note bounces, make a cohort of them."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.parameters import whole_number
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import toast
from webapp.surveys.bounces import MAX_BYTES, bounced_addresses
from webapp.surveys.models import Questionnaire
from webapp.surveys.questions import QuestionnaireError
from webapp.surveys.services.cohorts import cohort_from_answers
from webapp.surveys.services.invitations import (
    bounce_forget,
    bounces_mark,
    invitation_revoke,
    invitations_add,
    mails_queue,
)
from webapp.surveys.services.withdrawals import withdrawal_complete


@require_POST
@staff_required
def invite(request: HttpRequest, uuid: str) -> HttpResponse:
    """Add people, send them their links or remind who has not finished, or revoke a link."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    post, action = request.POST, request.POST.get("action", "")
    try:
        if action == "add":
            added, known = invitations_add(
                user=request.user, questionnaire=found, text=post.get("people", "")
            )
            toast(request, f"{added:,} added, {known:,} were there already.")
        elif action == "bounced":
            _mark_bounced(request)
        elif action == "write-again":
            person = whole_number(post.get("person", "")) or 0
            bounce_forget(user=request.user, questionnaire=found, person=person)
            toast(request, "The next mail goes there again.")
        elif action == "delete-rest":
            line = whole_number(post.get("line", "")) or 0
            label = withdrawal_complete(user=request.user, questionnaire=found, line=line)
            toast(request, f"What was kept of {label} is deleted. Their bed stays.")
        elif action == "revoke":
            person = whole_number(post.get("person", "")) or 0
            invitation_revoke(user=request.user, questionnaire=found, person=person)
            toast(request, "The old link is worth nothing now.")
        else:
            count = mails_queue(
                user=request.user,
                questionnaire=found,
                text=post.get("text", ""),
                is_reminder=action == "remind",
                base=request.build_absolute_uri("/")[:-1],
            )
            toast(request, f"{count:,} mails are on their way.")
    except QuestionnaireError as problem:
        toast(request, str(problem), error=True)
    return redirect(reverse("surveys:questionnaire", args=[found.pk]) + "?tab=people")


def _mark_bounced(request: HttpRequest) -> None:
    """Mark the addresses of pasted lines, or of a file of mails that came back."""
    file = request.FILES.get("file")
    data = file.read(MAX_BYTES) if file else request.POST.get("people", "").encode()
    found = bounced_addresses(data)
    if not found:
        raise QuestionnaireError("There is no address in it that came back.")
    owned = owned_by(Questionnaire, request.user)
    count = bounces_mark(user=request.user, questionnaires=owned, addresses=found)
    toast(request, f"{count:,} of {len(found):,} addresses were ours and are written to no more.")


@require_POST
@staff_required
def make_cohort(request: HttpRequest, uuid: str) -> HttpResponse:
    """Make a cohort of who finished and is in none."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    try:
        cohort = cohort_from_answers(
            user=request.user, questionnaire=found, name=request.POST.get("name", "")
        )
    except Refusal as problem:
        toast(request, str(problem), error=True)
        return redirect("surveys:questionnaire", found.pk)
    toast(request, f"{cohort.n_students:,} students are in the cohort.")
    return redirect("cohorts:cohort", cohort.pk)
