"""Proposals of earlier versions become placements in pairs: nothing is lost, and undo goes on.

The database goes back and is upgraded once for all tests; every test is rolled back.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import override_settings
from django.urls import reverse
from django.utils import timezone

from tests.webapp.conftest import make_user
from tests.webapp.factories.university import Past, check_agrees, cohort_of, learned_from
from tests.webapp.roles import Page
from webapp.accounts.models import Organisation, Role, User
from webapp.cohorts.models import Cohort, LateArrivals
from webapp.housing.errors import HousingError
from webapp.housing.models import (
    AcceptedRoom,
    ActKind,
    BuildingList,
    Place,
    PlacedPair,
    Placement,
    PlacementEvent,
)
from webapp.housing.services.placements import placement_delete
from webapp.housing.services.undo import decision_undo
from webapp.jobs.models import Job
from webapp.matching.models import (
    DecisionEvent,
    ForbiddenPair,
    LearnedModel,
    LockRule,
    Proposal,
    ProposedPair,
)

BEFORE = [("housing", "0007_need_meanings"), ("matching", "0005_counts_of_pairs")]
N_PAIRS = 12


def upgrade() -> None:
    """Migrate to the newest version."""
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def go_back() -> Any:
    """Migrate to the last version with proposals; return its models."""
    executor = MigrationExecutor(connection)
    executor.migrate(BEFORE)
    # Applications that came later and stand on newer tables went back as well.
    loader = MigrationExecutor(connection).loader
    return loader.project_state(list(loader.applied_migrations)).apps


def image(pair: Any, **changes: Any) -> dict[str, Any]:
    """Return a row of a decision, as versions with proposals wrote it."""
    names = (
        "pk first_id second_id first_number second_number score probability multiple doubt "
        "allowed doubt_share chips weak state version decided_by"
    )
    return {name: getattr(pair, name) for name in names.split()} | {"decided_at": None} | changes


class Stored:
    """A proposal as the last version with proposals stored it, with every kind of decision."""

    def __init__(self, old: Any, cohort: Cohort, model: LearnedModel, user: User) -> None:
        self.old, self.cohort, self.user = old, cohort, user
        self.students = list(cohort.students.order_by("number"))
        alike = sorted(self.students, key=lambda one: (one.attributes["Gender"], one.number))
        self.couples = [
            (a, b)
            for a, b in zip(alike[::2], alike[1::2], strict=True)
            if a.attributes == b.attributes
        ][:N_PAIRS]
        now = timezone.now()
        self.key, self.arrays = uuid4(), uuid4()
        own = {"organisation_id": user.organisation_id, "created_by_id": user.pk}
        job = old.get_model("jobs", "Job").objects.create(
            organisation_id=user.organisation_id, created_by_id=user.pk, kind="roommates.propose",
            title="Pairs", state="succeeded", seed=1,
            parameters={"proposal": str(self.key), "arrays": str(self.arrays)},
        )  # fmt: skip
        self.job = job.pk
        self.proposal = old.get_model("matching", "Proposal").objects.create(
            pk=self.key, **own, name="Pairs of the year", cohort_id=cohort.pk, model_id=model.pk,
            job_id=job.pk, same=["Gender"], singles=[self.students[-1].number], revision=2,
            arrays=self.arrays, best_at=now, changes=3, n_pairs=N_PAIRS, n_open=N_PAIRS - 6,
            figures={"weight": 3.5, "upper_bound": 3.6, "gap": 0.1, "n_single": 8},
        )  # fmt: skip
        Pair = old.get_model("matching", "ProposedPair")
        self.pairs = [
            Pair.objects.create(
                proposal_id=self.key, first_id=a.pk, second_id=b.pk, first_number=a.number,
                second_number=b.number, score=k / 10, probability=0.2, multiple=3.0, doubt=4.0,
                allowed=15.0, doubt_share=0.25, chips=[["Sleep", True]], weak="|3|",
            )
            for k, (a, b) in enumerate(self.couples)
        ]  # fmt: skip

    def decide(self, decision: str, pair: Any, state: str, **forbidden: Any) -> Any:
        """Record a decision about one pair, as its version did."""
        before = image(pair)
        pair.state, pair.version = state, pair.version + 1
        pair.decided_by, pair.decided_at = "bob", timezone.now()
        pair.save()
        rules = {"removed": [], "added": [], **forbidden}
        return self.event(
            decision, f"{decision} {pair.pk}.", [before], [pair], {"forbidden": rules}
        )

    def event(
        self, decision: str, sentence: str, before: list[Any], pairs: list[Any], after: Any,
        **changes: Any,
    ) -> Any:  # fmt: skip
        moves = int(decision in ("never", "swap", "reject"))
        return self.old.get_model("matching", "DecisionEvent").objects.create(
            **{
                "proposal_id": self.key, "revision": 2, "user_id": self.user.pk,
                "decision": decision, "sentence": sentence,
                "before": {"pairs": before, "changes": moves},
                "after": {"versions": {str(p.pk): p.version for p in pairs}, **after}, **changes,
            }
        )  # fmt: skip

    def forbid(self, pair: Any, *, is_never: bool) -> None:
        self.old.get_model("matching", "ForbiddenPair").objects.create(
            cohort_id=self.cohort.pk, proposal_id=None if is_never else self.key,
            first_id=pair.first_id, second_id=pair.second_id, created_by="bob",
        )  # fmt: skip

    def swap(self, one: Any, other: Any) -> Any:
        """Let the second students of two pairs change places."""
        before = [image(one), image(other)]
        keys = (one.second_id, one.second_number), (other.second_id, other.second_number)
        for pair in (one, other):
            pair.delete()
        rows = []
        for row, (key, number) in zip(before, reversed(keys), strict=True):
            values = {**row, "second_id": key, "second_number": number, "state": "swapped"}
            values |= {"version": row["version"] + 1, "decided_by": "bob"}
            values.pop("decided_at")
            rows.append(
                self.old.get_model("matching", "ProposedPair").objects.create(
                    proposal_id=self.key, **values
                )
            )
        rules = {"forbidden": {"removed": [], "added": []}}
        return self.event("swap", "Swapped.", before, rows, rules)


def stored(old: Any, cohort: Cohort, model: LearnedModel, user: User) -> Stored:
    """Store a proposal with decisions of each kind, a lock of another pair and an undone act."""
    made = Stored(old, cohort, model, user)
    a, b, c, d, e, f, g, *_ = made.pairs
    made.event("accept", "Of an earlier computation.", [image(a)], [a], {}, revision=1)
    undone = made.event("lock", "Undone already.", [image(a)], [a], {"forbidden": {}})
    undone.undone_at = timezone.now()
    undone.save()
    made.decide("accept", a, "accepted")
    made.decide("lock", b, "locked")
    made.forbid(c, is_never=False)
    made.decide("reject", c, "rejected", added=[[False, c.first_id, c.second_id]])
    made.forbid(d, is_never=True)
    made.decide("never", d, "never", added=[[True, d.first_id, d.second_id]])
    made.swap(e, f)
    old.get_model("matching", "LockRule").objects.create(
        proposal_id=made.key, first_id=g.first_id, second_id=made.students[-2].pk, created_by="bob"
    )
    return made


@dataclass
class Upgraded:
    """Proposals as an earlier version stored them, and what they were before the upgrade."""

    user: User
    late: Stored  # students arrived late in its cohort, which also has a proposal not computed
    waiting: UUID
    arrived: Any  # the student and the arrival
    plain: Stored
    model: LearnedModel  # that of the plain one alone
    gapped: Stored  # its last pair and its last act were removed
    last_keys: tuple[int, int]  # of that pair and that act
    pairs: dict[int, Any]
    event_keys: set[int]
    after_the_failure: list[UUID]  # placements when the first upgrade had died
    media: Path


@pytest.fixture(scope="module")
def upgraded(
    django_db_setup: None,
    django_db_blocker: Any,
    past: Past,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Upgraded]:
    """Go back to the last version with proposals, store some, and upgrade; the first try dies."""
    with django_db_blocker.unblock():
        try:
            yield from _upgraded(past, tmp_path_factory.mktemp("media"))
        finally:
            upgrade()
            call_command("flush", verbosity=0, interactive=False)


def _upgraded(past: Past, media: Path) -> Iterator[Upgraded]:
    with override_settings(MEDIA_ROOT=media):
        user = make_user("bob", Organisation.objects.create(name="Northfield"), Role.STAFF)
        returning = cohort_of(user, past, 0, "Returning 2024", with_pairs=True)
        model, model_of_plain = (learned_from(user, past, returning) for _ in range(2))
        cohorts = [cohort_of(user, past, 2, f"First-years {k}", with_pairs=False) for k in range(3)]
    old = go_back()
    late = stored(old, cohorts[0], model, user)
    waiting = old.get_model("matching", "Proposal").objects.create(
        organisation_id=user.organisation_id, name="Not computed", cohort_id=cohorts[0].pk,
        model_id=model.pk, same=[],
    )  # fmt: skip
    student = cohorts[0].students.create(number=2000, original_id="late", answers=[], attributes={})
    arrivals = LateArrivals.objects.create(
        cohort=cohorts[0], source="late.csv", first_number=2000, last_number=2000
    )
    plain = stored(old, cohorts[1], model_of_plain, user)
    gapped = stored(old, cohorts[2], model, user)
    last = gapped.pairs[-1].pk
    events = old.get_model("matching", "DecisionEvent").objects
    gone = gapped.decide("accept", gapped.pairs[-1], "accepted").pk
    events.filter(pk=gone).delete()
    old.get_model("matching", "ProposedPair").objects.filter(pk=last).delete()
    made = Upgraded(
        user=user, late=late, waiting=waiting.pk, arrived=(student, arrivals), plain=plain,
        model=model_of_plain, gapped=gapped, last_keys=(last, gone),
        pairs={one.pk: one for one in old.get_model("matching", "ProposedPair").objects.all()},
        event_keys=set(events.values_list("pk", flat=True)), after_the_failure=[], media=media,
    )  # fmt: skip
    step = import_module("webapp.housing.migrations.0009_copy_proposals")

    def dies(apps: Any) -> None:
        raise RuntimeError("the power went")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step, "rename_parameters", dies)
        with pytest.raises(RuntimeError, match="the power went"):
            upgrade()
    made.after_the_failure = list(Placement.objects.values_list("pk", flat=True))
    upgrade()
    yield made


@pytest.fixture(autouse=True)
def files_of_models(upgraded: Upgraded, media_root: Path) -> None:
    """Give each test a copy of the files, which it may remove."""
    shutil.copytree(upgraded.media, media_root, dirs_exist_ok=True)


pytestmark = pytest.mark.django_db


def test_a_proposal_becomes_a_placement_of_its_key(upgraded: Upgraded) -> None:
    made = upgraded.late
    placement = Placement.objects.get(pk=made.key)
    assert (placement.name, placement.same, placement.revision) == (
        "Pairs of the year",
        ["Gender"],
        2,
    )
    assert placement.is_pairs
    assert placement.arrays == made.arrays
    assert placement.changes == 3
    assert placement.singles == [made.students[-1].number]
    assert placement.created_at == made.proposal.created_at
    assert placement.figures["weight"] == 3.5
    assert placement.current.number == 1
    check_agrees(placement)
    # Every pair has its key, its figures and its decision.
    names = "first_id second_id score probability state version decided_by decided_at chips weak"
    pairs = {key: pair for key, pair in upgraded.pairs.items() if pair.proposal_id == made.key}
    assert len(pairs) == N_PAIRS
    for pair in placement.pairs.all():
        before = pairs.pop(pair.pk)
        for name in names.split():
            assert getattr(pair, name) == getattr(before, name), name
    assert not pairs
    # Its rules hold, and its list of rooms is seen nowhere.
    assert list(placement.forbidden.values_list("first", flat=True)) == [made.pairs[2].first_id]
    assert placement.locks.count() == 1
    assert not BuildingList.objects.exists()
    student, arrivals = upgraded.arrived
    assert placement.places.get(student=student.pk).room is None
    event = placement.events.get(kind=ActKind.ARRIVED)
    assert event.details == {"arrival": arrivals.pk}
    assert Job.objects.get(pk=made.job).parameters["placement"] == str(made.key)
    # The tables of before are kept.
    assert Proposal.objects.filter(cohort_id=made.cohort.pk).count() == 2
    assert ProposedPair.objects.filter(proposal_id=made.key).count() == N_PAIRS
    assert LockRule.objects.filter(proposal_id=made.key).count() == 1
    empty = Placement.objects.get(pk=upgraded.waiting)
    assert not empty.is_computed
    assert not empty.places.exists()
    assert empty.is_pairs


def test_decisions_can_be_undone_as_before(upgraded: Upgraded) -> None:
    made = upgraded.plain
    placement = Placement.objects.get(pk=made.key)
    events = list(placement.events.exclude(kind=ActKind.VERSION).order_by("pk"))
    keys = {event.pk for event in events}
    assert not upgraded.event_keys & keys, "an old key never means another act"
    assert [event.sentence for event in events[:2]] == [
        "Of an earlier computation.",
        "Undone already.",
    ]
    for event in events[:2]:
        with pytest.raises(HousingError):
            decision_undo(user=upgraded.user, placement=placement, event=event)
    for event in reversed(events[2:]):
        decision_undo(user=upgraded.user, placement=placement, event=event)
        placement.refresh_from_db()
        check_agrees(placement)
    assert set(placement.pairs.values_list("state", flat=True)) == {"open"}
    paired = {(pair.first_id, pair.second_id) for pair in placement.pairs.all()}
    assert paired == {(a.pk, b.pk) for a, b in made.couples}
    assert not ForbiddenPair.objects.filter(cohort=made.cohort).exists()
    assert not AcceptedRoom.objects.filter(placement=placement).exists()
    assert not Place.objects.filter(placement=placement, is_locked=True).exists()
    assert placement.changes == 0


def test_keys_of_pairs_and_acts_go_on_behind_the_old_ones(upgraded: Upgraded) -> None:
    """A page of before the upgrade names a pair that was removed: it must not mean a new one."""
    made, (last, gone) = upgraded.gapped, upgraded.last_keys
    assert gone > max(upgraded.event_keys)
    placement = Placement.objects.get(pk=made.key)
    model = placement.pairs.first()
    assert model is not None
    new = PlacedPair.objects.create(
        placement=placement, room=placement.buildings.rooms.last(),
        first_id=made.pairs[-1].first_id, second_id=made.pairs[-1].second_id, first_number=1,
        second_number=2, score=0.0,
        probability=0.0, multiple=0.0, doubt=0.0, allowed=0.0, doubt_share=0.0,
    )  # fmt: skip
    assert new.pk > last
    act = PlacementEvent.objects.create(placement=placement, sentence="x", before=[], after=[])
    assert act.pk > gone


def test_the_copy_stops_whole_and_starts_again(upgraded: Upgraded) -> None:
    """An upgrade that dies leaves no half copy, and the next one copies each proposal once."""
    assert upgraded.after_the_failure == []
    made = {upgraded.late.key, upgraded.waiting, upgraded.plain.key, upgraded.gapped.key}
    assert set(Proposal.objects.values_list("pk", flat=True)) == made
    placements = Placement.objects.filter(is_pairs=True)
    assert sorted(placements.values_list("pk", flat=True)) == sorted(made)
    assert DecisionEvent.objects.count() > 0


def test_a_removed_placement_takes_its_proposal_along(
    upgraded: Upgraded, django_capture_on_commit_callbacks: Any
) -> None:
    made = upgraded.plain
    placement = Placement.objects.get(pk=made.key)
    for path in placement.files_of(made.arrays):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    with django_capture_on_commit_callbacks(execute=True):
        placement_delete(user=upgraded.user, placement=placement, typed_name=placement.name)
    assert not Proposal.objects.filter(pk=made.key).exists()
    assert not BuildingList.everything.filter(pk=placement.buildings_id).exists()
    assert not ForbiddenPair.objects.filter(cohort=made.cohort, placement__isnull=False).exists()
    assert not any(path.exists() for path in placement.files_of(made.arrays))
    upgraded.model.delete()


def test_old_addresses_lead_to_the_placement(
    upgraded: Upgraded, client_of: Callable[[User], Any]
) -> None:
    client = client_of(upgraded.user)
    key: UUID = upgraded.plain.key
    answer = client.get(f"/proposals/{key}/?tab=all&pair=3")
    assert (answer.status_code, answer["Location"]) == (301, f"/placements/{key}/?tab=all&pair=3")
    answer = client.post(f"/proposals/{key}/decide/", {"decision": "accept"})
    address = reverse("housing:pairs-decide", args=[key])
    assert (answer.status_code, answer["Location"]) == (308, address)
    assert client.get(f"/proposals/{key}/export.csv")["Location"] == f"/placements/{key}/pairs.csv"
    page = Page(client.get(f"/proposals/{key}/?tab=all", follow=True))
    assert page.has("heading", "Pairs of the year")
