"""Proposing: complete pairs under the rules, conflicts by name, and again around decisions."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from tests.webapp.factories.university import run_waiting
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.selectors.surveys import forget_surveys
from webapp.cohorts.services.cohorts import cohort_purge
from webapp.files import quota
from webapp.files.quota import QuotaError
from webapp.files.storage import organisation_folder
from webapp.housing.errors import HousingError
from webapp.housing.models import PairState, Placement
from webapp.housing.pairs import computing, placing
from webapp.housing.pairs.decisions import Decision, pairs_decide
from webapp.housing.pairs.numbers import PairNumbers
from webapp.housing.pairs.placing import pair_conflicts, pairs_compute, pairs_create, result_store
from webapp.housing.pairs.rule_changes import rule_change
from webapp.housing.pairs.swaps import swap_offer
from webapp.housing.services.placements import placement_rename
from webapp.jobs.models import Job, JobState
from webapp.matching.models import ForbiddenPair, LearnedModel
from webapp.matching.services.learning import MODEL_BYTES

PAIRS = {"buildings": "pairs", "same": "Gender"}


def test_everybody_is_in_one_pair_of_the_same_gender(placement: Placement) -> None:
    pairs = list(placement.pairs.select_related("first", "second"))
    numbers = [n for pair in pairs for n in (pair.first_number, pair.second_number)]
    assert sorted(numbers) == list(range(1001, 1033))
    assert all(pair.first.attributes == pair.second.attributes for pair in pairs)
    assert all(0 < pair.probability <= 1 for pair in pairs)
    assert placement.figures["upper_bound"] >= placement.figures["weight"] - 1e-9
    assert sum(pair.score for pair in pairs) == pytest.approx(placement.figures["weight"])


def test_marginals_are_stored_and_add_up(placement: Placement) -> None:
    marginals = np.asarray(PairNumbers(placement).marginals)
    assert marginals.dtype == np.float32
    assert marginals.sum(axis=1) == pytest.approx(np.ones(32), abs=1e-4)


def test_staff_start_from_the_page(
    bob: User, client_of: Callable, first_years: Cohort, learned: LearnedModel
) -> None:
    client = client_of(bob)
    data = {"cohort": first_years.pk, "model": learned.pk, "name": "Autumn", **PAIRS}
    response = client.post("/placements/new/", data)
    placement = Placement.objects.get()
    address = reverse("housing:placement", args=[placement.pk])
    assert response.headers["Location"] == address
    assert Page(client.get(address)).says("Working out pairs")
    run_waiting()
    page = Page(client.get(address))
    assert page.says("16 pairs, nobody left over")
    assert page.says("Certified best")


def test_a_form_that_is_refused_comes_back_as_it_was_sent(
    bob: User, client_of: Callable, first_years: Cohort, learned: LearnedModel, settings: object
) -> None:
    """A rule that was left out used to be ticked again, and the name to be lost."""
    settings.ORGANISATION_QUOTA_GB = 0
    client = client_of(bob)
    fresh = Page(client.get("/placements/new/", {"cohort": first_years.pk}))
    assert fresh.one("group", "Roommates agree in").field("Gender").is_checked
    sent = {"cohort": first_years.pk, "model": learned.pk, "name": "Autumn", "buildings": "pairs"}
    for same in ([], ["Gender"]):
        response = client.post("/placements/new/", {**sent, "same": same})
        page = Page(response, status=422)
        rules = page.one("group", "Roommates agree in")
        assert rules.field("Gender").is_checked == bool(same)
        assert page.field("Name of the placement").value == "Autumn"


def test_files_are_counted_before_the_transaction_and_once(
    bob: User, first_years: Cohort, learned: LearnedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    depths: list[int] = []

    def note(organisation: object) -> None:
        depths.append(len(connection.savepoint_ids))

    monkeypatch.setattr(quota, "refresh_count", note)
    placement = pairs_create(user=bob, name="", cohort=first_years, model=learned)
    assert placement.job is not None
    assert depths == [0]


def test_answers_are_read_once_and_before_the_transaction(
    bob: User, first_years: Cohort, learned: LearnedModel
) -> None:
    """Three readings of 10,000 students held the only write lock that SQLite has."""
    forget_surveys()
    with CaptureQueriesContext(connection) as queries:
        pairs_create(user=bob, name="", cohort=first_years, model=learned)
    texts = [query["sql"] for query in queries]
    reads = [k for k, text in enumerate(texts) if '"cohorts_student"."answers"' in text]
    writes = [k for k, text in enumerate(texts) if text.startswith("SAVEPOINT")]
    assert len(reads) == 1
    assert reads[0] < writes[0]


def test_an_odd_number_asks_who_stays_single(
    bob: User, client_of: Callable, first_years: Cohort, learned: LearnedModel
) -> None:
    Student.objects.filter(cohort=first_years, number=1032).delete()
    Cohort.objects.filter(pk=first_years.pk).update(n_students=31)
    client = client_of(bob)
    data = {"cohort": first_years.pk, "model": learned.pk, "buildings": "pairs"}
    client.post("/placements/new/", data)
    placement = Placement.objects.get()
    assert placement.job is None
    page = Page(client.get(reverse("housing:placement", args=[placement.pk])))
    assert page.has("alert", "31 students cannot all be paired")
    buttons = [one.name for one in page.every("button")]
    assert len([name for name in buttons if name.endswith("single")]) >= 3
    rule = reverse("housing:pairs-rule", args=[placement.pk])
    client.post(rule, {"action": "single", "first": "S-1007"})
    placement.refresh_from_db()
    assert placement.singles == [1007]
    (job,) = run_waiting()
    assert job.sentence == "15 pairs, 1 single."
    assert not placement.pairs.filter(first_number=1007).exists()


def test_an_odd_group_is_named_with_its_ways_out(
    bob: User, first_years: Cohort, make_pairs: Callable
) -> None:
    placement = make_pairs()
    women = first_years.students.filter(attributes__Gender="F")
    student = women.first()
    Student.objects.filter(pk=student.pk).update(attributes={"Gender": "X"})
    forget_surveys()  # nobody edits students but this test
    conflicts = pair_conflicts(placement)
    words = " ".join(conflict.headline + conflict.detail for conflict in conflicts)
    assert "an odd number" in words
    assert any(way.label == "Drop “same Gender”" for c in conflicts for way in c.ways_out)
    with pytest.raises(HousingError, match="Solve this first"):
        pairs_compute(user=bob, placement=placement)


def test_a_model_of_other_questions_is_refused_by_name(
    bob: User, client_of: Callable, first_years: Cohort, learned: LearnedModel
) -> None:
    questions = [q for q in first_years.questions if q["name"] != "Smoking"]
    place = [q["name"] for q in first_years.questions].index("Smoking")
    for student in first_years.students.all():
        del student.answers[place]
        student.save()
    Cohort.objects.filter(pk=first_years.pk).update(questions=questions)
    data = {"cohort": first_years.pk, "model": learned.pk, **PAIRS}
    page = Page(client_of(bob).post("/placements/new/", data), status=422)
    assert page.has("alert", "This model was learned from other questions: Smoking is missing.")
    assert not Placement.objects.exists()


def test_rooms_of_pairs_are_made_in_pieces(
    placement: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placing, "PIECE", 5)
    rooms = placement.buildings.rooms
    before = list(rooms.values_list("pk", "name"))
    placing.rooms_prepare(placement, 28)
    assert list(rooms.values_list("name", flat=True)) == [str(k + 1) for k in range(28)]
    assert list(rooms.values_list("pk", "name"))[: len(before)] == before
    placing.rooms_prepare(placement, 20)
    assert rooms.count() == 28


def test_many_models_are_offered_in_a_list(
    bob: User, client_of: Callable, first_years: Cohort, learned: LearnedModel
) -> None:
    """An office with 200 models scrolled past 200 radio buttons to reach the rules."""
    client, address = client_of(bob), f"/placements/new/?cohort={first_years.pk}"
    assert Page(client.get(address)).has("radio", learned.name)
    LearnedModel.objects.bulk_create(
        LearnedModel(
            organisation=bob.organisation,
            name=f"M {k}",
            sources=[{"students": 60, "pairs": 1 + k}],
            learned_at=timezone.now(),
            is_simulated=k == 0,
        )
        for k in range(8)
    )
    page = Page(client.get(f"{address}&model={learned.pk}"))
    assert page.field("Model").value == str(learned.pk)
    assert page.has("option", "M 0: 1 simulated pair, 0 questions, not checked yet")
    assert page.has("option", "M 7: 8 pairs, 0 questions, not checked yet")
    data = {"cohort": first_years.pk, "model": learned.pk, "name": "A" * 121, **PAIRS}
    refused = Page(client.post("/placements/new/", data), status=422)
    assert refused.field("Model").value == str(learned.pk)
    client.post("/placements/new/", data | {"name": "Autumn"})
    assert Placement.objects.get().model == learned


def test_an_answer_never_seen_in_training_is_named(
    bob: User, client_of: Callable, first_years: Cohort, learned: LearnedModel
) -> None:
    questions = first_years.questions
    questions[4]["levels"].append("On the roof")
    Cohort.objects.filter(pk=first_years.pk).update(questions=questions)
    student = first_years.students.get(number=1003)
    student.answers[4] = 5
    student.save()
    data = {"cohort": first_years.pk, "model": learned.pk, **PAIRS}
    page = Page(client_of(bob).post("/placements/new/", data), status=422)
    assert page.has("alert", "S-1003, Smoking: “On the roof” was never among the answers")


def test_decided_pairs_survive_proposing_again(bob: User, placement: Placement) -> None:
    kept, rejected, never = placement.pairs.all()[:3]
    for pair, decision in (
        (kept, Decision.ACCEPT),
        (rejected, Decision.REJECT),
        (never, Decision.NEVER),
    ):
        versions = {pair.pk: pair.version}
        pairs_decide(user=bob, placement=placement, decision=decision, versions=versions)
    placement.refresh_from_db()
    assert placement.changes == 2
    before = placement.arrays
    pairs_compute(user=bob, placement=placement)
    run_waiting()
    placement.refresh_from_db()
    assert (placement.revision, placement.changes) == (2, 0)
    assert placement.arrays != before
    again = placement.pairs.get(first_id=kept.first_id, second_id=kept.second_id)
    assert (again.state, again.probability) == (PairState.ACCEPTED, kept.probability)
    for gone in (rejected, never):
        ids = {"first_id": gone.first_id, "second_id": gone.second_id}
        assert not placement.pairs.filter(**ids).exists()


def test_held_pairs_keep_numbers_of_a_free_choice(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    """A held student used to have one partner at 100 %, and a swap of two of them 0 %."""
    first, second = placement.pairs.filter(first__attributes__Gender="F")[:2]
    versions = {pair.pk: pair.version for pair in (first, second)}
    pairs_decide(user=bob, placement=placement, decision=Decision.ACCEPT, versions=versions)
    before = np.array(PairNumbers(placement).marginals)
    pairs_compute(user=bob, placement=placement)
    run_waiting()
    placement.refresh_from_db()
    numbers = PairNumbers(placement)
    np.testing.assert_allclose(numbers.marginals, before, atol=1e-5)
    assert (numbers.arrays["n_allowed"] > 1).all()
    offer = swap_offer(placement, first.first_number, second.first_number)
    assert all(pair.probability > 0 for pair in offer.new)
    kept = placement.pairs.get(first=first.first)
    address = reverse("housing:placement", args=[placement.pk])
    page = Page(client_of(bob).get(f"{address}?tab=all&pair={kept.pk}"))
    assert "Nobody else is allowed." not in page.source


def test_a_pair_locked_by_a_rule_is_as_likely_as_it_was(bob: User, placement: Placement) -> None:
    """It used to read “100 %, only choice”."""
    first, second = placement.pairs.filter(first__attributes__Gender="F")[:2]
    rule_change(
        user=bob,
        placement=placement,
        action="lock",
        first=first.first_number,
        second=second.first_number,
    )
    numbers = PairNumbers(placement)
    expected = numbers.pair_values(first.first_number, second.first_number)
    pairs_compute(user=bob, placement=placement)
    run_waiting()
    locked = placement.pairs.get(state=PairState.LOCKED)
    for name in ("score", "probability", "multiple", "doubt", "allowed"):
        assert getattr(locked, name) == pytest.approx(expected[name], rel=1e-4), name


def test_nobody_decides_while_pairs_are_computed(bob: User, placement: Placement) -> None:
    pair = placement.pairs.first()
    pairs_compute(user=bob, placement=placement)
    with pytest.raises(HousingError, match="right now"):
        pairs_decide(
            user=bob,
            placement=placement,
            decision=Decision.ACCEPT,
            versions={pair.pk: pair.version},
        )


def test_a_cancelled_run_changes_nothing(bob: User, placement: Placement) -> None:
    before = list(placement.pairs.values_list("pk", flat=True))
    rule_change(user=bob, placement=placement, action="relax", column="Gender")
    placement.refresh_from_db()
    pairs_compute(user=bob, placement=placement)
    Job.objects.filter(state="queued").update(cancel_requested_at="2026-01-01T00:00:00Z")
    (job,) = run_waiting()
    assert job.state == JobState.CANCELLED
    assert list(placement.pairs.values_list("pk", flat=True)) == before


def files_of(placement: Placement) -> set[Path]:
    folder = organisation_folder(placement.organisation_id)
    kept = set((folder / "proposals").iterdir())
    return kept | {path for path in (folder / "jobs").rglob("*") if path.is_file()}


def test_a_run_that_fails_leaves_no_marginals(
    bob: User, placement: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They used to be written to their last place before it was certain that they are kept."""
    before = files_of(placement)
    monkeypatch.setattr(computing, "_pair_values", Mock(side_effect=MemoryError))
    pairs_compute(user=bob, placement=placement)
    (job,) = run_waiting()
    assert job.state == JobState.FAILED
    assert files_of(placement) == before == set(placement.files_of(placement.arrays))


def test_a_proposal_purged_while_it_is_computed_leaves_nothing(
    bob: User, placement: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    def purge_then_store(*values: Any) -> None:
        placement.cohort.delete()
        result_store(*values)

    monkeypatch.setattr(computing, "result_store", purge_then_store)
    pairs_compute(user=bob, placement=placement)
    (job,) = run_waiting()
    assert job.error == "The placement was removed meanwhile. Nothing was changed."
    assert not job.folder.exists()
    assert len(files_of(placement)) == 2  # of the first run; the purge was undone with the job


def test_rooms_and_places_are_made_before_the_lock_of_storing_is_taken(
    bob: User, placement: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Storing 5,000 pairs kept everybody else from writing while it made their rooms and places."""
    seen = []

    def count_then_store(*values: Any) -> None:
        stored = Placement.objects.get(pk=values[0].pk)
        seen.append((stored.buildings.rooms.count(), stored.places.count(), stored.is_computed))
        assert values[2].holds(stored)  # all that is left under the lock is to write
        result_store(*values)

    monkeypatch.setattr(computing, "result_store", count_then_store)
    pairs_create(user=bob, name="Fresh", cohort=placement.cohort, model=placement.model)
    (job,) = run_waiting()
    assert job.state == JobState.SUCCEEDED, job.error
    students = placement.cohort.n_students
    assert seen == [((students + 1) // 2, students, False)]


def test_a_rule_made_between_the_plan_and_the_lock_counts(
    bob: User, placement: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_apart: list[int] = []

    def forbid_then_store(*values: Any) -> None:
        pair = values[1].values[0]
        kept_apart.extend((pair["first_number"], pair["second_number"]))
        first, second = placement.cohort.students.filter(number__in=kept_apart)
        ForbiddenPair.objects.create(cohort=placement.cohort, first=first, second=second)
        result_store(*values)

    monkeypatch.setattr(computing, "result_store", forbid_then_store)
    fresh = pairs_create(user=bob, name="Fresh", cohort=placement.cohort, model=placement.model)
    (job,) = run_waiting()
    assert job.state == JobState.SUCCEEDED, job.error
    rooms = fresh.places.filter(number__in=kept_apart).values_list("room", flat=True)
    assert None in rooms or len(set(rooms)) == 2


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING])
def test_purging_the_cohort_cancels_its_proposing(
    bob: User, placement: Placement, state: str
) -> None:
    """It used to keep the room that it had reserved until a worker came to it."""
    job = pairs_compute(user=bob, placement=placement).job
    Job.objects.filter(pk=job.pk).update(state=state)
    cohort_purge(user=bob, cohort=placement.cohort, typed_name=placement.cohort.name)
    job.refresh_from_db()
    assert job.cancelled_by == bob
    assert job.state == JobState.CANCELLED or job.is_cancelling


def test_a_name_given_while_pairs_are_computed_stays(
    bob: User, placement: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rename_then_store(*values: Any) -> None:
        placement_rename(user=bob, placement=placement, name="Autumn")
        result_store(*values)

    monkeypatch.setattr(computing, "result_store", rename_then_store)
    pairs_compute(user=bob, placement=placement)
    run_waiting()
    placement.refresh_from_db()
    assert (placement.name, placement.revision) == ("Autumn", 2)


def test_walls_and_rights(
    alice: User, mallory: User, client_of: Callable, placement: Placement
) -> None:
    page = reverse("housing:placement", args=[placement.pk])
    look = reverse("housing:pair-numbers", args=[placement.pk])
    for address in (page, look, "/placements/"):
        assert client_of(alice).get(address).status_code == 200
    for address in (page, look):
        assert client_of(mallory).get(address).status_code == 404
    compute = reverse("housing:placement-compute", args=[placement.pk])
    assert client_of(alice).post(compute).status_code == 403
    assert client_of(mallory).post(compute).status_code == 404
    assert "Accept S-" not in Page(client_of(alice).get(page)).source


def test_others_cannot_use_our_cohort_or_model(
    mallory: User, client_of: Callable, first_years: Cohort, learned: LearnedModel
) -> None:
    data = {"cohort": first_years.pk, "model": learned.pk, **PAIRS}
    page = client_of(mallory).post("/placements/new/", data)
    assert page.status_code == 422
    assert Page(page, status=422).has("alert", "Choose a cohort first.")
    assert not Placement.objects.exists()


def test_the_proposed_pairs_are_compared_with_all_that_the_rules_allow(
    bob: User, client_of: Callable, placement: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = PairNumbers(placement)
    every = numbers.model.features.scores(numbers.survey, numbers.model.theta)
    genders = numbers.survey.attributes["Gender"]
    pairs = [(i, j) for i, j in combinations(range(len(genders)), 2) if genders[i] == genders[j]]
    expected = np.array([every[pair] for pair in pairs])
    np.testing.assert_allclose(np.sort(numbers.allowed_scores), np.sort(expected), atol=1e-5)
    del numbers.arrays["allowed_scores"]  # as of a placement from before they were kept
    monkeypatch.setattr("webapp.matching.allowed_pairs.SAMPLED_PAIRS", 400)
    del numbers.allowed_scores
    sample = numbers.allowed_scores
    assert 100 < len(sample) < 400
    assert np.isin(sample.round(9), expected.round(9)).all()
    sample = PairNumbers(placement).allowed_scores
    page = Page(client_of(bob).get(reverse("housing:pair-numbers", args=[placement.pk])))
    middle = np.median(placement.pairs.values_list("score", flat=True))
    share = round(100 * np.mean(sample < middle))
    section = page.section("How good are these pairs?")
    assert section.says(f"scores higher than {share} % of the pairs that the rules allow")


def test_a_proposal_reserves_what_it_may_write(placement: Placement, learned: LearnedModel) -> None:
    written = sum(path.stat().st_size for path in placement.files_of(placement.arrays))
    assert 0.5 * placement.job.stores_bytes < written <= placement.job.stores_bytes
    assert learned.path.stat().st_size <= MODEL_BYTES


def test_without_room_nothing_is_proposed(
    client_of: Callable, bob: User, placement: Placement, settings: object
) -> None:
    settings.ORGANISATION_QUOTA_GB = 0
    done = Job.objects.count()
    with pytest.raises(QuotaError, match="your organisation would take"):
        pairs_compute(user=bob, placement=placement)
    chosen = {"cohort": str(placement.cohort_id), "model": str(placement.model_id), **PAIRS}
    page = client_of(bob).post(reverse("housing:placement-new"), chosen)
    assert page.status_code == 422
    assert Page(page, status=422).has("alert", "your organisation would take")
    page = client_of(bob).post(
        reverse("housing:placement-compute", args=[placement.pk]), follow=True
    )
    assert Page(page).one("alert").says("your organisation would take")
    assert (Job.objects.count(), Placement.objects.count()) == (done, 1)


def test_the_newest_cohort_without_pairs_is_guessed(
    client_of: Callable, bob: User, first_years: Cohort, returning: Cohort, learned: LearnedModel
) -> None:
    client, url = client_of(bob), reverse("housing:placement-new")
    guessed = Page(client.get(url, {"model": str(learned.pk)}))
    assert guessed.field("Cohort").value == str(first_years.pk)
    assert guessed.has("button", f"Place {first_years.n_students} students")
    assert not Page(client.get(url, {"cohort": ""})).element.xpath("//option[@selected]")
    chosen = Page(client.get(url, {"cohort": str(returning.pk)}))
    assert chosen.field("Cohort").value == str(returning.pk)


def test_reasons_are_named_in_full(client_of: Callable, bob: User, placement: Placement) -> None:
    """Two questions that begin alike were cut to the same fourteen letters."""
    page = Page(client_of(bob).get(reverse("housing:placement", args=[placement.pk])))
    reasons = [reason for pair in placement.pairs.all() for reason in pair.chips[:2]]
    assert any(len(name) > 14 for name, _ in reasons)
    for name, is_for in reasons:
        assert page.has("row", f"{'+' if is_for else '−'} {name}")
