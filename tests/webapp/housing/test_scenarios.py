"""Scenarios are compared on one footing: the same weights, and never best with fewer beds."""

from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

import pytest
from django.test import Client

from engine import load_roommate_model
from tests.webapp.factories.campus import RULES
from tests.webapp.factories.programs import Program
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.api.services import token_create
from webapp.cohorts.models import Cohort
from webapp.files import store
from webapp.housing.models import BuildingList, Place, Placement, Room
from webapp.housing.scores import Scores
from webapp.housing.selectors.scenarios import ComparedRow, scenarios_context
from webapp.matching.models import LearnedModel

ClientOf = Callable[[User], Client]


@pytest.fixture
def place(
    bob: User, first_years: Cohort, campus: BuildingList, learned: LearnedModel
) -> Callable[..., Placement]:
    """Store a placement of students two by two: those of ``pairs``, in the order of the rooms."""

    def build(name: str, pairs: list[tuple[int, int]], model: LearnedModel = learned) -> Placement:
        placement = Placement.objects.create(
            organisation=bob.organisation,
            name=name,
            cohort=first_years,
            buildings=campus,
            model=model,
            rules=RULES.to_json(),
            revision=1,
            best_at=first_years.created_at,
            figures={"relative_gap": 0.0},
        )
        rooms = list(Room.objects.filter(buildings=campus, capacity=2))
        pairs = numbered(first_years, pairs)
        where = {n: rooms[k] for k, pair in enumerate(pairs) for n in pair}
        scores = Scores(placement).of_rooms(pairs)
        Place.objects.bulk_create(
            Place(
                placement=placement,
                student=one,
                number=one.number,
                room=where.get(one.number),
                bed=1 + (one.number in [b for _, b in pairs]) if one.number in where else None,
                score=scores.get(one.number),
            )
            for one in first_years.students.all()
        )
        return placement

    return build


@pytest.fixture
def opposite(learned: LearnedModel) -> LearnedModel:
    """The model with every weight reversed and ten times as strong, as if set by hand."""
    model = load_roommate_model(store.get(learned.path))
    other = LearnedModel.objects.get(pk=learned.pk)
    other.pk, other.name, other._state.adding = uuid4(), "Opposite", True
    other.save()
    replace(model, theta=-10 * model.theta).save(other.path)
    return other


def row(cohort: Cohort, title: str) -> ComparedRow:
    """Return a line of the comparison."""
    return next(row for row in scenarios_context(cohort, {})["rows"] if row.title == title)


PAIRS = [(0, 1), (2, 3), (4, 5), (6, 7)]


def numbered(cohort: Cohort, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the numbers of pairs of students, each given by its position in the cohort."""
    numbers = list(cohort.students.order_by("number").values_list("number", flat=True))
    return [(numbers[a], numbers[b]) for a, b in pairs]


def test_a_scenario_that_gives_fewer_a_bed_is_never_best(
    place: Callable[..., Placement], first_years: Cohort, alice: User, client_of: ClientOf
) -> None:
    """One pair left out may raise the mean score, and that is no reason to choose it."""
    full = place("Full", PAIRS)
    scores = Scores(full).of_pairs(numbered(first_years, PAIRS))
    place("Picky", [pair for k, pair in enumerate(PAIRS) if k != scores.argmin()])
    assert [e.is_best for e in row(first_years, "Mean score").entries] == [False, False]
    assert [e.is_best for e in row(first_years, "Placed").entries] == [True, False]
    other = place("Other", [(0, 2), (1, 3), (4, 6), (5, 7)])
    means = [float(e.text.replace("−", "-")) for e in row(first_years, "Mean score").entries]
    best = [e.is_best for e in row(first_years, "Mean score").entries]
    assert best == [means[0] > means[2], False, means[2] > means[0]]
    assert means[1] > means[0]
    page = Page(client_of(alice).get(f"/cohorts/{first_years.pk}/scenarios/"))
    assert page.says("Picky gives 2 students fewer a bed, so nothing in it is marked as best.")
    assert not page.says(f"{other.name} gives")


def test_scores_of_two_models_are_compared_by_the_weights_of_one(
    place: Callable[..., Placement],
    opposite: LearnedModel,
    first_years: Cohort,
    alice: User,
    bob: User,
    client_of: ClientOf,
) -> None:
    swapped = [(0, 2), (1, 3), (4, 6), (5, 7)]
    first, second = place("First", PAIRS), place("Second", swapped, opposite)
    by_first = Scores(first).of_rooms(numbered(first_years, swapped))
    means = [entry.text.replace("−", "-") for entry in row(first_years, "Mean score").entries]
    assert means[1] == f"{sum(by_first.values()) / len(by_first):.2f}"
    by_own = Scores(second).of_rooms(numbered(first_years, swapped))
    assert means[1] != f"{sum(by_own.values()) / len(by_own):.2f}"
    note = f"by the weights of {first.model.name}; higher fits better"
    assert row(first_years, "Mean score").note == note
    page = Page(client_of(alice).get(f"/cohorts/{first_years.pk}/scenarios/"))
    assert page.says(f"All scores on this page are by the weights of {first.model.name}")
    _, secret = token_create(user=bob, name="sync", days=1, may_change=False)
    items = Program(secret).get(f"/cohorts/{first_years.pk}/scenarios").data["items"]
    assert [f"{item['outcome']['mean']:.2f}" for item in items] == means


def test_scenarios_in_which_nobody_shares_a_room_have_no_mean(
    place: Callable[..., Placement], first_years: Cohort
) -> None:
    place("Empty", [])
    place("Full", PAIRS)
    entries = row(first_years, "Mean score").entries
    assert entries[0].text == "nobody shares a room"
    assert [e.is_best for e in entries] == [False, False]
