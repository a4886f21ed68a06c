"""Checks of a placement: worked out by the engine, told with what they mean, for whom they are."""

from collections.abc import Callable
from itertools import permutations

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.university import run_waiting
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.housing.errors import HousingError
from webapp.housing.models import Placement
from webapp.housing.problem import placement_problem
from webapp.reports import figures
from webapp.reports.models import PlacementCheck
from webapp.reports.selectors import checks_context
from webapp.reports.services import check_start

ClientOf = Callable[[User], Client]


def at(placement: Placement, name: str = "checks") -> str:
    return reverse(f"reports:{name}", args=[placement.pk])


def test_checks_are_worked_out_and_read(
    client_of: ClientOf, alice: User, bob: User, placement: Placement,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """One run of the engine, read by every page of it."""
    monkeypatch.setattr(figures, "DOUBT_SECONDS", 3.0)
    client = client_of(bob)
    assert Page(client.get(at(placement))).has("paragraph", "Nothing is checked yet.")
    client.post(at(placement, "check-start"))
    with pytest.raises(HousingError, match="being checked right now"):
        check_start(user=bob, placement=placement)
    (job,) = run_waiting()
    assert job.state == "succeeded", job.error
    check = PlacementCheck.objects.get()
    found = check.figures
    together = placement.places.filter(room__isnull=False)
    assert found["doubt"]["n_pairs"] == len(found["pairs"]) > 5
    assert found["doubt"]["n_rare"] + len(found["doubt"]["pairs"]) == len(found["pairs"])
    likely = [row[3] for row in found["doubt"]["pairs"]]
    assert likely == sorted(likely)
    assert all(figures.RARE <= p <= 1.0 for p in likely)
    assert sum(found["doubt"]["bins"]) == found["doubt"]["n_pairs"]
    numbers = set(together.values_list("number", flat=True))
    assert {row[0] for row in found["pairs"]} <= numbers
    # A score of a pair is the mean that its two people have, when they live alone together.
    first, _, room, score = found["pairs"][0]
    if together.filter(room=room).count() == 2:
        assert score == pytest.approx(together.get(number=first).score, abs=1e-9)
    assert {row["measure"] for row in found["parity"]} >= {"score", "uncertainty"}
    shares = [row["mean"] for row in found["parity"] if row["measure"] == "uncertainty"]
    assert all(share is None or 0.0 < share <= 1.0 for share in shares)
    for tab, words in {
        "doubt": "It is not how likely they get on.",
        "veto": "did not learn from",
        "parity": "A mark does not prove unfairness",
        "drift": "A drift needs two years",
    }.items():
        page = Page(client_of(alice).get(at(placement), {"tab": tab}))
        assert page.has("paragraph", words), tab
        assert not page.has("button", "Check")


@pytest.mark.parametrize("has_others", [False, True])
def test_pairs_that_the_simulation_cannot_tell_apart_are_one_sentence(
    client_of: ClientOf, alice: User, placement: Placement, has_others: bool
) -> None:
    """A large cohort had 40 lines of 0.0 %; checks of earlier versions stored them."""
    room = placement.places.filter(room__isnull=False).first().room_id
    rows = [[1, 2, room, 0.0, 0.002]] * 60 + [[3, 4, room, 0.25, 0.02]] * has_others
    PlacementCheck.objects.create(
        placement=placement,
        version=placement.version,
        figures={
            "doubt": {"pairs": rows, "n_pairs": len(rows), "median": 0.0, "has_mixed": True},
            "parity": [
                {"column": "Gender", "measure": "doubt", "group": "F", "count": 30, "mean": 12.25,
                 "low": 11.0, "high": 13.0, "difference": 1.0, "is_outside": False},
            ],
        },
    )  # fmt: skip
    page = Page(client_of(alice).get(at(placement)))
    rare = page.one("paragraph", f"60 of {len(rows)} pairs would share a room in fewer than 4 of")
    assert "0.0 %" not in page.text.split("fewer than 4 of 100 draws.")[1]
    assert rare.says("The next pairs follow.") is has_others
    assert page.has("table", "Most uncertain pairs") is has_others
    assert len(page.every("cell", "25.0 %", exactly=True)) == has_others
    groups = Page(client_of(alice).get(at(placement), {"tab": "parity"}))
    table = groups.one("table", "Gender: ")
    assert "roommates about as likely" in table.name
    assert table.has("cell", "12.2")


def test_a_check_of_older_rooms_says_so(bob: User, placement: Placement) -> None:
    figures = {"doubt": {"pairs": []}, "pairs": [], "veto": {}, "parity": [], "drift": {}}
    PlacementCheck.objects.create(placement=placement, version=0, figures=figures)
    assert checks_context(placement, {})["is_stale"]


def test_a_veto_says_what_its_rate_rests_on(placement: Placement) -> None:
    curve = {
        "years": ["2024"],
        "thresholds": [-1.0, 0.0, 1.0],
        "false_alarms": [0.0, 0.04, 0.5],
        "vetoed": [0.0, 0.2, 0.7],
        "n_pairs": 50,
    }
    pairs = [[1001, 1002, 1, -0.5], [1003, 1004, 1, 0.5]]
    figures = {"doubt": {"pairs": []}, "pairs": pairs, "veto": curve, "parity": [], "drift": {}}
    PlacementCheck.objects.create(placement=placement, version=1, figures=figures)
    context = checks_context(placement, {"tab": "veto", "rate": "5"})
    assert (context["threshold"], context["reached"], context["n_low"]) == (0.0, 0.04, 1)
    assert 0.0 < context["low"] < 0.04 < context["high"] < 0.2
    strict = checks_context(placement, {"tab": "veto", "rate": "1"})
    assert (strict["threshold"], strict["n_low"]) == (-1.0, 0)
    assert checks_context(placement, {"tab": "veto", "rate": "²"})["rate"] == 0.05


def test_groups_too_small_are_not_judged(
    client_of: ClientOf, alice: User, placement: Placement
) -> None:
    row = {
        "column": "Gender", "measure": "score", "group": "F", "count": 5, "mean": 0.5,
        "low": None, "high": None, "difference": 0.1, "is_outside": False,
    }  # fmt: skip
    figures = {"doubt": {"pairs": []}, "pairs": [], "veto": {}, "parity": [row], "drift": {}}
    PlacementCheck.objects.create(placement=placement, version=1, figures=figures)
    page = Page(client_of(alice).get(at(placement), {"tab": "parity"}))
    assert page.one("table", "Gender: ").one("row", "F 5").has("cell", "too few to say")


def test_only_people_of_one_room_are_roommates(placement: Placement) -> None:
    problem = placement_problem(placement)
    found = {(problem.students[a].pk, problem.students[b].pk) for a, b in problem.roommates()}
    living = placement.places.filter(room__isnull=False).values_list("student", "room")
    pairs = permutations(living, 2)
    assert {frozenset(pair) for pair in found} == {
        frozenset((a, b)) for (a, here), (b, there) in pairs if here == there
    }
    assert len(found) > 5


def test_a_placement_without_rooms_is_not_checked(bob: User, placement: Placement) -> None:
    Placement.objects.update(revision=0)
    placement.refresh_from_db()
    with pytest.raises(HousingError, match="has no rooms yet"):
        check_start(user=bob, placement=placement)


def test_viewers_start_no_check_and_strangers_see_none(
    client_of: ClientOf, alice: User, mallory: User, placement: Placement
) -> None:
    assert client_of(alice).post(at(placement, "check-start")).status_code == 403
    for name in ("checks", "report", "report-file", "rosters"):
        assert client_of(mallory).get(at(placement, name)).status_code == 404, name
