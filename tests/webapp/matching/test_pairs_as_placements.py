"""Pairs are placements: versions, publishing, letters, withdrawals and one undo for all of it."""

import random
from collections.abc import Callable

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.residents import Resident
from tests.webapp.factories.university import check_agrees, run_waiting
from tests.webapp.matching.conftest import acts_of, two_of
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import LateArrivals, Student
from webapp.cohorts.selectors.surveys import forget_surveys
from webapp.common.errors import Refusal
from webapp.housing.errors import HousingError
from webapp.housing.models import (
    ActKind,
    BuildingList,
    PairState,
    Place,
    PlacedPair,
    Placement,
    PlacementVersion,
    Room,
)
from webapp.housing.pairs.decisions import Decision, pairs_decide
from webapp.housing.pairs.placing import pairs_compute
from webapp.housing.pairs.rule_changes import ACTIONS, rule_change
from webapp.housing.pairs.swaps import pairs_swap
from webapp.housing.scores import Scores
from webapp.housing.services.decisions import (
    Move,
    places_move,
    students_return,
    students_withdraw,
)
from webapp.housing.services.fitting import fit_version
from webapp.housing.services.placements import placement_copy, placement_delete
from webapp.housing.services.publication import placement_publish, placement_unpublish
from webapp.housing.services.undo import decision_undo
from webapp.housing.services.versions import version_use
from webapp.housing.services.waiting import latecomers_wait
from webapp.letters.recipients import recipients_of
from webapp.letters.services.templates import template_save
from webapp.matching.models import LearnedModel
from webapp.waiting.selectors import partner_matches
from webapp.waiting.services import offer_make

ClientOf = Callable[[User], Client]


def decide(user: User, placement: Placement, decision: Decision, *pairs: PlacedPair) -> None:
    versions = {pair.pk: pair.version for pair in pairs}
    pairs_decide(user=user, placement=placement, decision=decision, versions=versions)


def paired(placement: Placement) -> set[tuple[int, int]]:
    """Return who lives together by the places alone."""
    rooms: dict[int, list[int]] = {}
    for number, room in placement.places.with_bed().values_list("number", "room_id"):
        rooms.setdefault(room, []).append(number)
    return {(min(members), max(members)) for members in rooms.values()}


def compute_again(user: User, placement: Placement) -> None:
    pairs_compute(user=user, placement=placement)
    assert [job.state for job in run_waiting()] == ["succeeded"]
    placement.refresh_from_db()


def test_a_pair_is_a_room_of_two_that_no_list_of_buildings_shows(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    assert placement.is_pairs
    rooms = Room.objects.filter(buildings=placement.buildings_id)
    assert set(rooms.values_list("capacity", flat=True)) == {2}
    assert rooms.count() == 16
    assert not BuildingList.objects.exists()
    client = client_of(bob)
    assert "Pairs of" not in Page(client.get("/buildings/")).source
    assert client.get(f"/buildings/{placement.buildings_id}/").status_code == 404
    (row,) = (row for row in Page(client.get("/placements/")).every("row") if row.has("cell"))
    assert row.says("Pairs, no rooms")
    assert "Pair 1" not in Page(client.get("/?q=1")).source


def test_a_student_is_never_in_two_pairs(placement: Placement) -> None:
    """The database holds it, whatever an act writes."""
    first, second = placement.pairs.all()[:2]
    with pytest.raises(IntegrityError), transaction.atomic():
        PlacedPair.objects.filter(pk=second.pk).update(first=first.first_id)
    place = placement.places.get(student=first.first_id)
    with pytest.raises(IntegrityError), transaction.atomic():
        Place.objects.filter(student=second.first_id).update(room=place.room_id, bed=place.bed)


def test_pairs_computed_again_are_a_version_that_undo_takes_back(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    kept, rejected = placement.pairs.all()[:2]
    decide(bob, placement, Decision.ACCEPT, kept)
    decide(bob, placement, Decision.REJECT, rejected)
    placement.refresh_from_db()
    before, rows = paired(placement), list(placement.pairs.order_by("pk").values("pk", "state"))
    compute_again(bob, placement)
    assert placement.revision == 2
    assert placement.n_pairs == 16
    assert (kept.first_number, kept.second_number) in paired(placement)
    assert (rejected.first_number, rejected.second_number) not in paired(placement)
    check_agrees(placement)
    event = placement.events.filter(kind=ActKind.VERSION).first()
    page = Page(client_of(bob).get(reverse("housing:history", args=[placement.pk])))
    assert page.has("link", "Open the pairs")
    decision_undo(user=bob, placement=placement, event=event)
    placement.refresh_from_db()
    assert paired(placement) == before
    assert list(placement.pairs.order_by("pk").values("pk", "state")) == rows
    check_agrees(placement)


def test_an_earlier_version_is_restored_with_its_figures(bob: User, placement: Placement) -> None:
    one, other = two_of(placement)
    pairs_swap(
        user=bob,
        placement=placement,
        student=one.first_number,
        partner=other.first_number,
        versions={one.pk: one.version, other.pk: other.version},
    )
    swapped = paired(placement)
    scores = dict(placement.pairs.values_list("first_number", "score"))
    for pair in placement.pairs.filter(state=PairState.SWAPPED):
        decide(bob, placement, Decision.REOPEN, pair)
    placement.refresh_from_db()
    compute_again(bob, placement)
    assert paired(placement) != swapped
    saved = placement.versions.get(origin="saved")
    assert saved.arrays != placement.arrays
    fitted = fit_version(placement, saved)
    version_use(user=bob, placement=placement, number=saved.number, digest=fitted.digest)
    placement.refresh_from_db()
    assert paired(placement) == swapped
    assert placement.arrays == saved.arrays
    assert dict(placement.pairs.values_list("first_number", "score")) == scores
    check_agrees(placement)


def test_the_files_of_all_versions_go_with_the_placement(
    bob: User, placement: Placement, django_capture_on_commit_callbacks: Callable
) -> None:
    rule_change(user=bob, placement=placement, action="relax", column="Gender")
    placement.refresh_from_db()
    compute_again(bob, placement)
    names = PlacementVersion.objects.values_list("arrays", flat=True)
    files = [path for name in set(names) for path in placement.files_of(name)]
    assert len(files) == 4
    assert all(path.exists() for path in files)
    with django_capture_on_commit_callbacks(execute=True):
        placement_delete(user=bob, placement=placement, typed_name=placement.name)
    assert not any(path.exists() for path in files)
    assert not BuildingList.everything.exists()


def test_published_pairs_are_kept_from_one_click(
    carol: User, client_of: Callable, placement: Placement
) -> None:
    rejected, pair, other = placement.pairs.all()[:3]
    decide(carol, placement, Decision.REJECT, rejected)
    page = client_of(carol).get(reverse("housing:placement", args=[placement.pk]))
    dialog = Page(page).one("dialog", "Publish these pairs")
    assert dialog.says("15 pairs are published: 30 students get a roommate.")
    assert dialog.says("2 students have no roommate")
    placement.refresh_from_db()
    placement_publish(user=carol, placement=placement, version=placement.version)
    placement.refresh_from_db()
    before = paired(placement)
    for decision in (Decision.REJECT, Decision.NEVER):
        with pytest.raises(HousingError, match="is published"):
            decide(carol, placement, decision, pair)
    numbers = {"first": pair.first_number, "second": pair.second_number}
    with pytest.raises(HousingError, match="is published"):
        rule_change(user=carol, placement=placement, action="never", **numbers)
    versions = {pair.pk: pair.version, other.pk: other.version}
    with pytest.raises(HousingError, match="is published"):
        pairs_swap(
            user=carol,
            placement=placement,
            student=pair.first_number,
            partner=other.first_number,
            versions=versions,
        )
    with pytest.raises(HousingError, match="is published"):
        pairs_compute(user=carol, placement=placement)
    with pytest.raises(HousingError, match="is published"):
        placement_delete(user=carol, placement=placement, typed_name=placement.name)
    assert paired(placement) == before
    decide(carol, placement, Decision.ACCEPT, pair)  # nobody moves by it
    assert paired(placement) == before


def test_a_pair_that_is_forbidden_elsewhere_is_not_published(
    carol: User, placement: Placement, make_pairs: Callable
) -> None:
    other = make_pairs()
    decide(carol, placement, Decision.NEVER, placement.pairs.first())
    with pytest.raises(HousingError, match="1 pair is never to be paired by now"):
        placement_publish(user=carol, placement=other, version=other.version)


def test_letters_name_roommates_and_no_room(carol: User, placement: Placement) -> None:
    letter = template_save(
        user=carol, template=None, name="L", subject="S", text="[hall][room] [roommates]"
    )
    found = recipients_of(placement, letter)
    assert len(found) == 32
    assert {person.values["hall"] + person.values["room"] for person in found} == {""}
    mates = {(one.number, mate.number) for one in found for mate in one.roommates}
    assert {tuple(sorted(pair)) for pair in mates} == paired(placement)


def test_a_student_reads_who_the_roommate_is_and_no_room(carol: User, placement: Placement) -> None:
    pair = placement.pairs.first()
    Student.objects.filter(pk=pair.second_id).update(name="Ada Okafor")
    placement_publish(user=carol, placement=placement, version=placement.version)
    page = Page(Resident(Student.objects.get(pk=pair.first_id)).look())
    assert page.says("Ada Okafor")
    assert "Pair 1" not in page.source
    assert "Bed" not in page.source


def test_who_withdraws_leaves_the_roommate_to_be_paired_again(
    bob: User, placement: Placement
) -> None:
    one, other = two_of(placement)
    for pair in (one, other):
        placement.refresh_from_db()
        students_withdraw(
            user=bob, placement=placement, numbers=[pair.first_number], version=placement.version
        )
    placement.refresh_from_db()
    assert placement.n_pairs == 14
    event = acts_of(placement).first()
    compute_again(bob, placement)
    assert placement.n_pairs == 15
    assert {one.second_number, other.second_number} <= {
        n for pair in paired(placement) for n in pair
    }
    gone = placement.places.filter(has_left=True)
    assert set(gone.values_list("number", flat=True)) == {one.first_number, other.first_number}
    check_agrees(placement)
    with pytest.raises(HousingError):
        decision_undo(user=bob, placement=placement, event=event)
    students_return(
        user=bob, placement=placement, numbers=[one.first_number], version=placement.version
    )
    placement.refresh_from_db()
    check_agrees(placement)


def test_a_withdrawal_is_undone_with_the_figures_of_the_pair(
    bob: User, placement: Placement
) -> None:
    pair = placement.pairs.first()
    row = PlacedPair.objects.filter(pk=pair.pk).values().get()
    students_withdraw(
        user=bob, placement=placement, numbers=[pair.first_number], version=placement.version
    )
    assert not placement.pairs.filter(pk=pair.pk).exists()
    decision_undo(user=bob, placement=placement, event=acts_of(placement).first())
    again = PlacedPair.objects.filter(pk=pair.pk).values().get()
    assert {**again, "version": row["version"]} == row
    placement.refresh_from_db()


def test_a_late_arrival_waits_and_may_take_the_place_of_a_roommate(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    pair = placement.pairs.first()
    twin = placement.cohort.students.get(pk=pair.first_id)
    late = placement.cohort.students.create(
        number=1033, original_id="late", answers=twin.answers, attributes=twin.attributes
    )
    forget_surveys()
    arrivals = LateArrivals.objects.create(
        cohort=placement.cohort, source="late.csv", first_number=1033, last_number=1033
    )
    latecomers_wait(user=bob, cohort=placement.cohort, arrivals=arrivals)
    placement.refresh_from_db()
    assert placement.places.get(student=late).room is None
    students_withdraw(
        user=bob, placement=placement, numbers=[pair.first_number], version=placement.version
    )
    placement.refresh_from_db()
    room = placement.places.get(number=pair.second_number).room_id
    places_move(
        user=bob,
        placement=placement,
        moves=[Move(1033, room)],
        version=placement.version,
        sentence="S-1033 joins.",
    )
    made = placement.pairs.get(second_number=1033)
    assert (made.state, made.probability) == (PairState.SWAPPED, 0.0)
    page = client_of(bob).get(reverse("housing:placement", args=[placement.pk]), {"pair": made.pk})
    assert page.status_code == 200
    decision_undo(user=bob, placement=placement, event=acts_of(placement).first())
    assert not placement.pairs.filter(second_number=1033).exists()


def test_acts_of_rooms_that_make_no_sense_for_pairs_are_refused(
    bob: User, client_of: Callable, placement: Placement, learned: LearnedModel
) -> None:
    from webapp.housing.rules import PlacementRules

    with pytest.raises(HousingError, match="holds pairs without rooms"):
        placement_copy(user=bob, placement=placement, rules=PlacementRules())
    client = client_of(bob)
    address = reverse("housing:changes-propose", args=[placement.pk])
    client.post(address, {"price": "0.5"}, follow=True)
    assert not placement.proposed_changes.exists()
    for name in ("placement-rules", "placement-try"):
        answer = client.get(reverse(f"housing:{name}", args=[placement.pk]))
        assert answer.status_code == 302
    for name, args in (
        ("scenarios", [placement.cohort_id]),
        ("history", [placement.pk]),
        ("changes", [placement.pk]),
        ("placement-export", [placement.pk, "csv"]),
    ):
        assert client.get(reverse(f"housing:{name}", args=args)).status_code == 200, name


@pytest.mark.parametrize("seed", range(3))
def test_acts_at_random_keep_pairs_and_places_together(
    bob: User, placement: Placement, seed: int
) -> None:
    """Decisions, swaps, rules, withdrawals, undo and redo in any order, refused or not."""
    rng = random.Random(seed)

    def pick() -> list[PlacedPair]:
        return rng.sample(list(placement.pairs.all()), 2)

    def act() -> None:
        one, other = pick()
        kind = rng.choice(("decide", "decide", "swap", "rule", "leave", "back", "undo", "undo"))
        if kind == "decide":
            decide(bob, placement, rng.choice(list(Decision)), one)
        elif kind == "swap":
            versions = {one.pk: one.version, other.pk: other.version}
            pairs_swap(
                user=bob,
                placement=placement,
                student=one.first_number,
                partner=other.second_number,
                versions=versions,
            )
        elif kind == "rule":
            rule_change(
                user=bob,
                placement=placement,
                action=rng.choice(ACTIONS),
                first=one.first_number,
                second=rng.choice((one, other)).second_number,
                column="Gender",
            )
        elif kind == "leave":
            students_withdraw(
                user=bob,
                placement=placement,
                numbers=[one.first_number],
                version=placement.version,
            )
        elif kind == "back":
            gone = placement.places.filter(has_left=True).first()
            if gone is not None:
                students_return(
                    user=bob, placement=placement, numbers=[gone.number], version=placement.version
                )
        else:
            event = rng.choice(list(placement.events.all()[:6]))
            decision_undo(user=bob, placement=placement, event=event)

    done = 0
    for _ in range(60):
        try:
            with transaction.atomic():
                act()
            done += 1
        except Refusal:
            pass
        placement.refresh_from_db()
        together = {
            (pair.first_number, pair.second_number)
            for pair in placement.pairs.all()
            if pair.shares_a_room
        }
        assert together == {pair for pair in paired(placement) if pair[0] != pair[1]}
    assert done > 20
    for event in list(placement.events.all()):
        try:
            decision_undo(user=bob, placement=placement, event=event)
        except Refusal:
            continue
    placement.refresh_from_db()
    together = {
        (pair.first_number, pair.second_number)
        for pair in placement.pairs.all()
        if pair.shares_a_room
    }
    assert together == {pair for pair in paired(placement) if pair[0] != pair[1]}


def test_the_waiting_list_of_pairs_names_matches_and_how_to_pair_them(
    bob: User, carol: User, make_pairs: Callable[..., Placement], client_of: ClientOf
) -> None:
    """The steps that the page describes make the pair that it names, and keep accepted pairs."""
    placement = make_pairs()
    women = [
        pair
        for pair in placement.pairs.order_by("first_number")
        if pair.first.attributes["Gender"] == "F"
    ]
    apart, kept = women[:2], placement.pairs.exclude(pk__in=[pair.pk for pair in women[:2]])
    decide(bob, placement, Decision.REJECT, *apart)
    decide(bob, placement, Decision.ACCEPT, *kept)
    others = paired(placement)
    placement.refresh_from_db()
    placement_publish(user=carol, placement=placement, version=placement.version)
    waiting = sorted(n for pair in apart for n in (pair.first_number, pair.second_number))
    matches = partner_matches(placement)
    assert sorted(n for one in matches for n in (one.number, one.partner)) == waiting
    assert matches[0].number == waiting[0]
    parted = [(pair.first_number, pair.second_number) for pair in apart]
    assert not {tuple(sorted((one.number, one.partner))) for one in matches} & set(parted)
    scores = Scores(placement)
    mate = next(b if a == waiting[0] else a for a, b in parted if waiting[0] in (a, b))
    best = max(
        float(scores.of_pairs([(waiting[0], n)])[0]) for n in waiting if n not in (waiting[0], mate)
    )
    assert matches[0].score == pytest.approx(best)
    page = Page(client_of(bob).get(reverse("waiting:list", args=[placement.pk])))
    assert page.says("4 students without a partner")
    assert page.section("How to pair them").says("Pairs have no free beds")
    assert page.has("listitem", "Withdraw the publication")
    with pytest.raises(HousingError, match="The waiting list says how"):
        offer_make(
            user=bob, placement=placement, room=placement.buildings.rooms.first(), number=None,
            hours=24,
        )  # fmt: skip
    placement_unpublish(user=carol, placement=placement, people=2 * len(others))
    one = matches[0]
    rule_change(user=bob, placement=placement, action="lock", first=one.number, second=one.partner)
    compute_again(bob, placement)
    placement.refresh_from_db()
    now = paired(placement)
    assert others < now
    assert tuple(sorted((one.number, one.partner))) in now
    assert not partner_matches(placement)


def test_students_who_stay_single_or_may_not_be_paired_are_no_match(
    bob: User, make_pairs: Callable[..., Placement]
) -> None:
    placement = make_pairs()
    first, second = placement.pairs.order_by("first_number")[:2]
    decide(bob, placement, Decision.REJECT, first, second)
    placement.refresh_from_db()
    assert placement.places.without_bed().count() == 4
    rule_change(user=bob, placement=placement, action="single", first=first.first_number)
    placement.refresh_from_db()
    named = {n for one in partner_matches(placement) for n in (one.number, one.partner)}
    assert first.first_number not in named
    for number in (second.first_number, second.second_number):
        rule_change(
            user=bob, placement=placement, action="never", first=first.second_number, second=number
        )
    placement.refresh_from_db()
    assert not partner_matches(placement)
