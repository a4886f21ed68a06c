"""Decisions about rooms; the response holds the changes: rooms, figures, the drawer."""

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, ngettext_lazy
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.requests import SignedInRequest
from webapp.common.acts import page_of
from webapp.common.decorators import staff_required
from webapp.common.errors import Refusal
from webapp.common.formats import counted
from webapp.common.toasts import toast
from webapp.housing.decision_forms import NO_DECISION, Act, DecideForm, Scope, ShownForm
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import ActKind, Placement, PlacementEvent, Room
from webapp.housing.selectors.choices import choices_of
from webapp.housing.selectors.drafts import ChangeLine, lines_of_undo
from webapp.housing.selectors.pages import (
    KEPT,
    MANY,
    changed_context,
    concerned_rooms,
    placement_context,
    rooms_matching,
)
from webapp.housing.selectors.placements import PlacementRooms, RoomCard, find_place
from webapp.housing.services.conflicts import rooms_changed_since
from webapp.housing.services.decisions import (
    Decision,
    Move,
    decision_make,
    emptying,
    moving,
    places_lock,
    withdrawing,
)
from webapp.housing.services.drafts import draft_add
from webapp.housing.services.reviews import rooms_accept, rooms_keep
from webapp.housing.services.undo import beds_changed, check_undo, decision_undo
from webapp.housing.typed_students import SeveralStudentsError, students_typed
from webapp.housing.views.pair_decisions import answer_with_pairs
from webapp.housing.views.placements import find_placement
from webapp.housing.views.questions import Question, ask, trail_of
from webapp.translation.lazy import gettext_lazy

Options = dict[str, Any]  # user, placement and version of an act
Handler = Callable[[SignedInRequest, list[int], Options], PlacementEvent | None]
CHOICES = ("move", "swap", "give", "change")  # acts that a choice of another room can be for
DRAFTED = gettext_lazy(
    "Added to your draft of late changes. Nothing is changed before you confirm it."
)
DRAFT_GONE = gettext_lazy("Your draft of late changes is empty again.")
# Title of a bulk act, its button, and its effect on the people who live there.
_BULK = {
    "accept": (
        gettext_lazy("Accept {rooms}?"),
        gettext_lazy("Accept {rooms}"),
        ngettext_lazy("%(count)s person lives there.", "%(count)s people live there.", "number"),
    ),
    "reopen": (
        gettext_lazy("Undecide {rooms}?"),
        gettext_lazy("Undecide {rooms}"),
        ngettext_lazy("%(count)s person lives there.", "%(count)s people live there.", "number"),
    ),
    "lock": (
        gettext_lazy("Lock {rooms}?"),
        gettext_lazy("Lock {rooms}"),
        ngettext_lazy(
            "%(count)s person lives there and keeps the room when rooms are computed again.",
            "%(count)s people live there and keep the rooms when rooms are computed again.",
            "number",
        ),
    ),
    "release": (
        gettext_lazy("Release {rooms}?"),
        gettext_lazy("Release {rooms}"),
        ngettext_lazy("%(count)s person lives there.", "%(count)s people live there.", "number"),
    ),
    "empty": (
        gettext_lazy("Empty {rooms}?"),
        gettext_lazy("Empty {rooms}"),
        ngettext_lazy(
            "%(count)s person lives there and would have no bed.",
            "%(count)s people live there and would have no bed.",
            "number",
        ),
    ),
    "keep": (
        gettext_lazy("Hold {rooms} back?"),
        gettext_lazy("Hold {rooms} back"),
        ngettext_lazy(
            "%(count)s person lives there and would need another room.",
            "%(count)s people live there and would need another room.",
            "number",
        ),
    ),
    "open": (
        gettext_lazy("Open {rooms}?"),
        gettext_lazy("Open {rooms}"),
        ngettext_lazy("%(count)s person lives there.", "%(count)s people live there.", "number"),
    ),
}
# Fields of an act on students that a choice among namesakes repeats.
_REPEATED = ("act", "to", "version", "back", "then")
_TAKES_BEDS = ("empty", "keep")
# Refusals of bulk acts that change none of the rooms that match.
_NO_ROOM = {
    "accept": gettext_lazy("Every room that matches is empty or accepted already."),
    "reopen": gettext_lazy("None of the rooms that match is accepted."),
    "lock": gettext_lazy("Every room that matches is empty or locked already."),
    "release": gettext_lazy("Nobody in the rooms that match is locked."),
    "empty": gettext_lazy("Nobody lives in the rooms that match."),
    "keep": gettext_lazy("None of the rooms that match is open."),
    "open": gettext_lazy("None of the rooms that match is held back."),
}


def _parameters(form: ShownForm) -> dict[str, str]:
    """Return the parameters of the page that held the form."""
    return form.filters(*KEPT, "room", "pair")


def _answer(
    request: SignedInRequest,
    placement: Placement,
    form: ShownForm,
    event: PlacementEvent | None,
    *,
    is_whole: bool = False,
) -> HttpResponse:
    """Return the changes of a decision, and others' changes since the page was made."""
    for name in ("housing:requests", "housing:history", "housing:changes"):
        key = placement.cohort_id if name == "housing:requests" else placement.pk
        address = page_of(form.back_to, reverse(name, args=[key]))
        if address and not request.htmx:
            return redirect(address)
    if placement.is_pairs:
        return answer_with_pairs(request, placement, form.back_to)
    parameters = _parameters(form)
    if not request.htmx:
        address = reverse("housing:placement", args=[placement.pk])
        return redirect(f"{address}?{urlencode(parameters)}" if parameters else address)
    joined = Placement.objects.select_related("cohort", "model", "job", "buildings")
    fresh = joined.get(pk=placement.pk)
    then = form.cleaned_data.get("then")
    if then and event is not None:
        parameters = {**parameters, "room": then, "pair": ""}
    rooms = _changed_since(fresh, form.seen)
    is_whole = is_whole or parameters.get("view") == "students" or len(rooms) > MANY
    if is_whole or not fresh.is_computed:
        context = placement_context(fresh, parameters, request.user) | {"with_drawer": True}
        response = render(request, "housing/_placement_body.html", context)
        response["HX-Retarget"], response["HX-Reswap"] = "#placement", "outerHTML"
        return response
    context = changed_context(fresh, parameters, rooms, request.user)
    return render(request, "housing/_changed.html", context)


def _changed_since(placement: Placement, seen: int) -> set[int]:
    """Return the rooms changed since a page was made; none for an unknown page."""
    try:
        return rooms_changed_since(placement, seen)
    except PlacesChangedError:
        return set()


@require_POST
@staff_required
def decide(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Accept, lock, empty, hold back, move, swap or withdraw: one room, some, or all that match.

    An act on all rooms that match needs a confirmation. Moves in a published placement join the
    user's draft of late changes.
    """
    placement = find_placement(request, uuid)
    form = DecideForm.typed(request)
    event, is_whole = None, False
    try:
        form.check()
        if _is_bulk(form) and not _drafts(form, placement):
            matching = rooms_matching(placement, _parameters(form), request.user)
            found = _concerned(matching, form.cleaned_data["act"])
            if not _is_confirmed(form, found):
                n_others = len(matching) - len(found)
                return ask(request, _bulk_question(form, placement, found, n_others), placement)
        event = _act(request, placement, form)
        is_whole = event is None
        if event is not None:
            undo = reverse("housing:placement-undo", args=[placement.pk, event.pk])
            toast(request, event.sentence, undo_url=undo)
    except SeveralStudentsError as several:
        return ask(request, _whom_question(form, placement, several), placement)
    except Refusal as problem:
        toast(request, str(problem), error=True)
    return _answer(request, placement, form, event, is_whole=is_whole)


def _whom_question(
    form: DecideForm, placement: Placement, several: SeveralStudentsError
) -> Question:
    """Return the question whom a name means; the answer repeats the act with one student."""
    sent = {name: values for name, values in form.sent.items() if name in _REPEATED}
    back = urlencode(_parameters(form))
    return Question(
        title=_("Who is meant?"),
        sentences=[
            _("Several students match “%(several)s”. Nothing is changed yet.")
            % {"several": several.text[:40]}
        ],
        button="",
        address=reverse("housing:placement-decide", args=[placement.pk]),
        fields=sent,
        choices=several.choices,
        back=f"{reverse('housing:placement', args=[placement.pk])}?{back}",
        trail=trail_of(placement),
    )


def _is_bulk(form: DecideForm) -> bool:
    asked = form.cleaned_data
    return asked["scope"] is Scope.MATCHING and asked["act"] in _ROOM_HANDLERS


def _concerned(matching: Sequence[RoomCard], act: Act) -> list[RoomCard]:
    """Return the rooms that a bulk act changes; raise HousingError if there are none."""
    found = concerned_rooms(matching, act)
    if not found:
        raise HousingError(_("%(reason)s Nothing was changed.") % {"reason": _NO_ROOM[act]})
    return found


def _drafts(form: DecideForm, placement: Placement) -> bool:
    """Return True if an act only joins a draft, which names everybody and is confirmed itself."""
    return placement.is_published and form.cleaned_data["act"] is Act.EMPTY


def _is_confirmed(form: DecideForm, found: Sequence[RoomCard]) -> bool:
    """Return True if exactly these numbers of rooms and people were confirmed."""
    people = sum(len(card.people) for card in found)
    return (form.cleaned_data["count"], form.cleaned_data["confirmed"]) == (len(found), people)


def _bulk_question(
    form: DecideForm, placement: Placement, found: Sequence[RoomCard], n_others: int
) -> Question:
    act = form.cleaned_data["act"]
    title, button, does = _BULK[act]
    people = [person for card in found for person in card.people]
    rooms = counted(len(found), "room")
    facts = {"number": len(people), "count": f"{len(people):,}"}
    sentences = [str(does % facts) if people else _("Nobody lives there.")]
    locked = sum(person.is_locked for person in people)
    if act is Act.EMPTY and locked:
        sentences.append(
            ngettext(
                "%(count)s of them is locked and stays.",
                "%(count)s of them are locked and stay.",
                locked,
            )
            % {"count": f"{locked:,}"}
        )
    elif act is Act.EMPTY and people:
        sentences.append(_("You can undo it in the history until somebody gets one of these beds."))
    if n_others:
        sentences.append(
            ngettext(
                "%(count)s other room that matches stays as it is.",
                "%(count)s other rooms that match stay as they are.",
                n_others,
            )
            % {"count": f"{n_others:,}"}
        )
    lines = [
        ChangeLine(person.number, card.room, None, "lose")
        for card in found
        for person in card.people
        if act in _TAKES_BEDS and not (act is Act.EMPTY and person.is_locked)
    ]
    fields = {
        "act": act,
        "scope": "matching",
        "count": len(found),
        "confirmed": len(people),
        "version": placement.version,
        "back": urlencode(_parameters(form)) or "view=rooms",
    }
    return Question(
        title=title.format(rooms=rooms),
        sentences=sentences,
        button=button.format(rooms=rooms),
        address=reverse("housing:placement-decide", args=[placement.pk]),
        fields=fields,
        lines=lines,
        is_danger=bool(lines),
        back=f"{reverse('housing:placement', args=[placement.pk])}?{fields['back']}",
        trail=trail_of(placement),
    )


def decide_or_draft(
    request: SignedInRequest, decision: Decision, options: dict[str, Any]
) -> PlacementEvent | None:
    """Carry out a decision, or add it to the user's draft if the placement is published."""
    if not options["placement"].is_published:
        return decision_make(decision=decision, **options)
    draft = draft_add(decision=decision, **options)
    toast(request, DRAFTED if draft is not None else DRAFT_GONE)
    return None


def _chosen_rooms(request: SignedInRequest, placement: Placement, form: DecideForm) -> list[int]:
    """Return the rooms that a form names, or all that the filters of its page show."""
    asked = form.cleaned_data
    if asked["scope"] is Scope.MATCHING:
        matching = rooms_matching(placement, _parameters(form), request.user)
        concerned = _concerned(matching, asked["act"])
        shown = matching if asked["confirmed"] is None else concerned
        if len(shown) != asked["count"]:
            raise PlacesChangedError(
                ngettext(
                    "%(count)s room matches now, not what the page said. Nothing was "
                    "changed; look at them as they are.",
                    "%(count)s rooms match now, not what the page said. Nothing was changed; "
                    "look at them as they are.",
                    len(shown),
                )
                % {"count": f"{len(shown):,}"}
            )
        return [card.room.pk for card in concerned]
    if not asked["room"]:
        raise HousingError(_("Choose a room first."))
    return list(asked["room"])


def _act(request: SignedInRequest, placement: Placement, form: DecideForm) -> PlacementEvent | None:
    """Carry out a decision about students or rooms; return None if it joined a draft."""
    act, students = form.cleaned_data["act"], form.cleaned_data["student"]
    options = {"user": request.user, "placement": placement, "version": form.seen}
    if act in _ROOM_HANDLERS and not students:
        return _ROOM_HANDLERS[act](request, _chosen_rooms(request, placement, form), options)
    numbers = students_typed(request.user, placement.cohort, students)
    if act is Act.MOVE:
        return _move(request, numbers, options, form.cleaned_data["to"])
    if act not in _STUDENT_HANDLERS:
        raise HousingError(NO_DECISION)
    return _STUDENT_HANDLERS[act](request, numbers, options)


def _move(
    request: SignedInRequest, numbers: list[int], options: Options, to: str
) -> PlacementEvent | None:
    room = _room(options["placement"], to)
    who = ""
    for student in (f"S-{number}" for number in numbers):
        both = _("%(students)s and %(other)s") % {"students": who, "other": student}
        who = both if who else student
    moves = [Move(number, room.pk) for number in numbers]
    words = ngettext("%(who)s moved to %(room)s.", "%(who)s moved to %(room)s.", len(numbers))
    return decide_or_draft(request, moving(moves, words % {"who": who, "room": room}), options)


def _swap(request: SignedInRequest, numbers: list[int], options: Options) -> PlacementEvent | None:
    if len(numbers) != 2:
        raise HousingError(NO_DECISION)
    one, other = (find_place(options["placement"], number) for number in numbers)
    if one is None or other is None:
        raise HousingError(_("Both students must be in this placement."))
    if one.room_id == other.room_id:
        raise HousingError(_("They share a room already. Name somebody of another room."))
    moves = [Move(numbers[0], other.room_id), Move(numbers[1], one.room_id)]
    sentence = _("S-%(first)s and S-%(second)s swapped rooms.") % {
        "first": numbers[0],
        "second": numbers[1],
    }
    return decide_or_draft(request, moving(moves, sentence), options)


def _empty_rooms(
    request: SignedInRequest, rooms: list[int], options: Options
) -> PlacementEvent | None:
    places = options["placement"].places.filter(room__in=rooms)
    numbers = list(places.filter(is_locked=False).values_list("number", flat=True))
    if not numbers and places.exists():
        raise HousingError(_("Everybody there is locked. Release them first."))
    return decide_or_draft(request, emptying(numbers, rooms), options)


def _lock_rooms(rooms: list[int], options: Options, *, locked: bool) -> PlacementEvent | None:
    places = options["placement"].places.filter(room__in=rooms)
    numbers = list(places.filter(is_locked=not locked).values_list("number", flat=True))
    if not numbers and places.exists():
        raise HousingError(_("They are locked already.") if locked else _("Nobody is locked."))
    return places_lock(numbers=numbers, locked=locked, rooms=rooms, **options)


_ROOM_HANDLERS: dict[Act, Handler] = {
    Act.ACCEPT: lambda _, rooms, options: rooms_accept(rooms=rooms, accepted=True, **options),
    Act.REOPEN: lambda _, rooms, options: rooms_accept(rooms=rooms, accepted=False, **options),
    Act.KEEP: lambda _, rooms, options: rooms_keep(rooms=rooms, kept=True, **options),
    Act.OPEN: lambda _, rooms, options: rooms_keep(rooms=rooms, kept=False, **options),
    Act.EMPTY: _empty_rooms,
    Act.LOCK: lambda _, rooms, options: _lock_rooms(rooms, options, locked=True),
    Act.RELEASE: lambda _, rooms, options: _lock_rooms(rooms, options, locked=False),
}
"""Acts on rooms by key."""
_STUDENT_HANDLERS: dict[Act, Handler] = {
    Act.LOCK: lambda _, numbers, options: places_lock(numbers=numbers, locked=True, **options),
    Act.RELEASE: lambda _, numbers, options: places_lock(numbers=numbers, locked=False, **options),
    Act.WITHDRAW: lambda request, numbers, options: decide_or_draft(
        request, withdrawing(numbers), options
    ),
    Act.EMPTY: lambda request, numbers, options: decide_or_draft(
        request, emptying(numbers), options
    ),
    Act.SWAP: _swap,
}
"""Acts on students by number on screen."""


def _room(placement: Placement, text: str) -> Room:
    """Return the room that a form names by hall and name, such as Alder 312."""
    words = " ".join(text.split()).casefold()
    found = [room for room in placement.buildings.rooms.all() if room.label.casefold() == words]
    if len(found) != 1:
        raise HousingError(
            _("“%(text)s” is no room of %(buildings)s.")
            % {"text": text.strip()[:40], "buildings": placement.buildings.name}
        )
    return found[0]


@require_safe
@staff_required
def choose(request: SignedInRequest, uuid: str) -> HttpResponse:
    """Show the other rooms for one student, as a dialog, or as a page without scripts.

    ``act`` names the act that a choice is for: move or swap now, give a bed to a waiting student,
    or be part of the proposed late changes.
    """
    placement = find_placement(request, uuid)
    act, sent = request.GET.get("act", ""), request.GET.get("student", "")
    context: dict[str, Any] = {
        "placement": placement,
        "act": act if act in CHOICES else CHOICES[0],
        "student": sent[:200],
        "query": request.GET.get("wanted", "")[:80],
        "opened": request.GET.get("room", ""),
        "kept": {name: request.GET[name][:80] for name in KEPT if request.GET.get(name)},
    }
    try:
        number = students_typed(request.user, placement.cohort, [sent])[0]
        context["student"] = f"S-{number}"
        context["choices"] = choices_of(PlacementRooms(placement), number, context["query"])
    except SeveralStudentsError as several:
        context["several"] = several
    except HousingError as problem:
        context["error"] = str(problem)
    is_part = request.htmx and request.htmx.target == "dialog-slot"
    template = "housing/_choose_dialog.html" if is_part else "housing/choose.html"
    return render(request, template, context)


@require_POST
@staff_required
def undo(request: SignedInRequest, uuid: str, event_id: int) -> HttpResponse:
    """Undo one act; if it changes a published placement, only after confirmation."""
    placement = find_placement(request, uuid)
    event = PlacementEvent.objects.filter(placement=placement, pk=event_id).first()
    form = ShownForm.typed(request)
    confirmed = None
    try:
        form.check()
        confirmed = form.cleaned_data["confirmed"]
        if event is None:
            raise HousingError(_("There is nothing to undo."))
        if event.kind == ActKind.ARRIVED and confirmed != len(event.after):
            check_undo(placement, event)
            return ask(request, _removal_question(placement, event), placement)
        concerned = beds_changed(event)
        if placement.is_published and concerned and confirmed != len(concerned):
            return ask(request, _undo_question(placement, event), placement)
        sentence = decision_undo(
            user=request.user, placement=placement, event=event, confirmed=confirmed or 0
        )
        toast(request, sentence)
    except Refusal as problem:
        toast(request, str(problem), error=True)
    if confirmed is not None and not request.htmx:
        return redirect("housing:history", placement.pk)
    return _answer(request, placement, form, event, is_whole=True)


def _removal_question(placement: Placement, event: PlacementEvent) -> Question:
    """Return the question before late arrivals are removed from their cohort."""
    numbers = sorted(row[0] for row in event.after)
    count = counted(len(numbers), "student")
    labels = " to ".join(f"S-{number}" for number in dict.fromkeys((numbers[0], numbers[-1])))
    return Question(
        title=_("Remove these late arrivals?"),
        sentences=[
            _(
                "This removes %(count)s (%(labels)s) with their answers from %(cohort)s and "
                "from the waiting lists of its placements. Requests that came with them go "
                "too."
            )
            % {"count": count, "labels": labels, "cohort": placement.cohort},
            _("To add them again, import them again. They get new numbers then."),
        ],
        button=_("Remove %(count)s") % {"count": count},
        address=reverse("housing:placement-undo", args=[placement.pk, event.pk]),
        fields={"confirmed": len(numbers)},
        is_danger=True,
        back=reverse("housing:history", args=[placement.pk]),
        trail=trail_of(placement),
    )


def _undo_question(placement: Placement, event: PlacementEvent) -> Question:
    lines = lines_of_undo(event)
    count = counted(len(lines), "student")
    return Question(
        title=_("Undo this late change?"),
        sentences=[
            _("“%(sentence)s”") % {"sentence": event.sentence},
            _("%(placement)s is published. This changes the published beds of %(count)s:")
            % {"placement": placement.name, "count": count},
        ],
        button=_("Change the beds of %(count)s") % {"count": count},
        address=reverse("housing:placement-undo", args=[placement.pk, event.pk]),
        fields={"confirmed": len(lines)},
        lines=lines,
        is_danger=any(line.is_loss for line in lines),
        back=reverse("housing:history", args=[placement.pk]),
        trail=trail_of(placement),
    )
