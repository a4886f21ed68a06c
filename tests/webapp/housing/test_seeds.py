"""The same students, rooms, rules and seed give the same placement, also after a worker died."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

import webapp.housing.jobs as placing
from tests.webapp.factories.campus import RULES
from tests.webapp.factories.programs import Program
from tests.webapp.factories.university import run_waiting
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.housing.models import BuildingList, Placement
from webapp.housing.services.placements import placement_create
from webapp.jobs import services
from webapp.jobs.models import Job
from webapp.matching.models import LearnedModel

pytestmark = pytest.mark.solves
ClientOf = Callable[[User], Client]
Make = Callable[[int | None], Placement]


@pytest.fixture
def make(bob: User, first_years: Cohort, campus: BuildingList, learned: LearnedModel) -> Make:
    """Place the first-years under a seed."""

    def place(seed: int | None) -> Placement:
        made = placement_create(
            user=bob,
            name="P",
            cohort=first_years,
            buildings=campus,
            model=learned,
            rules=RULES,
            seed=seed,
        )
        while run_waiting():
            pass
        return Placement.objects.get(pk=made.pk)

    return place


def rooms_of(placement: Placement) -> dict[int, int | None]:
    return dict(placement.places.values_list("number", "room_id"))


def test_the_same_seed_gives_the_same_rooms(make: Make) -> None:
    first, second = make(7), make(7)
    assert first.figures["seed"] == second.figures["seed"] == 7
    assert first.figures["is_repeatable"]
    assert rooms_of(first) == rooms_of(second)
    assert first.figures["weight"] == second.figures["weight"]


def test_a_run_whose_worker_died_ends_at_the_same_rooms(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make(11)
    place, looks = placing.place_in_rooms, 0

    def dies_once(*args: Any, **options: Any) -> Any:
        """End like a killed process: a checkpoint is left, and nobody holds the job."""
        nonlocal looks

        def should_stop() -> bool:
            nonlocal looks
            looks += 1
            return looks > 2

        if looks:
            return place(*args, **options)
        found = place(*args, **{**options, "should_stop": should_stop})
        assert not found.is_repeatable
        Job.objects.filter(state="running").update(worker="elsewhere:1:1", heartbeat_at=None)
        services.jobs_sweep()
        return found

    monkeypatch.setattr(placing, "place_in_rooms", dies_once)
    again = make(11)
    assert again.job is not None
    assert again.job.attempt == 2
    assert rooms_of(again) == rooms_of(whole)
    assert again.figures["upper_bound"] == whole.figures["upper_bound"]


def test_the_page_takes_a_seed_and_shows_it(
    bob: User,
    first_years: Cohort,
    campus: BuildingList,
    learned: LearnedModel,
    client_of: ClientOf,
) -> None:
    client = client_of(bob)
    form = {
        "cohort": first_years.pk,
        "buildings": campus.pk,
        "model": learned.pk,
        "designation": "Gender",
        "same": "Gender",
    }
    refused = Page(client.post("/placements/new/", {**form, "seed": "-3"}), status=422)
    error = "A seed is a whole number from 0 to 2,147,483,647."
    assert error in refused.field("Random seed").description
    client.post("/placements/new/", {**form, "seed": "2147483647"})
    (job,) = run_waiting()
    assert (job.state, job.seed) == ("succeeded", 2**31 - 1)
    made = Placement.objects.get()
    assert Page(client.get(f"/placements/{made.pk}/")).said_of("Random seed") == "2147483647"
    copied = client.post(
        f"/placements/{made.pk}/rules/try/",
        {"designation": "Gender", "same": "Gender", "seed": "2147483647"},
    )
    run_waiting()
    copy = Placement.objects.exclude(pk=made.pk).get()
    assert copied.status_code == 302
    assert rooms_of(copy) == rooms_of(made)


def test_programs_send_and_read_a_seed(
    bob: User,
    first_years: Cohort,
    campus: BuildingList,
    learned: LearnedModel,
    program_of: Callable[..., Program],
) -> None:
    program = program_of(bob)
    body = {"cohort": str(first_years.pk), "buildings": str(campus.pk), "model": str(learned.pk)}
    made = program.post("/placements", {**body, "seed": 5}).json()
    run_waiting()
    said = program.get(f"/placements/{made['id']}").json()
    assert (said["figures"]["seed"], said["figures"]["is_repeatable"]) == (5, True)
    again = program.post(f"/placements/{made['id']}/compute", {"seed": 6})
    assert again.status_code == 202
    (job,) = run_waiting()
    assert job.seed == 6
    assert program.post("/placements", {**body, "seed": -1}).status_code == 422


def test_a_run_that_ended_before_its_first_bound_is_stored_without_one(
    make: Make, monkeypatch: pytest.MonkeyPatch, client_of: ClientOf, bob: User
) -> None:
    monkeypatch.setattr(placing, "PLACE_SECONDS", 1e-6)
    placement = make(7)
    job = Job.objects.get(pk=placement.job_id)
    assert job.state == "succeeded", job.error
    assert placement.figures["upper_bound"] is None
    assert placement.figures["relative_gap"] is None
    assert "of the best" not in job.sentence
    page = Page(client_of(bob).get(f"/placements/{placement.pk}/"))
    assert page.said_of("Best possible, at most") == "not known yet"
