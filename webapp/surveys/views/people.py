"""Staff acts on the people of a questionnaire, each at its own address."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.common.toasts import attempt, toast
from webapp.surveys.bounces import MAX_BYTES, returned_in
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.forms import (
    BouncesForm,
    CohortForm,
    JoinForm,
    MailForm,
    PeopleForm,
    ScheduleForm,
)
from webapp.surveys.invited import lines_of_table
from webapp.surveys.mails import own_address, texts_in
from webapp.surveys.models import Questionnaire
from webapp.surveys.names import label_of, shows_names
from webapp.surveys.selectors.clashes import undecided_words
from webapp.surveys.services import invitations as services
from webapp.surveys.services.cohorts import cohort_from_answers
from webapp.surveys.services.late_answers import cohorts_of, late_answers_join
from webapp.surveys.services.translations import LANGUAGES
from webapp.surveys.services.withdrawals import withdrawal_complete
from webapp.surveys.views.pages import show
from webapp.tabular.reading import read_source

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@require_safe
@staff_required
def people(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the people of a questionnaire, and the mails."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    return show(request, found, "people")


def _back(found: Questionnaire) -> HttpResponse:
    return redirect("surveys:people", found.pk)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def add(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Add people, without sending mails."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    form = PeopleForm.typed(request)
    if request.method == "POST" and form.is_valid():

        def act() -> None:
            text = form.cleaned_data["people"]
            file = form.cleaned_data["file"]
            if file:
                text = "\n".join([text, *_lines_of(file)])
            done = services.invitations_add(user=request.user, questionnaire=found, text=text)
            toast(request, done.sentence)

        if form.attempt(act):
            return _back(found)
    return show(request, found, "people", people_form=form)


def _lines_of(file: UploadedFile) -> Iterator[str]:
    """Yield the rows of a table as lines, with the e-mail, number and name where it has titles."""
    source = read_source(file.size or 0, file.read)
    for sheet in source.sheets:
        yield from lines_of_table([line.cells for line in sheet.lines])


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def send(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Send links to people who were invited and had no mail yet."""
    return _mail(request, uuid, is_reminder=False)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def remind(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Remind people who have not finished."""
    return _mail(request, uuid, is_reminder=True)


def _mail(request: SignedInRequest, uuid: str, *, is_reminder: bool) -> HttpResponse:
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    form = MailForm.typed(
        request, texts=texts_in(found, is_reminder=is_reminder), names=LANGUAGES, auto_id="mail-%s"
    )
    if request.method == "POST" and form.is_valid():

        def act() -> None:
            count = services.mails_queue(
                user=request.user,
                questionnaire=found,
                texts=form.texts,
                is_reminder=is_reminder,
                base=own_address(request),
                is_confirmed=form.cleaned_data["is_confirmed"],
            )
            words = ngettext(
                "%(count)s mail is on its way.", "%(count)s mails are on their way.", count
            )
            toast(request, words % {"count": f"{count:,}"})

        if form.attempt(act):
            return _back(found)
    name = "remind" if is_reminder else "send"
    return show(request, found, "people", mail_form=form, writes=name)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def schedule(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Schedule a reminder for a future time."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    form = ScheduleForm.typed(
        request,
        texts=texts_in(found, is_reminder=True),
        names=LANGUAGES,
        zone=found.organisation.zone.key,
        auto_id="mail-%s",
    )
    if (
        request.method == "POST"
        and form.is_valid()
        and form.attempt(
            lambda: services.reminder_schedule(
                user=request.user,
                questionnaire=found,
                due_at=form.cleaned_data["due_at"],
                texts=form.texts,
                base=own_address(request),
            )
        )
    ):
        toast(request, gettext("The reminder is scheduled."))
        return _back(found)
    return show(request, found, "people", mail_form=form, writes="schedule")


@require_POST
@staff_required
def unschedule(request: SignedInRequest, uuid: str, reminder: int) -> HttpResponse:
    """Cancel a scheduled reminder."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    attempt(
        request,
        lambda: services.reminder_cancel(user=request.user, questionnaire=found, reminder=reminder),
        gettext("The reminder is cancelled."),
    )
    return _back(found)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def bounces(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Stop mailing addresses that are pasted, or that are in returned mails."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    form = BouncesForm.typed(request, auto_id="bounces-%s")
    if request.method == "POST" and form.is_valid():

        def act() -> None:
            file = form.cleaned_data["file"]
            data = file.read(MAX_BYTES) if file else form.cleaned_data["people"].encode()
            returned = returned_in(data, is_file=bool(file))
            addresses = returned.addresses
            if not addresses:
                raise QuestionnaireError(
                    gettext("There is no address in it that came back."), "people"
                )
            owned, at = owned_by(Questionnaire, request.user), timezone.now()
            due = services.people_at(owned, addresses).values_list("email").distinct().count()
            if due and not returned.is_reported and not form.is_confirmed_for(due):
                form.ask(addresses, due)
                return
            count = services.bounces_mark(
                user=request.user, questionnaires=owned, addresses=addresses, at=at
            )
            toast(
                request,
                gettext("%(count)s of %(all)s addresses take part here. They get no more mails.")
                % {"count": f"{count:,}", "all": f"{len(addresses):,}"},
                undo_url=reverse("surveys:bounces-undo", args=[found.pk, _micros(at)])
                if count
                else "",
            )

        if form.attempt(act) and not form.asks:
            return _back(found)
    return show(request, found, "people", bounces_form=form)


@require_POST
@staff_required
def bounces_undo(request: SignedInRequest, uuid: str, moment: int) -> HttpResponse:
    """Resume mailing all addresses that were marked in one act."""
    owned = owned_by(Questionnaire, request.user)

    def act(found: Questionnaire) -> str:
        if moment > _micros(timezone.now()):
            raise Http404(gettext("There is no such act."))
        at = _EPOCH + timedelta(microseconds=moment)
        count = services.bounces_undo(user=request.user, questionnaires=owned, at=at)
        return ngettext(
            "%(count)s address gets mails again.", "%(count)s addresses get mails again.", count
        ) % {"count": f"{count:,}"}

    return _press(request, uuid, act)


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


def _press(
    request: SignedInRequest, uuid: str, act: Callable[[Questionnaire], str]
) -> HttpResponse:
    """Perform the act of a button and show the result."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    try:
        toast(request, act(found))
    except Refusal as problem:
        toast(request, str(problem), error=True)
    return _back(found)


@require_POST
@staff_required
def write_again(request: SignedInRequest, uuid: str, person: int) -> HttpResponse:
    """Resume mailing a returned address."""

    def act(found: Questionnaire) -> str:
        services.bounce_forget(user=request.user, questionnaire=found, person=person)
        return gettext("The next mail goes there again.")

    return _press(request, uuid, act)


@require_POST
@staff_required
def send_link(request: SignedInRequest, uuid: str, person: int) -> HttpResponse:
    """Send the link to one person again."""

    def act(found: Questionnaire) -> str:
        is_queued = services.link_send(
            user=request.user, questionnaire=found, person=person, base=own_address(request)
        )
        return (
            gettext("The link is on its way.")
            if is_queued
            else gettext("A mail is on its way already.")
        )

    return _press(request, uuid, act)


@require_POST
@staff_required
def renew_link(request: SignedInRequest, uuid: str, person: int) -> HttpResponse:
    """Give one person a new link, and mail it; the old link becomes invalid."""

    def act(found: Questionnaire) -> str:
        is_mailed = services.link_renew(
            user=request.user, questionnaire=found, person=person, base=own_address(request)
        )
        return (
            gettext("The old link opens nothing any more. The new one is on its way by mail.")
            if is_mailed
            else gettext("The old link opens nothing any more. The next mail has a new one.")
        )

    return _press(request, uuid, act)


@require_POST
@staff_required
def remove(request: SignedInRequest, uuid: str, person: int) -> HttpResponse:
    """Remove a person without answers."""

    def act(found: Questionnaire) -> str:
        removed = services.person_remove(user=request.user, questionnaire=found, person=person)
        return gettext("%(person)s was removed.") % {
            "person": label_of(removed, with_name=shows_names(request.user))
        }

    return _press(request, uuid, act)


@require_POST
@staff_required
def delete_rest(request: SignedInRequest, uuid: str, line: int) -> HttpResponse:
    """Delete the data kept for a published bed after a student withdrew their answers."""

    def act(found: Questionnaire) -> str:
        label = withdrawal_complete(user=request.user, questionnaire=found, line=line)
        return gettext("The rest of the data of %(student)s is deleted. Their bed stays.") % {
            "student": label
        }

    return _press(request, uuid, act)


@require_POST
@staff_required
def join_cohort(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Add late answers to a cohort that was made from the questionnaire before."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    cohorts = cohorts_of(found)
    form = JoinForm.typed(request, cohorts=cohorts)
    if not form.is_valid():
        toast(request, gettext("Choose a cohort that was made of this questionnaire."), error=True)
        return redirect("surveys:questionnaire", found.pk)
    chosen = next(one for one in cohorts if str(one.pk) == form.cleaned_data["cohort"])
    try:
        joined = late_answers_join(user=request.user, questionnaire=found, cohort=chosen)
    except Refusal as problem:
        toast(request, str(problem), error=True)
        return redirect("surveys:questionnaire", found.pk)
    undo = reverse("cohorts:latecomers-undo", args=[chosen.pk, joined.arrivals.pk])
    toast(request, joined.sentence, undo_url=undo)
    return redirect("cohorts:cohort", chosen.pk)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def make_cohort(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Create a cohort of the people who finished and are in no cohort."""
    found = get_owned_or_404(Questionnaire, request.user, uuid)
    form = CohortForm.typed(request, auto_id="cohort-%s", initial={"name": found.title})
    made = []
    if request.method == "POST" and form.is_valid():
        form.attempt(
            lambda: made.append(
                cohort_from_answers(
                    user=request.user, questionnaire=found, name=form.cleaned_data["name"]
                )
            )
        )
    if made:
        count = made[0].n_students
        words = ngettext(
            "%(count)s student is in the cohort.", "%(count)s students are in the cohort.", count
        ) % {"count": f"{count:,}"}
        toast(request, f"{words} {undecided_words(found)}".strip())
        return redirect("cohorts:cohort", made[0].pk)
    return show(request, found, "people", cohort_form=form, makes_cohort=True)
