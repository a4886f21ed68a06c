"""Needs in other words than those of the rooms: asked once, kept, and used everywhere."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.factories.placed import placed_cohort
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort, Student
from webapp.housing.errors import HousingError
from webapp.housing.models import NeedMeaning, Placement, Room
from webapp.housing.problem import _Following, _rooms
from webapp.housing.rules import PlacementRules, broken_rule, unmet_needs
from webapp.housing.selectors.need_meanings import needs_in_words
from webapp.housing.services.buildings import room_save
from webapp.housing.services.need_meanings import need_meaning_set
from webapp.matching.models import LearnedModel

ClientOf = Callable[[User], Client]
RULES = PlacementRules(needs=("Needs",))


@pytest.fixture
def placement(bob: User) -> Placement:
    """Anna needs a ground-floor room, Ben a wheelchair; room 101 says Ground floor."""
    made = placed_cohort(bob)
    Cohort.objects.filter(pk=made.cohort_id).update(constraints=["Needs"], needs=["Needs"])
    students = made.cohort.students
    students.update(attributes={"Needs": "no"})
    students.filter(number=1001).update(attributes={"Needs": "Ground-floor room"})
    students.filter(number=1002).update(attributes={"Needs": "Wheelchair, Ground-floor room"})
    made.buildings.rooms.filter(name="101").update(meets=["Ground floor"])
    Placement.objects.filter(pk=made.pk).update(rules=RULES.to_json())
    return Placement.objects.get(pk=made.pk)


def room(placement: Placement, name: str = "101") -> Room:
    return placement.buildings.rooms.get(name=name)


def person(number: int) -> Student:
    return Student.objects.get(number=number)


def test_the_question_is_asked_once_and_the_answer_counts_everywhere(
    client_of: ClientOf, bob: User, placement: Placement
) -> None:
    client, address = client_of(bob), reverse("housing:needs", args=[placement.cohort_id])
    page = Page(client.get(reverse("housing:placement", args=[placement.pk])))
    notice = page.one("region", "Needs in other words than the rooms")
    assert notice.says("No room says “Ground-floor room”, “Wheelchair”.")
    LearnedModel.objects.update(learned_at=timezone.now())
    new = f"{reverse('housing:placement-new')}?cohort={placement.cohort_id}"
    notice = Page(client.get(new)).one("region", "Needs in other words than the rooms")
    assert notice.says("No room says “Ground-floor room”")
    assert broken_rule(room(placement), [person(1001)], RULES) == (
        "S-1001 needs Ground-floor room, which Alder 101 does not offer."
    )
    question = Page(client.get(address)).one("group", "Which rooms meet “Ground-floor room”?")
    assert question.one("checkbox", "Ground floor").is_checked, "a good guess"
    sent = {"need": "Ground-floor room", "offers": ["Ground floor"]}
    assert client.post(address, sent).status_code == 302
    assert broken_rule(room(placement), [person(1001)], RULES) == ""
    assert unmet_needs(["GROUND-FLOOR ROOM"], room(placement)) == []
    assert unmet_needs(["Ground-floor room"], room(placement, "102")) == ["Ground-floor room"]
    open_rooms, nobody = [room(placement), room(placement, "102")], _Following([], {}, ())
    rooms = _rooms(open_rooms, [person(1001)], RULES, {}, {}, {}, nobody)
    assert rooms.attributes["Ground-floor room"] == ("yes", "no"), "the solver knows it too"
    client.post(address, {"need": "Wheelchair", "none": "1"})
    page = Page(client.get(reverse("housing:placement", args=[placement.pk])))
    assert not page.says("No room says"), "both have an answer"
    assert "needs Wheelchair" in broken_rule(room(placement), [person(1002)], RULES)
    lines = AuditLine.objects.filter(verb="said which rooms meet a need")
    assert [line.details for line in lines.order_by("pk")] == [
        {"offers": ["Ground floor"]}, {"offers": []},
    ]  # fmt: skip


def test_an_answer_holds_for_rooms_of_later_lists_and_can_be_removed(
    client_of: ClientOf, bob: User, placement: Placement
) -> None:
    need_meaning_set(user=bob, need="Ground-floor room", offers=["Ground floor"])
    values = {"hall": "Elm", "floor": "", "name": "1", "capacity": 2, "designation": "",
              "meets": ["ground floor"], "state": "open", "note": ""}  # fmt: skip
    made = room_save(user=bob, buildings=placement.buildings, room=None, values=values).room
    made.refresh_from_db()
    assert made.also_meets == ["Ground-floor room"]
    room_save(user=bob, buildings=placement.buildings, room=made, values={**values, "meets": []})
    made.refresh_from_db()
    assert made.also_meets == []
    meaning = NeedMeaning.objects.get()
    address = reverse("housing:need-ask", args=[placement.cohort_id, meaning.pk])
    client_of(bob).post(address)
    assert not NeedMeaning.objects.exists()
    assert unmet_needs(["Ground-floor room"], room(placement)) == ["Ground-floor room"]


def test_a_wrong_answer_is_given_back(client_of: ClientOf, bob: User, placement: Placement) -> None:
    client, address = client_of(bob), reverse("housing:needs", args=[placement.cohort_id])
    empty = Page(client.post(address, {"need": "Wheelchair"}), status=422)
    assert empty.says("Tick what these rooms say")
    sent = {"need": "Wheelchair", "offers": ["<b>Moon</b>"]}
    unknown = Page(client.post(address, sent), status=422)
    assert unknown.says("<b>Moon</b>” any more")
    assert client.post(address, {"need": " ", "none": "1"}).status_code == 422
    assert client.post(address, {"need": "x" * 201, "none": "1"}).status_code == 422
    with pytest.raises(HousingError):
        need_meaning_set(user=bob, need="x" * 201, offers=[])
    assert not NeedMeaning.objects.exists()


def test_needs_of_two_organisations_are_apart(
    client_of: ClientOf, bob: User, alice: User, mallory: User, placement: Placement
) -> None:
    theirs = placed_cohort(mallory, "Theirs")
    theirs.buildings.rooms.update(meets=["Ground floor"])
    need_meaning_set(user=mallory, need="Wheelchair", offers=["Ground floor"])
    assert not placement.buildings.rooms.exclude(also_meets=[]).exists()
    assert all(one.meaning is None for one in needs_in_words(placement.cohort))
    client = client_of(bob)
    assert client.get(reverse("housing:needs", args=[theirs.cohort_id])).status_code == 404
    meaning = NeedMeaning.objects.get()
    for cohort in (theirs.cohort_id, placement.cohort_id):
        ask = reverse("housing:need-ask", args=[cohort, meaning.pk])
        assert client.post(ask).status_code == 404
    address = reverse("housing:needs", args=[placement.cohort_id])
    assert client_of(alice).get(address).status_code == 403
    shown = Page(client_of(alice).get(reverse("housing:placement", args=[placement.pk])))
    assert "Wheelchair" not in shown.source, "viewers are asked nothing"
