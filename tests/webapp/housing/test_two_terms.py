"""One cohort in the autumn and in the spring: two published placements, and one bed on each day."""

from collections.abc import Callable
from datetime import date

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.placed import placed_cohort
from tests.webapp.factories.programs import Program
from tests.webapp.factories.residents import Resident
from tests.webapp.housing.test_dates_of_beds import AUTUMN, SPRING, a_term
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.api.services import token_create
from webapp.housing.errors import HousingError
from webapp.housing.models import BuildingList, Place, Placement, Term
from webapp.housing.scores import Scores
from webapp.housing.selectors.publication import publish_question
from webapp.housing.selectors.request_counts import reference_placement
from webapp.housing.selectors.scenarios import compared_placements
from webapp.housing.services.decisions import Move, moving
from webapp.housing.services.drafts import draft_add, draft_confirm
from webapp.housing.services.locking import building_lists_first
from webapp.housing.services.publication import placement_publish, placement_unpublish
from webapp.housing.services.stays import place_dates_set
from webapp.housing.services.terms import placement_term_set, term_save
from webapp.housing.shared_pages import next_steps
from webapp.letters.recipients import recipients_of
from webapp.letters.services.letters import letters_due, letters_queue
from webapp.letters.services.templates import template_save
from webapp.students.rooms import rooms_in_words, stays_of
from webapp.students.search import search

ClientOf = Callable[[User], Client]
pytestmark = pytest.mark.django_db


def fresh(placement: Placement) -> Placement:
    return Placement.objects.get(pk=placement.pk)


def publish(user: User, placement: Placement) -> None:
    now = fresh(placement)
    placement_publish(user=user, placement=now, version=now.version)


def copy_of(user: User, like: Placement, name: str, term: Term | None) -> Placement:
    """Another placement of the cohort: everybody in the bed of somebody else."""
    made = Placement.objects.create(
        organisation=like.organisation, created_by=user, name=name, cohort=like.cohort,
        buildings=like.buildings, model=like.model, term=term, revision=1,
    )  # fmt: skip
    places = list(like.places.order_by("number"))
    turned = [*places[1:], places[0]]
    Place.objects.bulk_create(
        Place(
            placement=made, student=place.student, number=place.number, room=other.room,
            bed=other.bed,
        )
        for place, other in zip(places, turned, strict=True)
    )  # fmt: skip
    return made


@pytest.fixture
def autumn(bob: User, monkeypatch: pytest.MonkeyPatch) -> Placement:
    """Anna and Ben share 101, Cleo and Dan 102, Eva lives alone in 103; Finn has no room."""
    monkeypatch.setattr(Scores, "of_rooms", lambda self, rooms, stays=None: {})
    made = placed_cohort(bob)
    placement_term_set(user=bob, placement=made, term=a_term(bob, "Autumn", AUTUMN))
    return fresh(made)


@pytest.fixture
def spring(bob: User, autumn: Placement) -> Placement:
    """Anna has Ben's bed, Ben Cleo's, Cleo Dan's, Dan Eva's; Eva has none, Finn has Anna's."""
    return copy_of(bob, autumn, "Rooms in spring", a_term(bob, "Spring", SPRING))


@pytest.fixture
def both(bob: User, autumn: Placement, spring: Placement) -> tuple[Placement, Placement]:
    publish(bob, autumn)
    publish(bob, spring)
    return fresh(autumn), fresh(spring)


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[date], None]:
    """A function that sets today, in the eyes of what is current."""

    def set_today(day: date) -> None:
        monkeypatch.setattr(
            "webapp.housing.selectors.publication.timezone.localdate", lambda *_: day
        )

    return set_today


def test_both_terms_are_published_and_withdrawn_one_by_one(bob: User, both) -> None:
    autumn, spring = both
    assert autumn.is_published
    assert spring.is_published
    placement_unpublish(user=bob, placement=autumn, people=5)
    assert not fresh(autumn).is_published
    assert fresh(spring).is_published
    assert autumn.places.with_bed().count() == 5


def test_a_placement_for_the_same_term_replaces_that_one_alone(bob: User, both) -> None:
    autumn, spring = both
    again = copy_of(bob, spring, "Spring again", spring.term)
    assert "Rooms in spring is published now" in publish_question(again, [])
    assert "Rooms of First-years" not in publish_question(again, [])
    publish(bob, again)
    assert fresh(autumn).is_published
    assert not fresh(spring).is_published


def test_the_question_before_the_second_term_names_no_publication_that_ends(
    bob: User, autumn: Placement, spring: Placement
) -> None:
    publish(bob, autumn)
    assert publish_question(spring, []) == ""


def test_acts_on_published_terms_wait_for_each_other(bob: User, both) -> None:
    """Two people at one moment must not give a student beds in both, whatever their buildings."""
    autumn, spring = both
    own = BuildingList.objects.create(
        organisation=bob.organisation, created_by=bob, name="Campus in spring"
    )
    draft = copy_of(bob, autumn, "A draft", None)
    Placement.objects.filter(pk=spring.pk).update(buildings=own)
    in_order = sorted([autumn.buildings, own], key=lambda one: one.pk)
    for placement in (autumn, fresh(spring), draft):
        assert list(building_lists_first(placement)) == in_order
    placement_unpublish(user=bob, placement=fresh(spring), people=5)
    assert list(building_lists_first(autumn)) == [autumn.buildings]


@pytest.mark.parametrize("has_term", [True, False])
def test_beds_on_the_same_days_are_refused_with_names(
    bob: User, autumn: Placement, spring: Placement, has_term: bool
) -> None:
    publish(bob, autumn)
    late = a_term(bob, "Late", (AUTUMN[1], SPRING[1])) if has_term else None
    placement_term_set(user=bob, placement=spring, term=late)
    with pytest.raises(HousingError) as refused:
        publish(bob, spring)
    assert "S-1001, S-1002, S-1003, S-1004 have a bed on the same days in" in str(refused.value)
    assert "20 Aug 2026 to 18 Dec 2026" in str(refused.value)
    assert not fresh(spring).is_published
    assert fresh(autumn).is_published


def test_other_dates_of_terms_and_beds_keep_one_bed_a_day(bob: User, both) -> None:
    autumn, spring = both
    term = spring.term
    with pytest.raises(HousingError, match="S-1001, S-1002"):
        term_save(user=bob, term=term, name="Spring", code="", starts_on=AUTUMN[1],
                  ends_on=SPRING[1])  # fmt: skip
    with pytest.raises(HousingError, match="is published for Autumn already"):
        placement_term_set(user=bob, placement=spring, term=autumn.term)
    with pytest.raises(HousingError, match="is published for Spring already"):
        placement_term_set(user=bob, placement=autumn, term=term)
    assert fresh(spring).term == term


def test_overlapping_terms_of_one_cohort_give_no_student_and_no_bed_twice(
    bob: User, carol: User, autumn: Placement, spring: Placement
) -> None:
    """Spring begins on the last day of autumn; only Finn has a bed there, in 104."""
    publish(bob, autumn)
    spring.places.update(room=None, bed=None)
    finn = spring.places.get(number=1006)
    finn.room, finn.bed = spring.buildings.rooms.get(name="104"), 1
    finn.save()
    late = a_term(bob, "Late", (AUTUMN[1], SPRING[1]))
    placement_term_set(user=bob, placement=spring, term=late)
    publish(bob, spring)
    now = fresh(spring)

    def give(number: int, name: str) -> None:
        room = now.buildings.rooms.get(name=name)
        draft = draft_add(
            user=bob, placement=fresh(spring), version=fresh(spring).version,
            decision=moving([Move(number, room.pk)], "moved"),
        )  # fmt: skip
        draft_confirm(user=bob, draft=draft, people=1, version=fresh(spring).version)

    with pytest.raises(HousingError, match="S-1001 has a bed on the same days"):
        give(1001, "104")
    with pytest.raises(HousingError, match="taken in Rooms of First-years"):
        give(1006, "101")
    # Anna leaves a day earlier in autumn: then she may have it.
    place_dates_set(
        user=bob, placement=fresh(autumn), number=1001, arrives_on=None,
        leaves_on=date(2026, 12, 17), version=fresh(autumn).version,
    )  # fmt: skip
    give(1001, "104")
    with pytest.raises(HousingError, match="S-1001 has a bed on the same days"):
        place_dates_set(
            user=bob, placement=fresh(autumn), number=1001, arrives_on=None, leaves_on=None,
            version=fresh(autumn).version,
        )  # fmt: skip


def test_the_current_bed_comes_first(bob: User, both, on, client_of: ClientOf) -> None:
    autumn, _ = both
    student = autumn.cohort.students.get(number=1002)
    wanted = [(autumn.cohort, 1002)]
    key = (autumn.cohort_id, 1002)
    in_autumn = "Alder 101, bed 2 (Autumn: 20 Aug 2026 to 18 Dec 2026)"
    in_spring = "Alder 102, bed 1 (Spring: 10 Jan 2027 to 20 May 2027)"
    token = token_create(user=bob, name="t", may_change=False, days=30)[1]
    program = Program(token)
    for today, words in (
        (date(2026, 10, 1), f"{in_autumn}; {in_spring}"),
        (date(2027, 2, 1), f"{in_spring}; {in_autumn}"),
        (date(2026, 12, 24), f"{in_spring}; {in_autumn}"),
    ):
        on(today)
        assert rooms_in_words(wanted)[key] == words
        (hit,) = search(bob, "Ben Birch")
        assert hit.detail.startswith(f"{words}. ")
        assert [s.room for s in stays_of(student)] == [
            part.split(",")[0] for part in words.split("; ")
        ]
        listed = program.get(f"/cohorts/{autumn.cohort_id}/students").json()["items"]
        assert next(one for one in listed if one["student"] == "S-1002")["room"] == words
    on(date(2027, 2, 1))
    page = Page(client_of(bob).get(reverse("students:student", args=[autumn.cohort_id, 1002])))
    stays = page.every("listitem", "Alder 10")
    assert [stay.text.split(",")[0] for stay in stays] == ["Alder 102", "Alder 101"]
    assert stays[0].says("10 Jan 2027 to 20 May 2027")


def test_students_see_both_terms_on_their_page(both, on) -> None:
    autumn, spring = both
    resident = Resident(autumn.cohort.students.get(number=1002))
    on(date(2026, 10, 1))
    page = resident.read()
    assert page.every("heading")[0].text == "Alder 101"
    assert page.said_of("Term") == "Autumn, 2026-08-20 – 2026-12-18"
    assert page.has("heading", "Other terms")
    other = page.one("listitem", "Alder 102")
    assert other.says("Spring, 2027-01-10 – 2027-05-20")
    assert page.one("main").says("Anna Ash")
    on(date(2027, 2, 1))
    page = resident.read()
    assert page.every("heading")[0].text == "Alder 102"
    assert page.one("listitem", "Alder 101").says("Autumn, 2026-08-20 – 2026-12-18")
    spanish = Resident(autumn.cohort.students.get(number=1002), "es").read()
    assert spanish.has("heading", "Otros periodos")
    placement_unpublish(user=User.objects.get(username="bob"), placement=spring, people=5)
    assert not resident.read().says("Other terms")


def test_letters_of_two_terms_do_not_make_each_other_due(bob: User, both) -> None:
    autumn, spring = both
    letter = template_save(
        user=bob, template=None, name="L", subject="S", text="[room] [first day]"
    )
    for placement in (autumn, spring):
        due = letters_due(letter, placement, recipients_of(placement, letter))
        assert (len(due.first), len(due.again)) == (5, 0)
        letters_queue(
            user=bob, placement=fresh(placement), template=letter,
            version=fresh(placement).version,
        )  # fmt: skip
    for placement in (autumn, spring):
        due = letters_due(letter, placement, recipients_of(placement, letter))
        assert not due.everybody
    waiting = letter.letters.filter(state="waiting")
    assert waiting.count() == 10
    days = {one.text.split()[-1] for one in waiting.filter(placement=spring)}
    assert any("2027" in text for text in days)


def test_scenarios_and_home_know_both_terms(
    bob: User, both, on: Callable[[date], None], client_of: ClientOf
) -> None:
    autumn, spring = both
    on(date(2026, 10, 1))
    assert compared_placements(autumn.cohort) == ([autumn, spring], autumn)
    assert reference_placement(autumn.cohort) == autumn
    on(date(2027, 2, 1))
    assert compared_placements(autumn.cohort)[1] == spring
    assert reference_placement(autumn.cohort) == spring
    summer = copy_of(bob, spring, "Rooms in summer", None)
    assert client_of(bob).get(reverse("common:home")).status_code == 200
    steps = [step.title for step in next_steps(bob)]
    assert steps == [f"Look at the rooms of {summer.name}"]
