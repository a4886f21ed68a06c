"""Acts on groups of requests: splitting groups, closing circles, leaving impossible ones out.

An act names a group by its members. If the requests changed since the sender saw the group, no
group has exactly these members, and the act is refused.
"""

from collections.abc import Collection, Sequence
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.common.formats import counted
from webapp.housing.errors import HousingError
from webapp.housing.request_graph import Pair
from webapp.housing.selectors.requests import graph_of, impossible_of, splits_of
from webapp.housing.services.requests import requests_close_circle, requests_cut
from webapp.translation.lazy import gettext_lazy

CHANGED = gettext_lazy(
    "These requests were settled or changed meanwhile. Nothing was changed; look at them "
    "as they are now."
)


@transaction.atomic
def groups_split(
    *,
    user: User,
    cohort: Cohort,
    members: Collection[int] | None = None,
    student: int | None = None,
) -> str:
    """Split groups of mutual requests that fit no room, as proposed; return what was done.

    ``members`` names one group by all its students, ``student`` by one of them; without both,
    every group is split. Requests between the parts are left out.

    Raises HousingError if there is no such group.
    """
    _lock(cohort)
    splits = splits_of(cohort)
    sets = [frozenset(split.members) for split in splits]
    if student is not None:
        chosen = [split for split, all_of in zip(splits, sets, strict=True) if student in all_of]
    else:
        chosen = _of_members(splits, sets, members)
    if not chosen:
        raise HousingError(_("No such group is too large for every room."))
    pairs = [pair for split in chosen for pair in split.cut]
    requests_cut(user=user, cohort=cohort, pairs=pairs)
    return _("%(groups)s split; %(requests)s left out.") % {
        "groups": counted(len(chosen), "group"),
        "requests": counted(len(pairs), "request"),
    }


@transaction.atomic
def circles_close(*, user: User, cohort: Cohort, members: Collection[int] | None = None) -> str:
    """Count the requests of one circle, or of all circles, as mutual; return what was done.

    Raises HousingError if no circle has exactly these members.
    """
    _lock(cohort)
    circles = graph_of(cohort).circles
    closed = _of_members(circles, [members_of(circle) for circle in circles], members)
    made = sum(requests_close_circle(user=user, cohort=cohort, circle=circle) for circle in closed)
    return ngettext(
        "%(count)s request counted as asked back.",
        "%(count)s requests counted as asked back.",
        made,
    ) % {"count": f"{made:,}"}


@transaction.atomic
def impossible_leave_out(
    *, user: User, cohort: Cohort, members: Collection[int] | None = None
) -> str:
    """Leave out the mutual requests of one set of students whom no room takes, or of all sets.

    The rules are those of the published placement, or of the one that changed last. Returns what
    was done; raises HousingError if there is no such set.
    """
    _lock(cohort)
    wishes = impossible_of(cohort)
    chosen = _of_members(wishes, [frozenset(wish.members) for wish in wishes], members)
    pairs = [pair for wish in chosen for pair in wish.cut]
    if not pairs:
        raise HousingError(_("Every group that asked for each other fits into a room."))
    requests_cut(user=user, cohort=cohort, pairs=pairs)
    return ngettext(
        "%(count)s mutual request left out.", "%(count)s mutual requests left out.", len(pairs)
    ) % {"count": f"{len(pairs):,}"}


def members_of(circle: Sequence[Pair]) -> frozenset[int]:
    """Return the students of a circle of requests."""
    return frozenset(number for pair in circle for number in pair)


def _of_members(
    groups: Sequence[Any], sets: Sequence[frozenset[int]], members: Collection[int] | None
) -> list[Any]:
    """Return the one group of exactly these students, or all groups."""
    if members is None:
        return list(groups)
    wanted = frozenset(members)
    found = [group for group, all_of in zip(groups, sets, strict=True) if all_of == wanted]
    if not found:
        raise HousingError(CHANGED)
    return found


def _lock(cohort: Cohort) -> None:
    """Lock the cohort, so that its requests are read and changed in one step."""
    Cohort.objects.select_for_update().get(pk=cohort.pk)
