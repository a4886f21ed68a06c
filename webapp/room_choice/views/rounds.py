"""Pages of staff: the rounds of a placement, one round, and the acts on it."""

import secrets
from collections.abc import Callable
from datetime import datetime, time, timedelta
from functools import partial
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.audit.services import audit
from webapp.cohorts.naming import names_on_page
from webapp.common.decorators import staff_required
from webapp.common.form_pages import FormPage
from webapp.common.formats import counted
from webapp.common.kept_forms import keeps_typed
from webapp.common.selectors import get_or_404
from webapp.common.toasts import attempt, toast
from webapp.files.downloads import download
from webapp.files.file_headers import plain_name
from webapp.housing.models import Placement
from webapp.housing.views.placements import find_placement
from webapp.housing.views.questions import Question, ask, trail_of
from webapp.room_choice.forms import (
    EmptyForm,
    ExtendForm,
    PublishForm,
    RoundForm,
    VersionForm,
    initial_of,
)
from webapp.room_choice.models import MAX_SEED, ChoiceRound
from webapp.room_choice.selectors.boards import round_context, round_rows, rounds_of_placement
from webapp.room_choice.services import rounds as services
from webapp.room_choice.services.mails import slots_mail
from webapp.tabular.tables_out import table_file


def _trail(placement: Placement, round: ChoiceRound | None = None) -> list[tuple[str, str]]:
    trail = [
        *trail_of(placement),
        (_("Room choice"), reverse("room_choice:rounds", args=[placement.pk])),
    ]
    if round is not None:
        address = reverse("room_choice:round", args=[placement.pk, round.pk])
        trail.append((round.name, address))
    return trail


def _find(request: SignedInRequest, uuid: str, round_id: int) -> ChoiceRound:
    placement = find_placement(request, uuid)
    round: ChoiceRound = get_or_404(placement.choice_rounds.all(), round_id)
    round.placement = placement
    return round


@require_safe
@staff_required
def rounds(request: SignedInRequest, uuid: str) -> HttpResponse:
    """List the rounds of a placement, and what the placement needs before students choose."""
    placement = find_placement(request, uuid)
    context = {
        "placement": placement,
        "rounds": rounds_of_placement(placement),
        "n_without": placement.places.without_bed().count(),
        "n_movable": len(services.movable_students(placement)),
        "zone": timezone.get_current_timezone(),
    }
    return render(request, "room_choice/rounds.html", context)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def new(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Create a round as a draft."""
    placement = find_placement(request, uuid)
    tomorrow = timezone.localdate() + timedelta(days=1)
    defaults = {
        "opens_at": datetime.combine(tomorrow, time(9)),
        "closes_at": datetime.combine(tomorrow, time(17)),
        "minutes": 30,
        "seed": secrets.randbelow(MAX_SEED),
    }
    return _edited(request, placement, None, defaults)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def edit(request: SignedInRequest, uuid: str, round_id: int) -> HttpResponse:
    """Change a draft of a round."""
    round = _find(request, uuid, round_id)
    return _edited(request, round.placement, round, {})


def _edited(
    request: SignedInRequest,
    placement: Placement,
    round: ChoiceRound | None,
    defaults: dict[str, Any],
) -> HttpResponse:
    form = RoundForm.typed(request, cohort=placement.cohort, initial=initial_of(round, defaults))
    made: list[ChoiceRound] = []

    def act(**fields: Any) -> None:
        saved = services.round_save(user=request.user, placement=placement, round=round, **fields)
        made.append(saved)

    if form.submit(request, act):
        toast(
            request,
            _("%(made)s was saved as a draft. Students see nothing of it yet.")
            % {"made": made[0].name},
        )
        return redirect("room_choice:round", placement.pk, made[0].pk)
    words = _("Times are in %(zone)s. Students see nothing of a draft.") % {
        "zone": timezone.get_current_timezone()
    }
    page = FormPage(
        _("Change %(round)s") % {"round": round.name} if round else _("New round of room choice"),
        _("Save the draft"),
        _trail(placement, round),
        words=words,
    )
    return page.show(request, form)


@require_safe
@staff_required
def show(request: SignedInRequest, uuid: str, round_id: int) -> HttpResponse:
    """Show a round: the preview of a draft, or who chose and who is next."""
    round = _find(request, uuid, round_id)
    names_on_page(request, round.placement.cohort)
    context = round_context(round, request.GET) | {"zone": timezone.get_current_timezone()}
    is_part = request.htmx and request.htmx.target == "round-board"
    template = "room_choice/_board.html" if is_part else "room_choice/round.html"
    return render(request, template, context)


def _act(
    request: SignedInRequest, round: ChoiceRound, act: Callable[..., object], done: str
) -> HttpResponse:
    """Perform an act of one button on the version that the page showed."""
    form = VersionForm.typed(request)
    if form.press(request, partial(act, user=request.user, round=round)):
        toast(request, done)
    return redirect("room_choice:round", round.placement.pk, round.pk)


@require_POST
@staff_required
def pause(request: SignedInRequest, uuid: str, round_id: int) -> HttpResponse:
    """Stop all choices until the round is resumed."""
    round = _find(request, uuid, round_id)
    return _act(
        request, round, services.round_pause, _("%(round)s is paused.") % {"round": round.name}
    )


@require_POST
@staff_required
def resume(request: SignedInRequest, uuid: str, round_id: int) -> HttpResponse:
    """Let students choose again."""
    round = _find(request, uuid, round_id)
    words = _(
        "%(round)s goes on. Slots that lost time to the pause have their whole length now."
    ) % {"round": round.name}
    return _act(request, round, services.round_resume, words)


@require_POST
@staff_required
def close(request: SignedInRequest, uuid: str, round_id: int) -> HttpResponse:
    """End a round now."""
    round = _find(request, uuid, round_id)
    return _act(
        request, round, services.round_close, _("%(round)s is closed.") % {"round": round.name}
    )


@require_POST
@staff_required
def remove(request: SignedInRequest, uuid: str, round_id: int) -> HttpResponse:
    """Remove a draft of a round."""
    round = _find(request, uuid, round_id)
    form = VersionForm.typed(request)
    if form.press(request, partial(services.round_remove, user=request.user, round=round)):
        toast(request, _("%(round)s was removed.") % {"round": round.name})
        return redirect("room_choice:rounds", round.placement.pk)
    return redirect("room_choice:round", round.placement.pk, round.pk)


@require_POST
@staff_required
def mail(request: SignedInRequest, uuid: str, round_id: int) -> HttpResponse:
    """Mail the slots to students who were not told the present times."""
    round = _find(request, uuid, round_id)
    found: list[int] = []
    if attempt(request, lambda: found.append(slots_mail(user=request.user, round=round))):
        toast(
            request,
            ngettext("%(count)s mail queued.", "%(count)s mails queued.", count := found[0])
            % {"count": f"{count:,}"},
        )
    return redirect("room_choice:round", round.placement.pk, round.pk)


@require_POST
@staff_required
def undo(request: SignedInRequest, uuid: str, round_id: int, event_id: int) -> HttpResponse:
    """Undo one choice."""
    round = _find(request, uuid, round_id)
    said: list[str] = []

    def act() -> None:
        said.append(services.choice_undo(user=request.user, round=round, event_id=event_id))

    if attempt(request, act):
        toast(request, said[0])
    return redirect("room_choice:round", round.placement.pk, round.pk)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def publish(request: SignedInRequest, uuid: str, round_id: int) -> HttpResponse:
    """Give each group its slot, show it to the students, and mail it if wanted."""
    round = _find(request, uuid, round_id)
    initial = {"version": round.version, "send_mail": True}
    form = PublishForm.typed(request, initial=initial)
    found: list[int] = []

    def act(*, version: int, send_mail: bool) -> None:
        count = services.round_publish(
            user=request.user, round=round, version=version, send_mail=send_mail
        )
        found.append(count)

    if form.submit(request, act):
        toast(
            request,
            ngettext(
                "%(count)s student has a slot now.",
                "%(count)s students have a slot now.",
                count := found[0],
            )
            % {"count": f"{count:,}"},
        )
        return redirect("room_choice:round", round.placement.pk, round.pk)
    form.show_value("version", str(round.version))
    words = _(
        "The order is fixed then. Each student sees the slot on the personal page, and "
        "can choose a room in it."
    )
    trail = _trail(round.placement, round)
    return FormPage(
        _("Publish the slots of %(round)s") % {"round": round.name},
        _("Publish"),
        trail,
        words=words,
    ).show(request, form)


@keeps_typed
@require_http_methods(["GET", "POST"])
@staff_required
def extend(request: SignedInRequest, uuid: str, round_id: int) -> HttpResponse:
    """Keep a round open longer."""
    round = _find(request, uuid, round_id)
    initial = {"version": round.version, "closes_at": timezone.localtime(round.closes_at)}
    form = ExtendForm.typed(request, initial=initial)
    if form.submit(request, partial(services.round_extend, user=request.user, round=round)):
        toast(
            request,
            _("%(round)s closes later. Mail the slots to tell the students.")
            % {"round": round.name},
        )
        return redirect("room_choice:round", round.placement.pk, round.pk)
    form.show_value("version", str(round.version))
    words = _(
        "From the start of the slot on, every student of the round can choose until "
        "then. Times are in %(zone)s."
    ) % {"zone": timezone.get_current_timezone()}
    trail = _trail(round.placement, round)
    return FormPage(
        _("Extend %(round)s") % {"round": round.name}, _("Extend"), trail, words=words
    ).show(request, form)


@require_POST
@staff_required
def empty(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Take all students out of their rooms who are not locked there, once confirmed."""
    placement = find_placement(request, uuid)
    back = reverse("room_choice:rounds", args=[placement.pk])
    form = EmptyForm.typed(request)
    numbers = services.movable_students(placement)
    if form.is_valid() and form.cleaned_data["people"] == len(numbers):
        act = partial(services.rooms_empty, user=request.user, placement=placement)
        attempt(
            request,
            lambda: act(**form.cleaned_data),
            ngettext(
                "%(count)s student has no room now. The history undoes it.",
                "%(count)s students have no room now. The history undoes it.",
                len(numbers),
            )
            % {"count": f"{len(numbers):,}"},
        )
        return redirect(back)
    count = counted(len(numbers), "student")
    question = Question(
        title=_("Take students out of their rooms?"),
        sentences=[
            _(
                "%(count)s of %(placement)s move out, so that students can choose these "
                "rooms. Students who are locked into their rooms stay."
            )
            % {"count": count, "placement": placement.name},
            _(
                "It is one act of the history, which can be undone until one of them has a "
                "new room."
            ),
        ],
        button=_("Take %(count)s out") % {"count": count},
        address=reverse("room_choice:rounds-empty", args=[placement.pk]),
        fields={"people": len(numbers), "version": placement.version},
        people=numbers,
        is_danger=True,
        back=back,
        trail=_trail(placement),
    )
    return ask(request, question, placement)


@require_safe
@staff_required
def export(
    request: SignedInRequest, uuid: str, round_id: int, file_format: str
) -> HttpResponseBase:
    """Download the slots and choices of a round."""
    round = _find(request, uuid, round_id)
    back = reverse("room_choice:round", args=[round.placement.pk, round.pk])

    def make() -> tuple[bytes, str]:
        rows = round_rows(request.user, round)
        audit(
            request.user, "exported", round.placement, what=f"Room choice: {round.name}",
            rows=len(rows) - 1, format=file_format,
        )  # fmt: skip
        return table_file("Room choice", rows, file_format)

    return download(request, make, f"{plain_name(round.name)}.{file_format}", back=back)
