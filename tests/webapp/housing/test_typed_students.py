"""Students typed by name, number, e-mail or id on screen, and the choice among namesakes."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.campus import RULES, two_rooms
from tests.webapp.factories.placed import placed_cohort
from tests.webapp.factories.university import run_waiting
from tests.webapp.roles import Page
from tests.webapp.typed_forms import field_values
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort
from webapp.cohorts.naming import forget_directories
from webapp.housing.errors import HousingError
from webapp.housing.models import BuildingList, Placement
from webapp.housing.services.placements import placement_create
from webapp.housing.typed_students import SeveralStudentsError, students_typed
from webapp.matching.models import LearnedModel

ClientOf = Callable[[User], Client]


@pytest.fixture
def solved(
    bob: User, first_years: Cohort, campus: BuildingList, learned: LearnedModel
) -> Placement:
    """A placement that the solver made, whose rooms can be changed."""
    made = placement_create(
        user=bob, name="Solved", cohort=first_years, buildings=campus, model=learned, rules=RULES
    )
    run_waiting()
    made.refresh_from_db()
    return made


@pytest.fixture
def placement(bob: User) -> Placement:
    """Two students called Anna Ash, 1001 and 1005; 1006 has no room."""
    made = placed_cohort(bob)
    made.cohort.students.filter(number=1005).update(name="Ánna Ash", original_id="N5")
    Cohort.objects.filter(pk=made.cohort_id).update(revision=1)
    forget_directories()
    return Placement.objects.select_related("cohort").get(pk=made.pk)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("S-1002", [1002]),
        ("s-1002 S-1003", [1002, 1003]),
        ("1002", [1002]),
        ("birch ben", [1002]),
        ("Ben Birch; cleo@uni.example\nS-1004, n5", [1002, 1003, 1004, 1005]),
        ("dán", [1004]),
    ],
)
def test_every_way_to_name_a_student_is_taken(
    bob: User, placement: Placement, text: str, numbers: list[int]
) -> None:
    assert students_typed(bob, placement.cohort, [text]) == numbers


def test_namesakes_are_a_choice_that_keeps_what_else_was_typed(
    bob: User, placement: Placement
) -> None:
    with pytest.raises(SeveralStudentsError) as error:
        students_typed(bob, placement.cohort, ["Ben Birch, anna ash, Dan"])
    assert error.value.choices == [(1001, "S-1002, S-1001, Dan"), (1005, "S-1002, S-1005, Dan")]
    assert "S-1001, S-1005. Choose one of them" in str(error.value)
    assert "Birch" not in str(error.value)


@pytest.mark.parametrize("text", ["Nobody Here", "' OR 1=1 --", "x" * 5000, "\x00"])
def test_unknown_people_are_named_in_one_sentence(
    bob: User, placement: Placement, text: str
) -> None:
    with pytest.raises(HousingError, match="is nobody in First-years"):
        students_typed(bob, placement.cohort, [text])
    with pytest.raises(HousingError, match="at most 500 students"):
        students_typed(bob, placement.cohort, ["S-1,"] * 501)


def test_nobody_finds_a_name_without_the_right_to_see_it(bob: User, placement: Placement) -> None:
    bob.organisation.names_for = "administrators"
    bob.organisation.save()
    for text in ("Ben Birch", "ben@uni.example", "+471"):
        with pytest.raises(HousingError, match="Use an id on screen, such as S-1042"):
            students_typed(bob, placement.cohort, [text])
    assert students_typed(bob, placement.cohort, ["S-1002"]) == [1002]


def test_two_people_swap_by_name_and_namesakes_are_asked(
    client_of: ClientOf, bob: User, solved: Placement
) -> None:
    (ben, anna), (cleo, other) = two_rooms(solved)
    for number, name in ((ben, "Ben Birch"), (cleo, "Cleo Cedar"), (anna, "Anna Ash")):
        solved.cohort.students.filter(number=number).update(name=name)
    solved.cohort.students.filter(number=other).update(name="Anna Ash")
    forget_directories()
    client, places = client_of(bob), solved.places
    room = dict(places.values_list("number", "room"))
    address = reverse("housing:placement-decide", args=[solved.pk])
    sent = {"act": "swap", "version": solved.version}
    client.post(address, {**sent, "student": ["Ben Birch", "Cleo Cedar"]})
    assert places.get(number=ben).room_id == room[cleo]
    assert places.get(number=cleo).room_id == room[ben]
    sent["version"] = Placement.objects.get(pk=solved.pk).version
    page = Page(client.post(address, {**sent, "student": [f"S-{ben}", "anna ash"]}))
    assert page.has("heading", "Who is meant?")
    choices = {button.value for button in page.every("button", "Anna Ash")}
    assert choices == {f"S-{ben}, S-{anna}", f"S-{ben}, S-{other}"}
    assert places.get(number=ben).room_id == room[cleo], "nothing is guessed"
    client.post(address, {**sent, "student": f"S-{ben}, S-{anna}"})
    assert places.get(number=ben).room_id == room[anna]


def test_rooms_are_chosen_for_a_name(client_of: ClientOf, bob: User, placement: Placement) -> None:
    client, address = client_of(bob), reverse("housing:placement-choose", args=[placement.pk])
    answer = client.get(address, {"student": "Anna Ash", "act": "move"})
    question = Page(answer).one("status", "Several students match “Anna Ash”. Who is meant?")
    people = [button.name for button in question.every("button")]
    assert people == ["Anna Ash S-1001", "Ánna Ash S-1005"]
    assert {"S-1001", "S-1005"} <= set(field_values(answer, "student"))
    page = Page(client.get(address, {"student": "nobody", "act": "move"}))
    assert page.has("alert", "is nobody in First-years")


def test_late_changes_take_names_and_ask_about_namesakes(
    client_of: ClientOf, bob: User, placement: Placement
) -> None:
    client, address = client_of(bob), f"/placements/{placement.pk}/changes/withdraw/"
    sent = {"students": "Ben Birch, anna ash", "version": placement.version}
    asked = Page(client.post(address, sent))
    assert asked.has("paragraph", "Nobody is withdrawn yet.")
    assert not placement.places.filter(has_left=True).exists()
    choices = {button.value for button in asked.every("button", "nna Ash")}
    assert choices == {"S-1002, S-1001", "S-1002, S-1005"}
    chosen = {"students": "S-1002, S-1005", "version": placement.version}
    assert client.post(address, chosen).status_code == 302
    gone = placement.places.filter(has_left=True).values_list("number", flat=True)
    assert sorted(gone) == [1002, 1005]


def test_a_search_while_names_are_hidden_leaves_a_line(bob: User, placement: Placement) -> None:
    bob.hides_names = True
    students_typed(bob, placement.cohort, ["Ben Birch"])
    assert AuditLine.objects.get(verb="searched for students").details["found"] == ["S-1002"]
