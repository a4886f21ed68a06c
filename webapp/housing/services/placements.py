"""Creating, computing and removing placements."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine import InvalidProblemError
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.surveys import cohort_survey, questionnaire_of
from webapp.common.free_names import free_name
from webapp.files.quota import with_fresh_count
from webapp.housing.errors import HousingError
from webapp.housing.models import BuildingList, Placement, VersionOrigin
from webapp.housing.rules import COUNTS, LAST_IN_ORDER, PlacementRules
from webapp.housing.services.locking import lock_placement
from webapp.housing.services.requests import requests_cut
from webapp.jobs.services import job_enqueue
from webapp.matching.models import ForbiddenPair, LearnedModel
from webapp.matching.selectors.models import learned_since

MAX_WORTH = 100.0  # maximum worth of a wish or a move (score)
MAX_SECONDS = 3600.0  # CPU time of one run
BYTES_A_STUDENT = 400  # storage for a version and a place


@with_fresh_count
@transaction.atomic
def placement_create(
    *,
    user: User,
    name: str,
    cohort: Cohort,
    buildings: BuildingList,
    model: LearnedModel,
    rules: PlacementRules,
    seed: int | None = None,
    seconds: float | None = None,
) -> Placement:
    """Create a placement and start computing it.

    The same students, rooms, rules and ``seed`` give the same placement. Without a seed, one is
    chosen and reported. ``seconds`` is the CPU time of the run, None for the usual one.

    Raises
    ------
    HousingError, QuotaError
        One sentence: the model is not learned, the questions differ, a column is unknown.
    """
    if not model.is_learned:
        raise HousingError(_("%(model)s is not learned yet.") % {"model": model.name})
    check_rules(rules, cohort)
    try:
        cohort_survey(cohort, questionnaire_of(model.questions))
    except InvalidProblemError as error:
        raise HousingError(str(error)) from error
    placement = Placement.objects.create(
        organisation=user.own_organisation,
        created_by=user,
        name=" ".join(name.split())[:120] or free_name(cohort.name, cohort.placements.all()),
        cohort=cohort,
        buildings=buildings,
        model=model,
        rules=rules.to_json(),
    )
    audit(user, "created", placement, cohort=cohort.name, buildings=buildings.name)
    return _compute(user, placement, rules, seconds, seed)


def check_rules(rules: PlacementRules, cohort: Cohort) -> None:
    """Raise HousingError for a rule with an unknown column or an invalid value."""
    named = [*rules.same, *rules.needs, *([rules.designation] if rules.designation else [])]
    unknown = [column for column in named if column not in cohort.constraints]
    if unknown:
        raise HousingError(
            _("%(unknown)s is not a rule column of %(cohort)s.")
            % {"unknown": unknown[0], "cohort": cohort.name}
        )
    if rules.mutual not in COUNTS or rules.one_sided not in COUNTS:
        raise HousingError(_("A request counts as a must, as a wish, or not at all."))
    if any(not 1 <= number <= LAST_IN_ORDER for _, number in rules.order):
        raise HousingError(
            _("The numbers of the order are from 1 to %(last_in_order)s.")
            % {"last_in_order": LAST_IN_ORDER}
        )
    for sentence, value in (
        (_("A wish counts from 0 to %(most)s."), rules.wish),
        (_("The first choice counts from 0 to %(most)s."), rules.preference),
        (_("A move counts from 0 to %(most)s."), rules.price),
        (_("Suite mates count from 0 to %(most)s."), rules.suite),
    ):
        if not 0 <= value <= MAX_WORTH:
            raise HousingError(sentence % {"most": f"{MAX_WORTH:.0f}"})


@with_fresh_count
@transaction.atomic
def placement_compute(
    *,
    user: User,
    placement: Placement,
    seconds: float | None = None,
    with_needs: bool = False,
    seed: int | None = None,
) -> Placement:
    """Compute rooms again around the locked students, as a new version beside the current rooms.

    The search starts from the rooms of a version that waits for a decision, or from the current
    rooms. Nothing changes before somebody puts the new version into force.

    Parameters
    ----------
    seconds : CPU time of the run; None for the usual one.
    with_needs : whether every column of needs of the cohort counts from now on.
    seed : seed of the run; None for a new one, which is reported.

    Raises HousingError while a job is running, or if the placement is published: late changes are
    proposed instead.
    """
    placement = lock_placement(placement)
    check_rooms_only(placement)
    if placement.is_published:
        raise HousingError(
            _("%(placement)s is published. Propose late changes instead.")
            % {"placement": placement.name}
        )
    if seconds is not None and not 0 < seconds <= MAX_SECONDS:
        raise HousingError(
            _("A run takes up to %(max_seconds)s minutes.")
            % {"max_seconds": f"{MAX_SECONDS / 60:.0f}"}
        )
    rules = PlacementRules.from_json(placement.rules)
    if with_needs:
        rules = replace(rules, needs=tuple(dict.fromkeys([*rules.needs, *placement.cohort.needs])))
        audit(user, "counted needs", placement, columns=list(rules.needs))
    return _compute(user, placement, rules, seconds, seed)


def _compute(
    user: User,
    placement: Placement,
    rules: PlacementRules,
    seconds: float | None = None,
    seed: int | None = None,
) -> Placement:
    if placement.is_running:
        raise HousingError(_("Rooms are being computed right now. Wait until that is done."))
    parameters: dict[str, Any] = {"placement": str(placement.pk), "rules": rules.to_json()}
    if seconds is not None:
        parameters["seconds"] = seconds
    placement.job = job_enqueue(
        user=user,
        kind="housing.place",
        parameters=parameters,
        seed=seed,
        title=placement.name,
        stores=BYTES_A_STUDENT * placement.cohort.n_students,
    )
    placement.clashes = []
    placement.save(update_fields=["job", "clashes"])
    return placement


def check_rooms_only(placement: Placement) -> None:
    """Raise HousingError for a placement in pairs, which is computed by other rules."""
    if placement.is_pairs:
        raise HousingError(
            _(
                "%(placement)s holds pairs without rooms. Its rules are those of pairs, and "
                "its pairs are computed again on its page."
            )
            % {"placement": placement.name}
        )


@with_fresh_count
@transaction.atomic
def rules_change(
    *, user: User, placement: Placement, rules: PlacementRules, seed: int | None = None
) -> Placement:
    """Compute rooms under other rules; the placement takes the rules together with such rooms."""
    placement = lock_placement(placement)
    check_rooms_only(placement)
    if placement.is_published:
        raise HousingError(
            _("%(placement)s is published. Copy it to try other rules.")
            % {"placement": placement.name}
        )
    check_rules(rules, placement.cohort)
    if not placement.is_computed:
        placement.rules = rules.to_json()
        placement.save(update_fields=["rules"])
    audit(user, "changed rules", placement, rules=rules.to_json())
    return _compute(user, placement, rules, seed=seed)


def rules_tried(placement: Placement) -> PlacementRules:
    """Return the rules of a placement's last run, or the placement's own before the first run."""
    job = placement.job
    tried = job.parameters.get("rules") if job is not None else None
    return PlacementRules.from_json(tried or placement.rules)


@with_fresh_count
@transaction.atomic
def placement_copy(
    *,
    user: User,
    placement: Placement,
    rules: PlacementRules,
    model: LearnedModel | None = None,
    seed: int | None = None,
) -> Placement:
    """Create another scenario of the same cohort and rooms under other rules, or another model.

    Under the same rules, model and seed it gets the same rooms again.
    """
    check_rooms_only(placement)
    check_rules(rules, placement.cohort)
    copy = Placement.objects.create(
        organisation=user.own_organisation,
        created_by=user,
        name=free_name(placement.name, placement.cohort.placements.all()),
        cohort=placement.cohort,
        buildings=placement.buildings,
        model=model or placement.model,
        rules=rules.to_json(),
    )
    audit(user, "created", copy, copied_from=placement.name)
    return _compute(user, copy, rules, seed=seed)


def placement_relearn(*, user: User, placement: Placement) -> Placement:
    """Create a scenario with learned weights from a placement whose weights staff set.

    Raises HousingError if there is no learned model with the same questions.
    """
    model = learned_since(placement.model)
    if model is None:
        raise HousingError(_("No model was learned since that asks the same questions."))
    rules = PlacementRules.from_json(placement.rules)
    return placement_copy(user=user, placement=placement, rules=rules, model=model)


def placement_clash(*, placement_id: UUID, clashes: Sequence[dict[str, Any]]) -> None:
    """Store the contradictions that made a computation impossible, for the page to list.

    Each has a ``sentence`` and the ``requests`` and ``nevers`` that take part, as pairs of numbers
    on screen, and the ``locks``, as numbers.
    """
    Placement.objects.filter(pk=placement_id).update(clashes=list(clashes))


def left_out_of(placement: Placement) -> list[dict[str, Any]]:
    """Return the requests that the last rooms left out because other rules contradict them.

    They are those of a version that waits for a decision, or of the rooms in force, in the form of
    ``clashes``.
    """
    last = placement.versions.filter(origin=VersionOrigin.RUN).defer("rows").first()
    figures = last.figures if last is not None and last.is_waiting else placement.figures
    return list(figures.get("left_out", ()))


@with_fresh_count
@transaction.atomic
def clashes_solve(
    *, user: User, placement: Placement, clash: int | None, leave: str = "requests"
) -> str:
    """Leave something out of one clash, or of all (None), and place again; return a sentence.

    Parameters
    ----------
    leave : "requests", "locks" (students are released) or "nevers" (they may share a room again).

    Raises HousingError if nothing of the kind takes part: then only the rules or the beds can
    change.
    """
    placement = lock_placement(placement)
    if placement.is_published:
        raise HousingError(
            _("%(placement)s is published. Propose late changes instead.")
            % {"placement": placement.name}
        )
    clashes = placement.clashes or left_out_of(placement)
    chosen = clashes if clash is None else clashes[clash : clash + 1]
    out = [found for entry in chosen for found in entry.get(leave, ())]
    if not out or leave not in ("requests", "locks", "nevers"):
        raise HousingError(
            _("Nothing of this kind takes part any more. Change the rules, or add beds.")
        )
    if leave == "requests":
        requests_cut(user=user, cohort=placement.cohort, pairs=[(a, b) for a, b in out])
        words = ngettext(
            "%(count)s request left out.", "%(count)s requests left out.", len(out)
        ) % {"count": f"{len(out):,}"}
    elif leave == "locks":
        placement.places.filter(number__in=out).update(is_locked=False)
        audit(user, "released", placement, students=[f"S-{number}" for number in out][:50])
        words = ngettext(
            "%(count)s student released.", "%(count)s students released.", len(out)
        ) % {"count": f"{len(out):,}"}
    else:
        nevers_remove(user=user, cohort=placement.cohort, pairs=[(a, b) for a, b in out])
        words = ngettext(
            "%(count)s pair may share a room again.",
            "%(count)s pairs may share a room again.",
            len(out),
        ) % {"count": f"{len(out):,}"}
    _compute(user, placement, rules_tried(placement))
    return _("%(done)s The rooms are computed again.") % {"done": words}


def nevers_remove(*, user: User, cohort: Cohort, pairs: Sequence[tuple[int, int]]) -> None:
    """Remove keep-apart rules, so that these students may share a room again."""
    for pair in pairs:
        ForbiddenPair.objects.filter(
            cohort=cohort, placement=None, first__number__in=pair, second__number__in=pair
        ).delete()
    audit(user, "let share a room", cohort, pairs=[f"S-{a} + S-{b}" for a, b in pairs][:50])


@transaction.atomic
def placement_rename(*, user: User, placement: Placement, name: str) -> None:
    """Rename a placement."""
    name = " ".join(name.split())[:120]
    if not name:
        raise HousingError(_("The placement needs a name."))
    audit(user, "renamed", placement, to=name)
    Placement.objects.filter(pk=placement.pk).update(name=name)


@transaction.atomic
def placement_delete(*, user: User, placement: Placement, typed_name: str) -> None:
    """Remove a placement with its versions and history, if its name was typed.

    Raises HousingError while it is published.
    """
    if typed_name.strip() != placement.name:
        raise HousingError(_("The name does not match. Nothing was removed."))
    placement = lock_placement(placement)
    if placement.is_published:
        raise HousingError(
            _("%(placement)s is published. Withdraw the publication first. Nothing was removed.")
            % {"placement": placement.name}
        )
    audit(user, "removed", placement, people=placement.places.count(), pairs=placement.n_pairs)
    placement.delete()
