"""Past roommates by id, e-mail or name, near matches to confirm, and rosters of rooms."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
from django.urls import reverse

from engine.tabular.choices import Choices, Role
from engine.tabular.person_search import People
from tests.tabular.file_writers import as_csv
from tests.webapp.factories.cohorts import survey_csv
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort, Draft, Student
from webapp.cohorts.selectors.surveys import cohort_rooms
from webapp.cohorts.services.drafts import draft_create, draft_update
from webapp.cohorts.services.imports import draft_import

STRANGERS = Path(__file__).parents[2] / "tabular" / "strangers"
NAMES = [
    "Zoë Müller", "José García", "Søren Ålund", "Anna Schmidt", "Anne Schmidt", "Li Wei",
    "Nguyễn Văn An", "Fatima al-Sayed", "Olu Adebayo", "Ivan Petrov", "Chloë Dupont", "Sam Lee",
]  # fmt: skip


@pytest.fixture
def named(bob: User) -> Cohort:
    """A cohort of twelve whose names and e-mails staff chose to keep."""
    rows = [line.split(",") for line in survey_csv(12).decode().splitlines()]
    rows[0] += ["Full name", "E-mail"]
    for k, row in enumerate(rows[1:]):
        row += [NAMES[k], f"Person{k}@Northfield.example"]
    data = as_csv(rows)
    draft = draft_create(user=bob, filename="s.csv", size=len(data), read=lambda: data)
    choices = Choices.from_json(draft.choices).with_role([5], Role.NAME).with_role([6], Role.EMAIL)
    draft = draft_update(draft=draft, choices=choices.to_json(), version=draft.version)
    return draft_import(user=bob, draft=draft, name="Named", version=draft.version)


class PairsPage:
    """The page of a file of roommates."""

    def __init__(self, client: object, cohort: Cohort, as_upload: Callable) -> None:
        self.client, self.cohort, self.as_upload = client, cohort, as_upload

    def send(self, rows: list[list[str]]) -> Page:
        address = reverse("cohorts:pairs-upload", args=[self.cohort.pk])
        upload = self.as_upload(as_csv(rows), "past.csv")
        return Page(self.client.post(address, {"file": upload}, follow=True))

    def press(self, page: str = "pairs-draft", **fields: object) -> Page:
        draft = Draft.objects.get(cohort=self.cohort)
        address = reverse(f"cohorts:{page}", args=[self.cohort.pk, draft.pk])
        fields = {"version": draft.version, **fields}
        return Page(self.client.post(address, fields, follow=True))

    def pairs(self) -> set[frozenset[int]]:
        pairs = self.cohort.past_pairs.values_list("first__number", "second__number")
        return {frozenset(number - 1001 for number in pair) for pair in pairs}


@pytest.fixture
def page(bob: User, client_of: Callable, named: Cohort, as_upload: Callable) -> PairsPage:
    return PairsPage(client_of(bob), named, as_upload)


def test_names_in_any_order_and_case_find_people(page: PairsPage) -> None:
    shown = page.send(
        [["Roommate", "Student"], ["Muller, Zoe", "JOSÉ  GARCIA"], ["li wei", "Petrov Ivan"]]
    )
    assert shown.has("button", "Import 2 pairs")
    draft = Draft.objects.get(cohort=page.cohort)
    assert draft.choices["columns"] == [1, 0]  # the first is not the one called roommate
    page.press("pairs-confirm")
    assert page.pairs() == {frozenset({0, 1}), frozenset({5, 9})}


def test_e_mails_do_not_differ_by_capitals(page: PairsPage) -> None:
    page.send(
        [["e-mail", "roommate"], ["person2@northfield.example", "PERSON3@northfield.EXAMPLE"]]
    )
    page.press("pairs-confirm")
    assert page.pairs() == {frozenset({2, 3})}


def test_near_names_are_asked_and_never_guessed(page: PairsPage) -> None:
    shown = page.send([["a", "b"], ["Soren Alund", "Ivan Petrow"], ["Ann Schmidt", "Sam Lee"]])
    assert shown.has("listitem", "Row 2: Ivan Petrow is not a student of this cohort.")
    assert shown.says("Nearly “Ivan Petrov”")
    assert shown.has("button", "Use 1 sure match")  # "Ann" may be Anna or Anne
    shown = page.press(action="sure")
    assert "Ivan Petrow is not" not in shown.source
    assert shown.has("listitem", "Ann Schmidt is not a student")
    page.press(action="same", cell="Ann Schmidt", position=99)
    assert page.press().says("Ann Schmidt is not a student")
    page.press(action="same", cell="Ann Schmidt", position=4)
    page.press("pairs-confirm")
    assert page.pairs() == {frozenset({2, 9}), frozenset({4, 11})}


def test_rows_of_strangers_can_be_left_out(page: PairsPage) -> None:
    page.send([["a", "b"], ["Zoë Müller", "Li Wei"], ["Who Ever", "Sam Lee"]])
    page.press(action="without")
    page.press("pairs-confirm")
    assert page.pairs() == {frozenset({0, 5})}


def test_two_of_one_name_are_nobody() -> None:
    people = People(("1", "2", "3"), names=("Sam Lee", "Lee, Sam", "Li Wei"))
    assert people.find("Sam Lee") is None
    assert people.near("Sam Lee") is None or not people.near("Sam Lee").is_sure
    assert people.find("Wei Li") == 2


def test_which_of_two_namesakes_is_asked_row_by_row(
    bob: User, client_of: Callable, as_upload: Callable
) -> None:
    data = (STRANGERS / "names_minimal.csv").read_bytes()
    draft = draft_create(user=bob, filename="s.csv", size=len(data), read=lambda: data)
    choices = Choices.from_json(draft.choices).with_role([1], Role.NAME)
    draft = draft_update(draft=draft, choices=choices.to_json(), version=draft.version)
    cohort = draft_import(user=bob, draft=draft, name="Namesakes", version=draft.version)
    page = PairsPage(client_of(bob), cohort, as_upload)
    pairs = (STRANGERS / "names_minimal_pairs.csv").read_text().splitlines()
    shown = page.send(list(csv.reader(pairs)))
    question = "2 students are called Avaa Kim. Which one?"
    assert shown.text.count(question) == 2  # the list, the problem
    assert shown.says("S-1001, s0@x.edu")
    assert shown.says("S-1002, s1@x.edu")
    assert "sure match" not in shown.source, "Ava Kim is somebody else"
    assert AuditLine.objects.filter(verb="looked up ids").exists()
    page.press(action="same", cell="2: Kim, Avaa", position=1)
    page.press("pairs-confirm")
    assert page.pairs() == {frozenset({1, 3}), frozenset({2, 4}), frozenset({5, 6})}


def test_an_id_is_never_nearly_another() -> None:
    people = People(("N00001", "N00002"))
    assert people.near("N00003") is None


def test_ids_of_both_are_taken_where_e_mails_stand_beside_them(page: PairsPage) -> None:
    """It used to take the id and the e-mail of one person for a pair."""
    rows = [["Student ID", "Student e-mail", "Roommate ID", "Roommate e-mail"]]
    rows += [[f"N{a:03d}", f"person{a}@northfield.example", f"N{b:03d}", ""]
             for a, b in ((0, 1), (2, 3))]  # fmt: skip
    page.send(rows)
    assert Draft.objects.get(cohort=page.cohort).choices["columns"] == [0, 2]


ROSTER = [
    ["Hall", "Room", "Bed", "E-mail"],
    ["Oak", "101", "A", "person0@northfield.example"],
    ["Oak", "101", "B", "person1@northfield.example"],
    ["Oak", "102", "A", "person2@northfield.example"],
    ["Oak", "102", "B", "person3@northfield.example"],
    ["Oak", "102", "C", "person4@northfield.example"],
    ["Elm", "101", "A", "person5@northfield.example"],
    ["Elm", "101", "B", ""],
    ["Elm", "103", "A", "person6@northfield.example"],
    ["Elm", "103", "B", "person7@northfield.example"],
]


def test_a_roster_gives_pairs_and_rooms_of_any_size(page: PairsPage) -> None:
    shown = page.send(ROSTER)
    assert shown.says("1 room of 1, 2 rooms of 2, 1 room of 3")
    assert shown.has("button", "Import 3 shared rooms")
    assert page.press("pairs-confirm").one("status").says("5 pairs in 3 shared rooms imported")
    page.cohort.refresh_from_db()
    assert (page.cohort.n_pairs, page.cohort.n_rooms) == (5, 3)
    assert page.pairs() == {frozenset({0, 1}), frozenset({6, 7})}
    assert cohort_rooms(page.cohort).tolist() == [0, 0, 1, 1, 1, -1, 2, 2, -1, -1, -1, -1]


def test_pairs_replace_a_roster(page: PairsPage) -> None:
    page.send(ROSTER)
    page.press("pairs-confirm")
    page.send([["a", "b"], ["N000", "N005"]])
    page.press("pairs-confirm")
    page.cohort.refresh_from_db()
    assert (page.cohort.n_pairs, page.cohort.n_rooms) == (1, 0)
    assert not Student.objects.exclude(past_room=None).exists()


def test_somebody_in_two_rooms_stops_a_roster(page: PairsPage) -> None:
    shown = page.send([*ROSTER, ["Elm", "104", "A", "person0@northfield.example"]])
    assert shown.has("listitem", "person0@northfield.example is in two rooms, first in row 2.")
    assert page.press("pairs-confirm").one("alert").says("Nothing was imported")
