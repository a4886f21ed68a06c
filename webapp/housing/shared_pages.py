"""Additions of buildings and placements to the rail, the home page and the search."""

import re
from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Student
from webapp.common import hooks
from webapp.common.formats import counted
from webapp.common.listing import light
from webapp.common.selectors import owned_by
from webapp.housing import demonstration
from webapp.housing.models import AcceptedRoom, BuildingList, Place, PlacedPair, Placement, Room
from webapp.housing.pairs.table import being_decided, pairs_of
from webapp.housing.selectors.needs import students_with_needs
from webapp.translation.lazy import gettext_lazy

MAX_HITS = 10
# Whole words only: the housing system's A-1376 is probably another student than S-1376.
_IDS = re.compile(r"(?<![^\s,+&])(?:s-?)?(\d{3,8})(?![^\s,+&])", re.IGNORECASE)
AT_HOME = 5


def register() -> None:
    """Register rail lines, next steps, facts and search."""
    hooks.register_navigation(
        hooks.NavigationItem(
            "Housing",
            gettext_lazy("Buildings"),
            "building-2",
            "housing:building-lists",
            order=15,
            counted=BuildingList,
        )
    )
    hooks.register_navigation(
        hooks.NavigationItem(
            "Housing",
            gettext_lazy("Placements"),
            "bed-double",
            "housing:placements",
            order=40,
            counted=Placement,
        )
    )
    hooks.register_demonstration(demonstration.load, order=30)
    hooks.register_home_panel(hooks.HomePanel("housing/_home_panel.html", home_panel, order=5))
    hooks.register_cohort_progress(cohort_progress)
    hooks.register_cohort_contents(cohort_contents)
    hooks.register_home_fact(home_fact)
    hooks.register_next_steps(next_steps)
    hooks.register_search(search)


def home_fact(user: User) -> str:
    """Return facts for the home page, such as '1 placement published'."""
    facts = []
    published = owned_by(Placement, user).filter(published_at__isnull=False).count()
    if published:
        facts.append(
            ngettext("%(count)s placement published", "%(count)s placements published", published)
            % {"count": f"{published:,}"}
        )
    deciding = being_decided(user).count()
    if deciding:
        facts.append(
            ngettext(
                "%(count)s placement in pairs being decided",
                "%(count)s placements in pairs being decided",
                deciding,
            )
            % {"count": f"{deciding:,}"}
        )
    return ", ".join(facts)


def cohort_progress(keys: Collection[Any]) -> dict[Any, hooks.Progress]:
    """Return how far each cohort is in its published or last placement: rooms, or decided pairs."""
    shown: dict[Any, Placement] = {}
    placements = Placement.objects.filter(cohort__in=keys, revision__gt=0)
    for placement in light(placements).order_by("updated_at"):
        known = shown.get(placement.cohort_id)
        if known is None or placement.is_published or not known.is_published:
            shown[placement.cohort_id] = placement
    counts = {
        row["placement"]: row
        for row in Place.objects.filter(placement__in=shown.values(), has_left=False)
        .order_by()
        .values("placement")
        .annotate(people=Count("pk"), placed=Count("room"))
    }
    found = {}
    for cohort, placement in shown.items():
        row = counts.get(placement.pk, {"people": 0, "placed": 0})
        state = ", " + _("published") if placement.is_published else ""
        if placement.is_pairs:
            pairs = counted(placement.n_pairs, "pair")
            found[cohort] = hooks.Progress(
                _("%(decided)s of %(pairs)s decided%(state)s")
                % {"decided": f"{placement.n_decided:,}", "pairs": pairs, "state": state},
                placement.n_decided,
                placement.n_pairs,
                reverse("housing:placement", args=[placement.pk]),
                stage=3 if placement.is_published else 2,
            )
            continue
        found[cohort] = hooks.Progress(
            _("%(placed)s of %(people)s have a room%(state)s")
            % {"placed": f"{row['placed']:,}", "people": f"{row['people']:,}", "state": state},
            row["placed"],
            row["people"],
            reverse("housing:placement", args=[placement.pk]),
            stage=3,
        )
    return found


def cohort_contents(cohort: Cohort) -> Iterable[hooks.CohortContent]:
    """Return the placements, requests, choices and needs that are removed with a cohort."""
    for placement in light(cohort.placements.all()):
        placed = placement.places.with_bed().count()
        rooms = counted(placed, "student")
        what = _("pairs") if placement.is_pairs else _("rooms")
        acts = counted(placement.events.count(), "act")
        if placement.is_published:
            address = reverse("housing:placement", args=[placement.pk])
            yield hooks.CohortContent(
                _(
                    "the published %(what)s of %(rooms)s (%(placement)s), with %(acts)s of "
                    "its history"
                )
                % {"what": what, "rooms": rooms, "placement": placement.name, "acts": acts},
                address,
            )
        else:
            yield hooks.CohortContent(
                _(
                    "the %(what)s of %(rooms)s in the draft %(placement)s, with %(acts)s of "
                    "its history"
                )
                % {"what": what, "rooms": rooms, "placement": placement.name, "acts": acts}
            )
    for count, noun in (
        (cohort.requests.count(), "request"),
        (cohort.preferences.count(), "choice of hall"),
        (students_with_needs(cohort, cohort.needs), "student with needs"),
    ):
        if count:
            yield hooks.CohortContent(counted(count, noun))


def home_panel(user: User) -> dict[str, Any]:
    """Return the housing progress of the cohorts: placed, decided, published."""
    placements = light(owned_by(Placement, user), "cohort").filter(revision__gt=0)
    latest: dict[Any, Placement] = {}
    for placement in placements.order_by("-published_at", "-updated_at")[:40]:
        known = latest.setdefault(placement.cohort_id, placement)
        if placement.is_published and not known.is_published:
            latest[placement.cohort_id] = placement
    shown = list(latest.values())[:AT_HOME]
    lived_in = dict(
        Place.objects.with_bed()
        .filter(placement__in=[one for one in shown if not one.is_pairs])
        .order_by()
        .values_list("placement")
        .annotate(count=Count("room", distinct=True))
    )
    accepted = dict(
        AcceptedRoom.objects.filter(placement__in=shown)
        .values_list("placement")
        .annotate(count=Count("pk"))
    )
    return {"cohorts": [_progress(p, lived_in.get(p.pk, 0), accepted.get(p.pk, 0)) for p in shown]}


def _progress(placement: Placement, n_rooms: int, n_accepted: int) -> dict[str, Any]:
    decided = ngettext(
        "%(n_accepted)s of %(count)s room accepted",
        "%(n_accepted)s of %(count)s rooms accepted",
        n_rooms,
    ) % {"n_accepted": f"{n_accepted:,}", "count": f"{n_rooms:,}"}
    what = "room"
    if placement.is_pairs:
        decided = ngettext(
            "%(decided)s of %(count)s pair decided",
            "%(decided)s of %(count)s pairs decided",
            placement.n_pairs,
        ) % {"decided": f"{placement.n_decided:,}", "count": f"{placement.n_pairs:,}"}
        what = "roommate"
    state = "published" if placement.is_published else _("not published yet")
    waiting = placement.n_people - placement.n_placed
    words = [
        state,
        decided,
        *(
            [_("%(waiting)s without a %(what)s") % {"waiting": f"{waiting:,}", "what": what}]
            if waiting
            else []
        ),
    ]
    sentence = ", ".join(words)
    return {"placement": placement, "words": sentence[:1].upper() + sentence[1:] + "."}


def next_steps(user: User) -> Iterable[hooks.NextStep]:
    """Return the placements that wait for review and publication."""
    if not user.is_staff_member:
        return
    yield from _decide_steps(user)
    waiting = light(owned_by(Placement, user)).filter(
        published_at=None, revision__gt=0, is_pairs=False
    )
    published = Placement.objects.filter(published_at__isnull=False, cohort=OuterRef("cohort"))
    same_term = Exists(published.filter(term=OuterRef("term")))
    without_term = Exists(published.filter(term=None))
    for placement in waiting.exclude(same_term | Q(term=None) & without_term)[:2]:
        yield hooks.NextStep(
            _("Look at the rooms of %(placement)s") % {"placement": placement.name},
            _("Rooms are proposed, and nothing is published yet."),
            reverse("housing:placement", args=[placement.pk]),
            _("Open the rooms"),
            icon="bed-double",
            order=6,
        )


def _decide_steps(user: User) -> Iterable[hooks.NextStep]:
    for placement in being_decided(user)[:2]:
        decided = placement.n_decided
        rest = counted(placement.n_open, "pair")
        if decided:
            rest = ngettext("the last pair", "the last %(count)s pairs", placement.n_open) % {
                "count": f"{placement.n_open:,}"
            }
        yield hooks.NextStep(
            _("Decide %(pairs)s of %(placement)s") % {"pairs": rest, "placement": placement.name},
            _(
                "%(decided)s of %(pairs)s are decided. The rest are sorted so that the least "
                "certain come first."
            )
            % {"decided": f"{decided:,}", "pairs": f"{placement.n_pairs:,}"},
            reverse("housing:placement", args=[placement.pk]),
            _("Continue deciding") if decided else _("Start deciding"),
            icon="list-checks",
            order=5,
        )


def search(user: User, query: str) -> Iterable[hooks.SearchHit]:
    """Find building lists, placements and rooms by name, and pairs by one or two ids on screen."""
    for buildings in owned_by(BuildingList, user).filter(name__icontains=query)[:MAX_HITS]:
        address = reverse("housing:buildings", args=[buildings.pk])
        yield hooks.SearchHit(buildings.name, _("Building list"), address, "building-2")
    for placement in light(owned_by(Placement, user)).filter(name__icontains=query)[:MAX_HITS]:
        address = reverse("housing:placement", args=[placement.pk])
        icon = "link" if placement.is_pairs else "bed-double"
        yield hooks.SearchHit(placement.name, _("Placement"), address, icon)
    rooms = Room.objects.filter(buildings__in=owned_by(BuildingList, user), name__iexact=query)
    for room in rooms.select_related("buildings")[:MAX_HITS]:
        address = reverse("housing:buildings", args=[room.buildings_id])
        yield hooks.SearchHit(
            room.label,
            _("Room of %(buildings)s") % {"buildings": room.buildings.name},
            f"{address}?q={room.name}",
            "bed-double",
        )
    yield from _pairs_found(user, query)


def _pairs_found(user: User, query: str) -> Iterable[hooks.SearchHit]:
    numbers = [int(text) for text in _IDS.findall(query)]
    if not 1 <= len(numbers) <= 2:
        return
    pairs = PlacedPair.objects.filter(placement__organisation_id=user.organisation_id or 0)
    cohorts = pairs_of(user).order_by().values("cohort")
    for number in numbers:
        # By the few students of this number: an organisation has hundreds of thousands of pairs.
        students = Student.objects.filter(cohort__in=cohorts, number=number)
        keys = list(students.order_by().values_list("pk", flat=True))
        pairs = pairs.filter(Q(first__in=keys) | Q(second__in=keys))
    for pair in light(pairs, "placement")[:MAX_HITS]:
        address = reverse("housing:placement", args=[pair.placement_id])
        detail = _("Pair of %(placement)s, %(get_state_display)s") % {
            "placement": pair.placement.name,
            "get_state_display": pair.get_state_display().lower(),
        }
        yield hooks.SearchHit(pair.label, detail, f"{address}?tab=all&pair={pair.pk}", "link")
