"""Terms that share rooms, and students who arrive later or leave earlier than their term."""

from datetime import date

import numpy as np
import pytest
from django.urls import reverse

from engine import Question, Questionnaire, Survey
from tests.webapp.factories.placed import placed_cohort, publish
from tests.webapp.factories.residents import Resident
from tests.webapp.factories.tries import forget_tries
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort, Student
from webapp.housing.errors import HousingError, PlacesChangedError
from webapp.housing.exports import LAYOUTS, floors_export, roster_rows
from webapp.housing.models import Place, Placement, Term
from webapp.housing.problem import placement_problem
from webapp.housing.scores import Scores
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.services.buildings import room_save
from webapp.housing.services.checks import rooms_taken_elsewhere
from webapp.housing.services.decisions import Move, places_move
from webapp.housing.services.publication import placement_publish
from webapp.housing.services.stays import place_dates_set
from webapp.housing.services.terms import placement_term_set, term_save
from webapp.housing.services.undo import decision_undo
from webapp.housing.stays import ALWAYS, Stay, first_free_bed, most_at_once
from webapp.letters.models import Letter
from webapp.letters.recipients import place_now, recipients_of
from webapp.letters.services.templates import template_save

AUTUMN = (date(2026, 8, 20), date(2026, 12, 18))
SPRING = (date(2027, 1, 10), date(2027, 5, 20))


@pytest.fixture(autouse=True)
def no_tries_before() -> None:
    forget_tries()


@pytest.fixture
def placement(bob: User, monkeypatch: pytest.MonkeyPatch) -> Placement:
    """Anna and Ben share 101, Cleo and Dan 102, Eva lives alone in 103; Finn has no room."""
    monkeypatch.setattr(Scores, "of_rooms", lambda self, rooms, stays=None: {})
    monkeypatch.setattr(Scores, "of_members", lambda self, members: dict.fromkeys(members))
    made = placed_cohort(bob)
    made.cohort.constraints = ["Gender"]
    made.cohort.save(update_fields=["constraints"])
    placement_term_set(user=bob, placement=made, term=a_term(bob, "Autumn", AUTUMN))
    made.refresh_from_db()
    return made


def a_term(user: User, name: str, days: tuple[date, date]) -> Term:
    return term_save(user=user, term=None, name=name, code="", starts_on=days[0], ends_on=days[1])


def another_cohort(user: User, like: Placement, name: str, term: Term | None) -> Placement:
    """Two students of another cohort in room 101 of the same building list."""
    cohort = Cohort.objects.create(
        organisation=user.organisation, created_by=user, name=name, questions=[], n_students=2
    )
    made = Placement.objects.create(
        organisation=user.organisation, created_by=user, name=f"Rooms of {name}", cohort=cohort,
        buildings=like.buildings, model=like.model, term=term, revision=1,
    )  # fmt: skip
    room = like.buildings.rooms.get(name="101")
    for k in (1, 2):
        student = Student.objects.create(
            cohort=cohort, number=2000 + k, original_id=f"x{k}", answers=[]
        )
        Place.objects.create(
            placement=made, student=student, number=student.number, room=room, bed=k
        )
    return made


def place(placement: Placement, number: int) -> Place:
    return placement.places.select_related("room", "placement__term").get(number=number)


def set_dates(user: User, placement: Placement, number: int, first=None, last=None):
    placement.refresh_from_db()
    return place_dates_set(
        user=user, placement=placement, number=number, arrives_on=first, leaves_on=last,
        version=placement.version,
    )  # fmt: skip


def move(user: User, placement: Placement, number: int, name: str):
    placement.refresh_from_db()
    room = placement.buildings.rooms.get(name=name)
    return places_move(
        user=user, placement=placement, moves=[Move(number, room.pk)],
        version=placement.version, sentence="Moved.",
    )  # fmt: skip


def test_stays_overlap_on_a_shared_day_alone() -> None:
    until, since = Stay(last=date(2026, 10, 31)), Stay(first=date(2026, 11, 1))
    assert not until.overlaps(since)
    assert until.overlaps(Stay(first=date(2026, 10, 31)))
    assert most_at_once([until, since, ALWAYS]) == 2
    assert most_at_once([]) == 0
    assert first_free_bed(since, [(1, until), (2, ALWAYS)]) == 1
    assert first_free_bed(ALWAYS, [(1, until), (2, since)]) == 3


@pytest.mark.django_db
def test_the_same_room_is_published_in_autumn_and_in_spring(bob, placement) -> None:
    other = another_cohort(bob, placement, "Exchange", a_term(bob, "Spring", SPRING))
    publish(placement)
    assert not rooms_taken_elsewhere(other)
    placement_publish(user=bob, placement=other, version=other.version)
    other.refresh_from_db()
    assert other.is_published


@pytest.mark.django_db
@pytest.mark.parametrize("has_term", [True, False])
def test_publishing_names_the_beds_that_others_have_on_these_days(bob, placement, has_term) -> None:
    late = a_term(bob, "Late", (AUTUMN[1], SPRING[1])) if has_term else None
    other = another_cohort(bob, placement, "Exchange", late)
    publish(placement)
    with pytest.raises(HousingError) as refused:
        placement_publish(user=bob, placement=other, version=other.version)
    assert "Alder 101, bed 1; Alder 101, bed 2 are taken in Rooms of First-years" in str(
        refused.value
    )
    assert "20 Aug 2026 to 18 Dec 2026" in str(refused.value)


@pytest.mark.django_db
def test_students_who_leave_early_make_the_room_free_for_another_cohort(bob, placement) -> None:
    late = a_term(bob, "Late", (date(2026, 12, 1), SPRING[1]))
    other = another_cohort(bob, placement, "Exchange", late)
    set_dates(bob, placement, 1001, last=date(2026, 11, 30))
    publish(placement)
    with pytest.raises(HousingError, match="bed 2 is taken"):
        placement_publish(user=bob, placement=other, version=other.version)
    set_dates(bob, placement, 1002, last=date(2026, 11, 30))
    placement_publish(user=bob, placement=other, version=other.version)
    # The first students cannot stay longer now.
    with pytest.raises(HousingError, match="taken in Rooms of Exchange"):
        set_dates(bob, placement, 1002, last=date(2026, 12, 1))


@pytest.mark.django_db
def test_other_days_of_a_term_cannot_take_a_published_bed_twice(bob, placement) -> None:
    spring = a_term(bob, "Spring", SPRING)
    other = another_cohort(bob, placement, "Exchange", spring)
    publish(placement)
    publish(other)
    with pytest.raises(HousingError, match="are taken in"):
        term_save(
            user=bob, term=spring, name="Spring", code="", starts_on=AUTUMN[1], ends_on=SPRING[1]
        )
    spring.refresh_from_db()
    assert spring.starts_on == SPRING[0]
    with pytest.raises(HousingError, match="are taken in"):
        placement_term_set(user=bob, placement=other, term=placement.term)
    other.refresh_from_db()
    assert other.term == spring


@pytest.mark.django_db
def test_a_bed_is_used_by_two_students_one_after_the_other(bob, placement) -> None:
    set_dates(bob, placement, 1001, last=date(2026, 10, 31))
    with pytest.raises(HousingError, match="fewer than 3 people"):
        move(bob, placement, 1006, "101")
    set_dates(bob, placement, 1006, first=date(2026, 11, 1))
    event = move(bob, placement, 1006, "101")
    late, early = place(placement, 1006), place(placement, 1001)
    assert (late.room, late.bed) == (early.room, early.bed)
    card = next(c for c in PlacementRooms(placement).cards() if c.room == late.room)
    assert (card.n_at_once, card.free) == (2, 0)
    with pytest.raises(HousingError, match=r"Bed 1 of Alder 101 is the bed of S-1006"):
        set_dates(bob, placement, 1001, last=date(2026, 11, 1))
    decision_undo(user=bob, placement=placement, event=event)
    assert place(placement, 1006).room is None


@pytest.mark.django_db
def test_a_room_without_one_bed_for_all_days_is_refused(bob, placement) -> None:
    """Each day has a free bed in 102, but in different beds."""
    set_dates(bob, placement, 1003, last=date(2026, 10, 31))
    set_dates(bob, placement, 1004, first=date(2026, 11, 1))
    with pytest.raises(HousingError, match="No bed of Alder 102 is free for S-1006"):
        move(bob, placement, 1006, "102")
    assert place(placement, 1006).room is None


@pytest.mark.django_db
def test_dates_are_undone_unless_the_bed_is_taken_by_then(bob, placement) -> None:
    event = set_dates(bob, placement, 1001, last=date(2026, 10, 31))
    set_dates(bob, placement, 1006, first=date(2026, 11, 1))
    moved = move(bob, placement, 1006, "101")
    with pytest.raises(HousingError, match="S-1006"):
        decision_undo(user=bob, placement=placement, event=event)
    decision_undo(user=bob, placement=placement, event=moved)
    decision_undo(user=bob, placement=placement, event=event)
    assert place(placement, 1001).leaves_on is None
    assert AuditLine.objects.filter(verb="changed dates").count() == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        (date(2026, 8, 19), None, "Choose a day of the term"),
        (None, date(2027, 1, 1), "Choose a day of the term"),
        (date(2026, 10, 2), date(2026, 10, 1), "before the first day"),
        (AUTUMN[0], AUTUMN[1], "the dates of S-1001 already"),
    ],
)
def test_days_that_cannot_be_are_refused(bob, placement, first, last, words) -> None:
    with pytest.raises(HousingError, match=words):
        set_dates(bob, placement, 1001, first, last)
    assert place(placement, 1001).arrives_on is None


@pytest.mark.django_db
def test_dates_of_a_page_out_of_date_are_refused(bob, placement) -> None:
    seen = placement.version
    set_dates(bob, placement, 1001, last=date(2026, 10, 31))
    with pytest.raises(PlacesChangedError):
        place_dates_set(
            user=bob, placement=placement, number=1001, arrives_on=None, leaves_on=None,
            version=seen,
        )  # fmt: skip


@pytest.mark.django_db
def test_people_who_follow_each_other_stay_where_they_are_in_a_computation(
    bob, placement, monkeypatch
) -> None:
    set_dates(bob, placement, 1001, last=date(2026, 10, 31))
    set_dates(bob, placement, 1006, first=date(2026, 11, 1))
    move(bob, placement, 1006, "101")
    monkeypatch.setattr("webapp.housing.problem.Scores", NoScores)
    problem = placement_problem(placement)
    shared = place(placement, 1001).room_id
    positions = [k for k, key in enumerate(problem.room_keys) if key == shared]
    assert problem.rooms.capacities[positions].tolist() == [2, 1]  # a room for who follows
    fixed = {problem.students[k].number for k, room in problem.rules.assigned}
    assert fixed == {1001, 1002, 1006}


class NoScores:
    """Scores of a cohort in which nobody answered."""

    def __init__(self, placement: Placement) -> None:
        n_students = placement.cohort.students.count()
        ids = tuple(str(k) for k in range(n_students))
        blank = np.full((n_students, 1), -1, dtype=np.int16)
        asked = Questionnaire((Question("Smokes", "binary", ("no", "yes")),))
        self.survey = Survey(ids, asked, blank, {"Gender": ("",) * n_students})


@pytest.mark.django_db
def test_a_smaller_room_gives_nobody_a_bed_that_is_taken(bob, placement) -> None:
    """Bed 2 in autumn and bed 1 from November on: a room of one has no second bed to give."""
    set_dates(bob, placement, 1001, last=date(2026, 10, 31))
    set_dates(bob, placement, 1002, first=date(2026, 11, 1))
    room = placement.buildings.rooms.get(name="101")
    values = {
        "hall": room.hall, "floor": room.floor, "name": room.name, "capacity": 1,
        "max_capacity": None, "designation": "", "meets": [], "note": "", "state": "open",
    }  # fmt: skip
    room_save(user=bob, buildings=placement.buildings, room=room, values=values)
    assert [place(placement, n).bed for n in (1001, 1002)] == [1, 1]


@pytest.mark.django_db
def test_rosters_floor_lists_letters_and_the_own_page_show_the_dates(bob, placement) -> None:
    set_dates(bob, placement, 1001, last=date(2026, 10, 31))
    set_dates(bob, placement, 1006, first=date(2026, 11, 1))
    move(bob, placement, 1006, "101")
    publish(placement)
    rows = roster_rows(placement, LAYOUTS["plain"], exact=True)
    days = {row[0]: row[-2:] for row in rows[1:]}
    assert days["+470"] == ["2026-08-20", "2026-10-31"]
    assert days["+475"] == ["2026-11-01", "2026-12-18"]
    assert days["+471"] == ["2026-08-20", "2026-12-18"]
    lists = floors_export(user=bob, placement=placement, file_format="csv")[0].decode()
    assert "101,1,S-1001" in lists
    assert "2026-10-31" in lists
    assert "101,1,S-1006" in lists
    assert "2026-11-01" in lists
    letter = template_save(
        user=bob, template=None, name="L", subject="S", text="[first day] - [last day] [roommates]"
    )
    told = {one.number: one for one in recipients_of(placement, letter)}
    assert told[1001].values["last day"] == "31 Oct 2026"
    assert told[1001].values["roommates"] == "Ben Birch"  # Finn comes when Anna has left
    assert told[1002].values["roommates"] == "Anna Ash and Finn Fir"
    written = Letter(template=letter, student=told[1001].student, place=told[1001].place)
    assert place_now(written, placement)
    page = Resident(placement.cohort.students.get(number=1006)).read()
    assert "2026-11-01 – 2026-12-18" in page.said_of("Term")
    assert page.one("main").says("Ben Birch")
    assert "Anna Ash" not in page.source


@pytest.mark.django_db
def test_new_dates_are_due_a_new_letter(bob, placement) -> None:
    publish(placement)
    letter = template_save(user=bob, template=None, name="L", subject="S", text="[room]")
    before = {one.number: one.place for one in recipients_of(placement, letter)}
    set_dates(bob, placement, 1003, last=date(2026, 10, 31))
    after = {one.number: one.place for one in recipients_of(placement, letter)}
    assert [n for n in before if before[n] != after[n]] == [1003]


@pytest.mark.django_db
def test_staff_set_dates_on_a_page_and_a_refusal_keeps_what_was_typed(
    bob, placement, client_of
) -> None:
    client = client_of(bob)
    address = reverse("housing:place-dates", args=[placement.pk, 1005])
    assert Page(client.get(address)).one("main").says("20 Aug 2026 to 18 Dec 2026")
    sent = {"arrives_on": "2026-09-01", "leaves_on": "2026-08-30", "version": placement.version}
    refused = Page(client.post(address, sent), status=422)
    assert "The last day is before the first day." in refused.field("Last day").description
    assert refused.field("Last day").value == "2026-08-30"
    assert client.post(address, sent | {"leaves_on": ""}).status_code == 302
    assert place(placement, 1005).arrives_on == date(2026, 9, 1)
    room = place(placement, 1005).room_id
    page = Page(client.get(reverse("housing:placement", args=[placement.pk]), {"room": room}))
    assert page.one("complementary", "Room").says("1 Sep 2026 to 18 Dec 2026")


@pytest.mark.django_db
@pytest.mark.parametrize("who", ["alice", "mallory"])
def test_only_staff_of_the_organisation_set_dates(placement, client_of, request, who) -> None:
    """Alice is a viewer, Mallory is staff of another organisation."""
    answer = client_of(request.getfixturevalue(who)).post(
        reverse("housing:place-dates", args=[placement.pk, 1001]),
        {"leaves_on": "2026-10-01", "version": placement.version},
    )
    assert answer.status_code in (403, 404)
    assert place(placement, 1001).leaves_on is None
