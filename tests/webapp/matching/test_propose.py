"""Proposing: complete pairs under the rules, conflicts by name, and again around decisions."""

from collections.abc import Callable
from importlib import import_module
from itertools import combinations
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.html import escape

from tests.webapp.matching.conftest import run_waiting
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.selectors.surveys import forget_surveys
from webapp.cohorts.services.cohorts import cohort_purge
from webapp.files import quota
from webapp.files.quota import QuotaError
from webapp.files.storage import organisation_folder
from webapp.jobs.models import Job, JobState
from webapp.matching import jobs
from webapp.matching.errors import DecisionError, MatchingError
from webapp.matching.models import Decision, LearnedModel, PairState, Proposal
from webapp.matching.numbers import ProposalNumbers
from webapp.matching.services.decisions import pairs_decide
from webapp.matching.services.learning import MODEL_BYTES
from webapp.matching.services.proposals import (
    proposal_compute,
    proposal_conflicts,
    proposal_create,
    proposal_rename,
    result_store,
)
from webapp.matching.services.rules import rule_change
from webapp.matching.services.swaps import swap_offer


def test_everybody_is_in_one_pair_of_the_same_gender(proposal: Proposal) -> None:
    pairs = list(proposal.pairs.select_related("first", "second"))
    numbers = [n for pair in pairs for n in (pair.first_number, pair.second_number)]
    assert sorted(numbers) == list(range(1001, 1033))
    assert all(pair.first.attributes == pair.second.attributes for pair in pairs)
    assert all(0 < pair.probability <= 1 for pair in pairs)
    assert proposal.figures["upper_bound"] >= proposal.figures["weight"] - 1e-9
    assert sum(pair.score for pair in pairs) == pytest.approx(proposal.figures["weight"])


def test_marginals_are_stored_and_add_up(proposal: Proposal) -> None:
    marginals = np.asarray(ProposalNumbers(proposal).marginals)
    assert marginals.dtype == np.float32
    assert marginals.sum(axis=1) == pytest.approx(np.ones(32), abs=1e-4)


def test_staff_start_from_the_page(
    bob: User, client_of: Callable, first_years: Cohort, learned: LearnedModel
) -> None:
    client = client_of(bob)
    data = {"cohort": first_years.pk, "model": learned.pk, "same": "Gender", "name": "Autumn"}
    response = client.post("/proposals/new/", data)
    proposal = Proposal.objects.get()
    address = reverse("matching:proposal", args=[proposal.pk])
    assert response.headers["Location"] == address
    assert "Proposing" in client.get(address).content.decode()
    run_waiting()
    page = client.get(address).content.decode()
    assert "16 pairs, nobody left over" in page
    assert "Certified best" in page


def test_a_form_that_is_refused_comes_back_as_it_was_sent(
    bob: User, client_of: Callable, first_years: Cohort, learned: LearnedModel, settings: object
) -> None:
    """A rule that was left out used to be ticked again, and the name to be lost."""
    settings.ORGANISATION_QUOTA_GB = 0
    client = client_of(bob)
    fresh = client.get("/proposals/new/", {"cohort": first_years.pk}).content.decode()
    assert 'value="Gender" checked' in fresh
    sent = {"cohort": first_years.pk, "model": learned.pk, "name": "Autumn"}
    for same, box in (([], 'value="Gender">'), (["Gender"], 'value="Gender" checked>')):
        response = client.post("/proposals/new/", {**sent, "same": same})
        assert response.status_code == 422
        assert box in response.content.decode()
        assert 'value="Autumn"' in response.content.decode()


def test_files_are_counted_before_the_transaction_and_once(
    bob: User, first_years: Cohort, learned: LearnedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    depths: list[int] = []

    def note(organisation: object) -> None:
        depths.append(len(connection.savepoint_ids))

    monkeypatch.setattr(quota, "refresh_count", note)
    proposal = proposal_create(user=bob, name="", cohort=first_years, model=learned)
    assert proposal.job is not None
    assert depths == [0]


def test_answers_are_read_once_and_before_the_transaction(
    bob: User, first_years: Cohort, learned: LearnedModel
) -> None:
    """Three readings of 10,000 students held the only write lock that SQLite has."""
    forget_surveys()
    with CaptureQueriesContext(connection) as queries:
        proposal_create(user=bob, name="", cohort=first_years, model=learned)
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
    data = {"cohort": first_years.pk, "model": learned.pk}
    client.post("/proposals/new/", data)
    proposal = Proposal.objects.get()
    assert proposal.job is None
    page = client.get(reverse("matching:proposal", args=[proposal.pk])).content.decode()
    assert "31 students cannot all be paired" in page
    assert page.count("single</button>") >= 3
    rule = reverse("matching:rule", args=[proposal.pk])
    client.post(rule, {"action": "single", "first": "S-1007"})
    proposal.refresh_from_db()
    assert proposal.singles == [1007]
    (job,) = run_waiting()
    assert job.sentence == "15 pairs, 1 single."
    assert not proposal.pairs.filter(first_number=1007).exists()


def test_an_odd_group_is_named_with_its_ways_out(
    bob: User, first_years: Cohort, make_proposal: Callable
) -> None:
    proposal = make_proposal()
    women = first_years.students.filter(attributes__Gender="F")
    student = women.first()
    Student.objects.filter(pk=student.pk).update(attributes={"Gender": "X"})
    forget_surveys()  # nobody edits students but this test
    conflicts = proposal_conflicts(proposal)
    words = " ".join(conflict.headline + conflict.detail for conflict in conflicts)
    assert "an odd number" in words
    assert any(way.label == "Drop “same Gender”" for c in conflicts for way in c.ways_out)
    with pytest.raises(MatchingError, match="Solve this first"):
        proposal_compute(user=bob, proposal=proposal)


def test_a_model_of_other_questions_is_refused_by_name(
    bob: User, client_of: Callable, first_years: Cohort, learned: LearnedModel
) -> None:
    questions = [q for q in first_years.questions if q["name"] != "Smoking"]
    place = [q["name"] for q in first_years.questions].index("Smoking")
    for student in first_years.students.all():
        del student.answers[place]
        student.save()
    Cohort.objects.filter(pk=first_years.pk).update(questions=questions)
    data = {"cohort": first_years.pk, "model": learned.pk}
    page = client_of(bob).post("/proposals/new/", data).content.decode()
    assert "This model was learned from other questions: Smoking is missing." in page
    assert not Proposal.objects.exists()


def test_an_answer_never_seen_in_training_is_named(
    bob: User, client_of: Callable, first_years: Cohort, learned: LearnedModel
) -> None:
    questions = first_years.questions
    questions[4]["levels"].append("On the roof")
    Cohort.objects.filter(pk=first_years.pk).update(questions=questions)
    student = first_years.students.get(number=1003)
    student.answers[4] = 5
    student.save()
    data = {"cohort": first_years.pk, "model": learned.pk}
    page = client_of(bob).post("/proposals/new/", data).content.decode()
    assert "S-1003, Smoking: “On the roof” was never among the answers" in page


def test_decided_pairs_survive_proposing_again(bob: User, proposal: Proposal) -> None:
    kept, rejected, never = proposal.pairs.all()[:3]
    for pair, decision in (
        (kept, Decision.ACCEPT),
        (rejected, Decision.REJECT),
        (never, Decision.NEVER),
    ):
        versions = {pair.pk: pair.version}
        pairs_decide(user=bob, proposal=proposal, decision=decision, versions=versions)
    proposal.refresh_from_db()
    assert proposal.changes == 2
    before = proposal.arrays
    proposal_compute(user=bob, proposal=proposal)
    run_waiting()
    proposal.refresh_from_db()
    assert (proposal.revision, proposal.changes) == (2, 0)
    assert proposal.arrays != before
    again = proposal.pairs.get(first_id=kept.first_id, second_id=kept.second_id)
    assert (again.state, again.probability) == (PairState.ACCEPTED, kept.probability)
    for gone in (rejected, never):
        ids = {"first_id": gone.first_id, "second_id": gone.second_id}
        assert not proposal.pairs.filter(**ids).exists()


def test_held_pairs_keep_numbers_of_a_free_choice(
    bob: User, client_of: Callable, proposal: Proposal
) -> None:
    """A held student used to have one partner at 100 %, and a swap of two of them 0 %."""
    first, second = proposal.pairs.filter(first__attributes__Gender="F")[:2]
    versions = {pair.pk: pair.version for pair in (first, second)}
    pairs_decide(user=bob, proposal=proposal, decision=Decision.ACCEPT, versions=versions)
    before = np.array(ProposalNumbers(proposal).marginals)
    proposal_compute(user=bob, proposal=proposal)
    run_waiting()
    proposal.refresh_from_db()
    numbers = ProposalNumbers(proposal)
    np.testing.assert_allclose(numbers.marginals, before, atol=1e-5)
    assert (numbers.arrays["n_allowed"] > 1).all()
    offer = swap_offer(proposal, first.first_number, second.first_number)
    assert all(pair.probability > 0 for pair in offer.new)
    kept = proposal.pairs.get(first=first.first)
    address = reverse("matching:proposal", args=[proposal.pk])
    page = client_of(bob).get(f"{address}?tab=all&pair={kept.pk}").content.decode()
    assert "Nobody else is allowed." not in page


def test_a_pair_locked_by_a_rule_is_as_likely_as_it_was(bob: User, proposal: Proposal) -> None:
    """It used to read “100 %, only choice”."""
    first, second = proposal.pairs.filter(first__attributes__Gender="F")[:2]
    rule_change(
        user=bob,
        proposal=proposal,
        action="lock",
        first=first.first_number,
        second=second.first_number,
    )
    numbers = ProposalNumbers(proposal)
    expected = numbers.pair_values(first.first_number, second.first_number)
    proposal_compute(user=bob, proposal=proposal)
    run_waiting()
    locked = proposal.pairs.get(state=PairState.LOCKED)
    for name in ("score", "probability", "multiple", "doubt", "allowed"):
        assert getattr(locked, name) == pytest.approx(expected[name], rel=1e-4), name


def test_nobody_decides_while_pairs_are_computed(bob: User, proposal: Proposal) -> None:
    pair = proposal.pairs.first()
    proposal_compute(user=bob, proposal=proposal)
    with pytest.raises(DecisionError, match="right now"):
        pairs_decide(
            user=bob, proposal=proposal, decision=Decision.ACCEPT, versions={pair.pk: pair.version}
        )


def test_a_cancelled_run_changes_nothing(bob: User, proposal: Proposal) -> None:
    before = list(proposal.pairs.values_list("pk", flat=True))
    rule_change(user=bob, proposal=proposal, action="relax", column="Gender")
    proposal.refresh_from_db()
    proposal_compute(user=bob, proposal=proposal)
    Job.objects.filter(state="queued").update(cancel_requested_at="2026-01-01T00:00:00Z")
    (job,) = run_waiting()
    assert job.state == JobState.CANCELLED
    assert list(proposal.pairs.values_list("pk", flat=True)) == before


def files_of(proposal: Proposal) -> set[Path]:
    folder = organisation_folder(proposal.organisation_id)
    kept = set((folder / "proposals").iterdir())
    return kept | {path for path in (folder / "jobs").rglob("*") if path.is_file()}


def test_a_run_that_fails_leaves_no_marginals(
    bob: User, proposal: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They used to be written to their last place before it was certain that they are kept."""
    before = files_of(proposal)
    monkeypatch.setattr(jobs, "_pair_values", Mock(side_effect=MemoryError))
    proposal_compute(user=bob, proposal=proposal)
    (job,) = run_waiting()
    assert job.state == JobState.FAILED
    assert files_of(proposal) == before == set(proposal.files_of(proposal.arrays))


def test_a_proposal_purged_while_it_is_computed_leaves_nothing(
    bob: User, proposal: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def purge_then_store(**values: object) -> None:
        proposal.cohort.delete()
        result_store(**values)

    monkeypatch.setattr(jobs, "result_store", purge_then_store)
    proposal_compute(user=bob, proposal=proposal)
    (job,) = run_waiting()
    assert job.error == "The proposal was removed meanwhile. Nothing was changed."
    assert not job.folder.exists()
    assert len(files_of(proposal)) == 2  # of the first run; the purge was undone with the job


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RUNNING])
def test_purging_the_cohort_cancels_its_proposing(
    bob: User, proposal: Proposal, state: str
) -> None:
    """It used to keep the room that it had reserved until a worker came to it."""
    job = proposal_compute(user=bob, proposal=proposal).job
    Job.objects.filter(pk=job.pk).update(state=state)
    cohort_purge(user=bob, cohort=proposal.cohort, typed_name=proposal.cohort.name)
    job.refresh_from_db()
    assert job.cancelled_by == bob
    assert job.state == JobState.CANCELLED or job.is_cancelling


def test_a_name_given_while_pairs_are_computed_stays(
    bob: User, proposal: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rename_then_store(**values: object) -> None:
        proposal_rename(user=bob, proposal=proposal, name="Autumn")
        result_store(**values)

    monkeypatch.setattr(jobs, "result_store", rename_then_store)
    proposal_compute(user=bob, proposal=proposal)
    run_waiting()
    proposal.refresh_from_db()
    assert (proposal.name, proposal.revision) == ("Autumn", 2)


def test_walls_and_rights(
    alice: User, mallory: User, client_of: Callable, proposal: Proposal
) -> None:
    page = reverse("matching:proposal", args=[proposal.pk])
    look = reverse("matching:look", args=[proposal.pk])
    for address in (page, look, "/proposals/"):
        assert client_of(alice).get(address).status_code == 200
    for address in (page, look):
        assert client_of(mallory).get(address).status_code == 404
    compute = reverse("matching:compute", args=[proposal.pk])
    assert client_of(alice).post(compute).status_code == 403
    assert client_of(mallory).post(compute).status_code == 404
    assert "Accept S-" not in client_of(alice).get(page).content.decode()


def test_others_cannot_use_our_cohort_or_model(
    mallory: User, client_of: Callable, first_years: Cohort, learned: LearnedModel
) -> None:
    data = {"cohort": first_years.pk, "model": learned.pk}
    page = client_of(mallory).post("/proposals/new/", data)
    assert page.status_code == 422
    assert "Choose a cohort and a model first." in page.content.decode()
    assert not Proposal.objects.exists()


def test_the_proposed_pairs_are_compared_with_all_that_the_rules_allow(
    bob: User, client_of: Callable, proposal: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = ProposalNumbers(proposal)
    every = numbers.model.features.scores(numbers.survey, numbers.model.theta)
    genders = numbers.survey.attributes["Gender"]
    pairs = [(i, j) for i, j in combinations(range(len(genders)), 2) if genders[i] == genders[j]]
    expected = np.array([every[pair] for pair in pairs])
    np.testing.assert_allclose(np.sort(numbers.allowed_scores), np.sort(expected), atol=1e-5)
    del numbers.arrays["allowed_scores"]  # as of a proposal from before they were kept
    monkeypatch.setattr("webapp.matching.allowed_pairs.SAMPLED_PAIRS", 400)
    del numbers.allowed_scores
    sample = numbers.allowed_scores
    assert 100 < len(sample) < 400
    assert np.isin(sample.round(9), expected.round(9)).all()
    sample = ProposalNumbers(proposal).allowed_scores
    page = client_of(bob).get(reverse("matching:look", args=[proposal.pk])).content.decode()
    middle = np.median(proposal.pairs.values_list("score", flat=True))
    share = round(100 * np.mean(sample < middle))
    assert f"scores higher than {share} % of the pairs that the rules allow" in page


def test_a_proposal_reserves_what_it_may_write(proposal: Proposal, learned: LearnedModel) -> None:
    written = sum(path.stat().st_size for path in proposal.files_of(proposal.arrays))
    assert 0.5 * proposal.job.stores_bytes < written <= proposal.job.stores_bytes
    assert learned.path.stat().st_size <= MODEL_BYTES


def test_without_room_nothing_is_proposed(
    client_of: Callable, bob: User, proposal: Proposal, settings: object
) -> None:
    settings.ORGANISATION_QUOTA_GB = 0
    done = Job.objects.count()
    with pytest.raises(QuotaError, match="your organisation would take"):
        proposal_compute(user=bob, proposal=proposal)
    chosen = {"cohort": str(proposal.cohort_id), "model": str(proposal.model_id)}
    page = client_of(bob).post(reverse("matching:proposal-new"), chosen)
    assert page.status_code == 422
    assert "your organisation would take" in page.content.decode()
    page = client_of(bob).post(reverse("matching:compute", args=[proposal.pk]), follow=True)
    assert "your organisation would take" in page.content.decode()
    assert (Job.objects.count(), Proposal.objects.count()) == (done, 1)


def test_the_newest_cohort_without_pairs_is_guessed(
    client_of: Callable, bob: User, first_years: Cohort, returning: Cohort, learned: LearnedModel
) -> None:
    client, url = client_of(bob), reverse("matching:proposal-new")
    guessed = client.get(url, {"model": str(learned.pk)}).content.decode()
    assert f'<option value="{first_years.pk}" selected>' in guessed
    assert f"Propose pairs for {first_years.n_students} students" in guessed
    assert "selected>" not in client.get(url, {"cohort": ""}).content.decode()
    chosen = client.get(url, {"cohort": str(returning.pk)}).content.decode()
    assert f'<option value="{returning.pk}" selected>' in chosen


def test_reasons_are_named_in_full(client_of: Callable, bob: User, proposal: Proposal) -> None:
    """Two questions that begin alike were cut to the same fourteen letters."""
    page = client_of(bob).get(reverse("matching:proposal", args=[proposal.pk])).content.decode()
    reasons = [reason for pair in proposal.pairs.all() for reason in pair.chips[:2]]
    assert any(len(name) > 14 for name, _ in reasons)
    for name, is_for in reasons:
        assert f"{'+' if is_for else '−'} {escape(name)}</span>" in page


def test_an_upgrade_counts_the_pairs_of_older_proposals(proposal: Proposal) -> None:
    pair = proposal.pairs.first()
    proposal.pairs.filter(pk=pair.pk).update(state=PairState.ACCEPTED)
    Proposal.objects.update(n_pairs=0, n_open=0)
    migration = import_module("webapp.matching.migrations.0005_counts_of_pairs")
    migration.count_pairs(apps, None)
    proposal.refresh_from_db()
    assert proposal.n_decided == 1
    assert proposal.n_pairs == proposal.pairs.count()
