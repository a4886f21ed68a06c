"""Every run is a version: compared before it takes over, and any earlier one can be restored."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.webapp.factories.campus import RULES, check, two_rooms
from tests.webapp.factories.university import run_waiting
from tests.webapp.roles import Page
from tests.webapp.typed_forms import field_values
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.models import Place, Placement, PlacementVersion
from webapp.housing.problem import placement_problem
from webapp.housing.rules import PlacementRules
from webapp.housing.selectors.outcomes import outcome
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.selectors.versions import stopped_words
from webapp.housing.services.buildings import room_remove, rooms_set_state
from webapp.housing.services.decisions import (
    Move,
    places_lock,
    places_move,
    students_withdraw,
)
from webapp.housing.services.fitting import fit_version
from webapp.housing.services.placements import placement_compute, rules_change
from webapp.housing.services.publication import placement_publish
from webapp.housing.services.undo import decision_undo
from webapp.housing.services.versions import (
    computed_version,
    start_of,
    version_discard,
    version_store,
    version_use,
)

ClientOf = Callable[[User], Client]


def fresh(placement: Placement) -> Placement:
    return Placement.objects.get(pk=placement.pk)


def beds(placement: Placement) -> dict[int, tuple[int | None, int | None, bool]]:
    places = placement.places.values_list("number", "room", "bed", "is_locked")
    return {number: (room, bed, locked) for number, room, bed, locked in places}


def stored(
    placement: Placement, user: User, rooms: dict[int, int | None] | None = None
) -> PlacementVersion:
    """Store a version as a run does; by default with two women in each other's room."""
    if rooms is None:
        (a, _), (c, _) = two_rooms(placement)
        rooms = dict(placement.places.values_list("number", "room_id"))
        rooms[a], rooms[c] = rooms[c], rooms[a]
    key = dict(placement.cohort.students.values_list("number", "pk"))
    return version_store(
        computed_version(
            placement=placement,
            job=None,
            user=user,
            rules=placement.rules,
            rooms={key[number]: room for number, room in rooms.items()},
            doubts={},
            figures={"has_converged": True, "relative_gap": 0.001},
            outcomes={**outcome(PlacementRooms(placement)), "moved": 2},
        )
    )


def test_taking_a_version_over_reads_no_student_alone(bob: User, placement: Placement) -> None:
    """A row whose placement was not read with it once cost a query each: 2,500 in a large year."""
    version = stored(placement, bob)
    with CaptureQueriesContext(connection) as queries:
        use(placement, bob, version)
    assert len(queries) < placement.places.count() + 30
    alone = 'WHERE "housing_place"."id" = '
    assert not [one["sql"] for one in queries if alone in one["sql"]]


def use(placement: Placement, user: User, version: PlacementVersion):
    now = fresh(placement)
    digest = fit_version(now, version).digest
    return version_use(user=user, placement=now, number=version.number, digest=digest)


def test_placing_again_changes_nothing_before_somebody_says_so(
    bob: User, placement: Placement, client_of: ClientOf
) -> None:
    (a, _), _ = two_rooms(placement)
    page = {"user": bob, "placement": placement, "version": placement.version}
    places_move(moves=[Move(a, None)], sentence="out", **page)
    before = beds(placement)
    placement_compute(user=bob, placement=placement)
    (job,) = run_waiting()
    assert job.result["sentence"].startswith("Version 2: 32 of 32 students have a bed")
    assert beds(placement) == before
    client, at = client_of(bob), f"/placements/{placement.pk}/"
    notice = Page(client.get(at)).one("region", "A new version")
    assert notice.says("Version 2 is ready. The rooms below are not changed yet.")
    assert notice.says("32 of 32 students have a bed (1 more)")
    assert notice.one("link", "See what would change").address == f"{at}versions/2/"
    answer = client.get(f"{at}versions/2/")
    page = Page(answer)
    assert page.has("heading", "Version 2: what would change")
    assert page.has("rowheader", "Without a room")
    version = placement.versions.get(number=2)
    digest = fit_version(fresh(placement), version).digest
    assert field_values(answer, "digest") == [digest]
    client.post(f"{at}versions/2/use/", {"digest": digest})
    assert placement.places.get(number=a).room_id is not None
    check(placement)
    assert fresh(placement).current == version
    assert AuditLine.objects.filter(verb="took a version into force", user=bob).count() == 2


def test_what_stood_before_is_kept_and_restored_to_the_bed(
    bob: User, placement: Placement, client_of: ClientOf
) -> None:
    (a, b), _ = two_rooms(placement)
    page = {"user": bob, "placement": placement}
    places_lock(numbers=[b], locked=True, version=placement.version, **page)
    moves = [Move(a, None)]
    places_move(moves=moves, sentence="out", version=fresh(placement).version, **page)
    before, version = beds(placement), stored(placement, bob, {a: None} | dict(
        placement.places.exclude(number__in=[a]).values_list("number", "room_id")
    ))  # fmt: skip
    others = [n for n in before if n not in (a, b) and before[n][0]]
    everybody_out = stored(placement, bob, dict.fromkeys(others) | {b: before[b][0]})
    Place.objects.filter(number__in=others).update(is_locked=False)
    use(placement, bob, version)
    assert fresh(placement).changes == 0
    assert everybody_out.is_waiting
    saved = placement.versions.get(origin="saved")
    assert saved.changes == 1  # the move by hand since version 1
    use(placement, bob, PlacementVersion.objects.get(pk=placement.versions.get(number=1).pk))
    assert placement.places.get(number=a).room_id is not None
    assert placement.places.get(number=b).is_locked
    use(placement, bob, saved)
    assert beds(placement) == before
    page = Page(client_of(bob).get(f"/placements/{placement.pk}/history/"))
    versions = page.one("region", "Versions")
    assert versions.has("row", "Saved before another version took over")
    link = versions.one("link", "Compare and restore Version 1")
    assert link.address == f"/placements/{placement.pk}/versions/1/"


def test_restoring_is_itself_undone(bob: User, placement: Placement) -> None:
    before, state = beds(placement), (fresh(placement).current_id, fresh(placement).figures)
    event = use(placement, bob, stored(placement, bob))
    assert beds(placement) != before
    assert AuditLine.objects.filter(verb="took a version into force").first().details["number"] == 2
    decision_undo(user=bob, placement=placement, event=event)
    assert beds(placement) == before
    assert (fresh(placement).current_id, fresh(placement).figures) == state
    undo = placement.events.first()
    decision_undo(user=bob, placement=placement, event=undo)
    assert fresh(placement).current.number == 2


def test_a_version_is_not_used_once_it_would_change_something_else(
    bob: User, placement: Placement
) -> None:
    version = stored(placement, bob)
    digest = fit_version(fresh(placement), version).digest
    (a, _), _ = two_rooms(placement)
    places_move(
        user=bob, placement=placement, moves=[Move(a, None)], sentence="out",
        version=fresh(placement).version,
    )  # fmt: skip
    before = beds(placement)
    with pytest.raises(PlacesChangedError, match="not what the page showed any more"):
        version_use(user=bob, placement=placement, number=version.number, digest=digest)
    assert beds(placement) == before


def test_locked_withdrawn_and_late_students_and_closed_rooms_are_respected(
    bob: User, placement: Placement
) -> None:
    (a, b), (c, d) = two_rooms(placement)
    version = stored(placement, bob)  # a and c swap
    page = {"user": bob, "placement": placement}
    places_lock(numbers=[a], locked=True, version=fresh(placement).version, **page)
    students_withdraw(numbers=[b], version=fresh(placement).version, **page)
    fitted = fit_version(fresh(placement), version)
    assert fitted.refused[a] == "Locked into another room, and stays there."
    assert b not in fitted.rooms
    room = placement.places.get(number=d).room
    rooms_set_state(user=bob, buildings=room.buildings, rooms=[room.pk], state="kept")
    assert fit_version(fresh(placement), version).refused[d] == (
        f"{room} is held back. Open it in its building list first."
    )
    room_remove(user=bob, room=room)
    use(placement, bob, version)
    assert placement.places.get(number=a).room_id is not None
    assert placement.places.get(number=b).has_left
    assert placement.places.get(number=c).room_id is not None  # the bed that b left
    check(placement)


def test_who_gets_no_room_by_a_run_keeps_the_present_one_where_it_is_free(
    bob: User, placement: Placement
) -> None:
    (a, b), _ = two_rooms(placement)
    rooms = dict(placement.places.values_list("number", "room_id")) | {a: None, b: None}
    fitted = fit_version(fresh(placement), stored(placement, bob, rooms))
    assert fitted.seats == {}
    assert fitted.rooms[a] == placement.places.get(number=a).room_id


def test_a_version_brings_its_rules_and_only_when_it_is_used(
    bob: User, placement: Placement, client_of: ClientOf
) -> None:
    rules = PlacementRules(designation="Gender", same=("Gender",), mutual="no")
    rules_change(user=bob, placement=placement, rules=rules)
    run_waiting()
    assert PlacementRules.from_json(fresh(placement).rules) == RULES
    page = Page(client_of(bob).get(f"/placements/{placement.pk}/versions/2/"))
    assert page.has("heading", "Rules that change")
    version = placement.versions.get(number=2)
    assert PlacementRules.from_json(version.rules) == rules
    event = use(placement, bob, version)
    assert PlacementRules.from_json(fresh(placement).rules) == rules
    decision_undo(user=bob, placement=placement, event=event)
    assert PlacementRules.from_json(fresh(placement).rules) == RULES


def test_a_discarded_version_stays_in_the_list(
    bob: User, placement: Placement, client_of: ClientOf
) -> None:
    stored(placement, bob)
    client, at = client_of(bob), f"/placements/{placement.pk}/"
    page = Page(client.post(f"{at}versions/2/discard/", follow=True))
    assert page.has("status", "Version 2 was discarded. The rooms stay as they are.")
    assert not page.says("is ready. The rooms below")
    with pytest.raises(HousingError, match="decided about already"):
        version_discard(user=bob, placement=placement, number=2)
    versions = Page(client.get(f"{at}history/")).one("region", "Versions")
    assert versions.one("row", "Version 2").has("cell", "Discarded", exactly=True)
    use(placement, bob, placement.versions.get(number=2))


def test_a_version_of_a_published_placement_names_everybody_who_moves(
    bob: User, carol: User, placement: Placement, client_of: ClientOf
) -> None:
    (a, _), (c, _) = two_rooms(placement)
    version = stored(placement, bob)
    placement_publish(user=carol, placement=placement, version=fresh(placement).version)
    page = Page(client_of(bob).get(f"/placements/{placement.pk}/versions/2/"))
    assert page.has("paragraph", "Using this version changes their published beds")
    lines = page.one("region", "Students who would live elsewhere").every("listitem")
    assert sorted(line.text.split()[0] for line in lines) == sorted([f"S-{a}", f"S-{c}"])
    assert page.has("button", "Use version 2: change 2 published beds", exactly=True)
    use(placement, bob, version)


def test_runs_start_from_the_best_rooms_that_there_are(bob: User, placement: Placement) -> None:
    problem = placement_problem(placement)
    assert (start_of(placement, problem) == problem.previous).all()
    version = stored(placement, bob)
    start = start_of(placement, problem)
    assert (start != problem.previous).sum() == 2
    version_discard(user=bob, placement=placement, number=version.number)
    assert (start_of(placement, problem) == problem.previous).all()


@pytest.mark.parametrize(
    ("figures", "homeless", "words"),
    [
        (
            {"has_converged": False, "seconds": 120.2, "relative_gap": 0.04},
            61,
            "Stopped after 2 min of computing; 61 students have no bed.",
        ),
        (
            {"has_converged": False, "seconds": 120.2, "relative_gap": 0.04},
            0,
            "Stopped after 2 min of computing; everybody has a bed, within 4 % of the best.",
        ),
        (
            {
                "has_converged": False,
                "seconds": 120.0,
                "clock_seconds": 300.0,
                "was_busy": True,
                "relative_gap": 8.0,
            },
            1,
            "Stopped after 2 min of computing (5 min on the clock: the machine was busy); "
            "1 student has no bed.",
        ),
        ({"has_converged": True, "seconds": 3.0, "relative_gap": 0.001}, 4, ""),
        ({}, 4, ""),
    ],
)
def test_a_run_that_stopped_says_so(figures: dict[str, object], homeless: int, words: str) -> None:
    assert stopped_words(figures, homeless) == words


def test_more_time_is_a_button(bob: User, placement: Placement, client_of: ClientOf) -> None:
    Placement.objects.filter(pk=placement.pk).update(
        figures={"has_converged": False, "seconds": 120.0, "relative_gap": 0.1}
    )
    client, at = client_of(bob), f"/placements/{placement.pk}/"
    assert Page(client.get(at)).has("button", "Continue for 5 minutes")
    client.post(f"{at}compute/", {"minutes": "5"})
    job = fresh(placement).job
    assert job.parameters["seconds"] == 300.0
    page = Page(client.post(f"{at}compute/", {"minutes": "5"}, follow=True))
    assert page.has("alert", "Rooms are being computed right now.")
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    assert placement.versions.first().figures["limit"] == 300.0
    page = Page(client.post(f"{at}compute/", {"minutes": "999"}, follow=True))
    assert page.has("alert", "A run takes up to 60 minutes.")


def test_viewers_see_versions_and_decide_nothing(
    alice: User, mallory: User, bob: User, placement: Placement, client_of: ClientOf
) -> None:
    stored(placement, bob)
    at = f"/placements/{placement.pk}/"
    page = Page(client_of(alice).get(f"{at}history/"))
    assert page.one("region", "Versions").has("row", "Version 2")
    assert not page.says("Compare")
    acts = (("versions/2/", "get"), ("versions/2/use/", "post"), ("versions/2/discard/", "post"))
    for path, method in acts:
        assert getattr(client_of(alice), method)(at + path).status_code == 403
        assert getattr(client_of(mallory), method)(at + path).status_code == 404
        assert getattr(Client(), method)(at + path).status_code == 302
    assert client_of(mallory).get(f"{at}history/").status_code == 404
    assert client_of(bob).get(f"{at}versions/9/").status_code == 404
