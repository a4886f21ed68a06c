"""Learning through the pages, the certificate, the check, and who may do what."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from django.urls import reverse
from django.utils.module_loading import import_string

from engine import Progress
from engine.learning.roommates.solvers import SOLVERS
from engine.learning.roommates.training import TrainedRoommates
from engine.solvers.theta_ascent import ThetaAscent
from tests.webapp.factories.university import run_waiting
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort, PairsOrigin
from webapp.cohorts.services.cohorts import cohort_purge
from webapp.cohorts.services.practice import pairs_simulation_start
from webapp.files import store
from webapp.housing.models import BuildingList, Placement
from webapp.jobs import context
from webapp.jobs.context import JobContext
from webapp.jobs.models import Job, JobState
from webapp.jobs.services import job_cancel, job_requeue
from webapp.matching import intervals, jobs, stopping
from webapp.matching.errors import MatchingError
from webapp.matching.models import LearnedModel
from webapp.matching.results import effect_in_words
from webapp.matching.selectors.models import model_state
from webapp.matching.services.learning import (
    METHODS,
    model_check,
    model_delete,
    model_estimate,
    model_learn,
)


def learn(client: object, *cohorts: Cohort, **data: str) -> object:
    values = {"cohort": [str(cohort.pk) for cohort in cohorts], "ridge": "10", **data}
    return client.post("/models/new/", values)


def test_staff_learn_and_get_a_certificate(
    bob: User, client_of: Callable, returning: Cohort, later_year: Cohort
) -> None:
    client = client_of(bob)
    response = learn(client, returning, check_on=str(later_year.pk), seed="7")
    model = LearnedModel.objects.get()
    address = reverse("matching:model", args=[model.pk])
    assert response.headers["Location"] == address
    card = Page(client.get(address)).one("region", "Learn: Returning 2024")
    assert card.says("Waiting for a free worker")
    (job,) = run_waiting()
    assert (job.state, job.seed) == (JobState.SUCCEEDED, 7), job.error
    run_waiting()  # the check, a job of its own
    model.refresh_from_db()
    assert model_state(model).key == "certified"
    assert model.figures["relative_gap"] <= 1e-4
    assert model.findings["n_pairs"] == 16
    assert len(model.weights) == 14
    page = Page(client.get(address))
    assert page.says("Certified: within")
    assert page.says("Checked on real pairs of Returning 2025")
    assert page.has("listitem", "Does not mean")
    assert AuditLine.objects.filter(verb="started learning").exists()


def test_weights_do_not_wait_for_their_intervals_and_drift(
    bob: User,
    client_of: Callable,
    returning: Cohort,
    later_year: Cohort,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(intervals, "SECONDS", 600.0)  # on however busy a machine
    client = client_of(bob)
    learn(client, returning, later_year)
    (job,) = run_waiting()
    assert job.state == JobState.SUCCEEDED, job.error
    model = LearnedModel.objects.get()
    assert model_state(model).key == "certified"
    address = reverse("matching:model", args=[model.pk])
    page = Page(client.get(address))
    assert page.section("How sure this is").says("intervals not yet known")
    assert page.element.xpath(f"//*[@id='job-{model.intervals_job_id}']")
    (job,) = run_waiting()
    assert job.state == JobState.SUCCEEDED, job.error
    before = model.weights
    model.refresh_from_db()
    for row, weight in zip(model.weights, before, strict=True):
        assert {name: row[name] for name in weight} == weight
        for part in (row["interval"], row["drift"]):
            assert part["low"] < part["value"] < part["high"]
    page = Page(client.get(address))
    assert not page.says("not yet known")
    assert page.has("columnheader", "Drift a year")
    file = client.get(reverse("matching:model-weights", args=[model.pk])).content.decode()
    assert "interval_low,interval_high,drift_value" in file


def test_intervals_go_on_where_their_worker_was_killed(
    bob: User,
    client_of: Callable,
    returning: Cohort,
    later_year: Cohort,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The job had no checkpoint: all years were estimated again."""
    monkeypatch.setattr(intervals, "SECONDS", 600.0)  # on however busy a machine
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)
    solve, solved = ThetaAscent.solve, 0

    def counted(ascent: ThetaAscent) -> Any:
        nonlocal solved
        if solved == killed_after:
            raise SystemExit
        solved += 1
        return solve(ascent)

    learn(client_of(bob), returning, later_year)
    run_waiting()
    monkeypatch.setattr(ThetaAscent, "solve", counted)
    job, killed_after = LearnedModel.objects.get().intervals_job, 2  # of all years, and one year
    with pytest.raises(SystemExit):
        run_waiting()
    job.refresh_from_db()
    assert job.state == JobState.RUNNING
    assert job_requeue(job=job, sentence="Interrupted")
    killed_after = -1
    (job,) = run_waiting()
    assert (job.state, job.attempt, solved) == (JobState.SUCCEEDED, 2, 3), job.error
    assert not store.store().has(job.checkpoint_path)
    interrupted = LearnedModel.objects.get()
    model_estimate(user=bob, model=interrupted)
    (job,) = run_waiting()
    assert (job.state, solved) == (JobState.SUCCEEDED, 6), job.error
    assert LearnedModel.objects.get().weights == interrupted.weights
    assert all(row["interval"] and row["drift"] for row in interrupted.weights)


def test_intervals_of_a_model_without_them_are_worked_out_on_demand(
    alice: User,
    bob: User,
    client_of: Callable,
    learned: LearnedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Models learned before had none."""
    monkeypatch.setattr(intervals, "SECONDS", 600.0)  # on however busy a machine
    client, address = client_of(bob), reverse("matching:model", args=[learned.pk])
    assert Page(client.get(address)).section("How sure this is").says("intervals not yet known")
    file = client.get(reverse("matching:model-weights", args=[learned.pk])).content.decode()
    assert "interval" not in file.splitlines()[0]
    wanted = reverse("matching:model-intervals", args=[learned.pk])
    assert wanted not in Page(client_of(alice).get(address)).source
    assert client_of(alice).post(wanted).status_code == 403
    client.post(wanted)
    page = Page(client.post(wanted, follow=True))
    assert page.one("alert").says("Its confidence intervals are being computed.")
    (job,) = run_waiting()
    assert job.state == JobState.SUCCEEDED, job.error
    assert Page(client.get(address)).has("columnheader", "Likely between")


def test_weights_stay_where_their_intervals_were_not_reached(
    bob: User, client_of: Callable, learned: LearnedModel
) -> None:
    """Cancelling learning while it worked them out used to lose the weights."""
    client, address = client_of(bob), reverse("matching:model", args=[learned.pk])
    wanted = reverse("matching:model-intervals", args=[learned.pk])
    client.post(wanted)
    learned.refresh_from_db()
    job_cancel(user=bob, job=learned.intervals_job)
    page = Page(client.get(address))
    assert page.section("How sure this is").says("was cancelled")
    client.post(wanted)
    with patch.object(intervals, "estimate_weights", return_value=SimpleNamespace(gap=2.0)):
        (job,) = run_waiting()
    assert job.state == JobState.SUCCEEDED, job.error
    assert Page(client.get(address)).section("How sure this is").says("A minute did not suffice")
    weights, model = learned.weights, LearnedModel.objects.get()
    assert model.weights == weights
    assert model_state(model).key == "certified"


def test_learning_that_is_stopped_keeps_its_weights_with_their_gap(
    bob: User, client_of: Callable, returning: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page said that they would be kept, and there was no way but to cancel."""
    monkeypatch.setattr(stopping, "STOP_SECONDS", 0.0)
    client = client_of(bob)
    learn(client, returning, gap="1e-06", method="frank-wolfe")
    model = LearnedModel.objects.get()
    address = reverse("matching:model-stop", args=[model.pk])
    assert Page(client.post(address, follow=True)).one("alert").says("nothing to stop")
    take, pages = JobContext.on_progress, []

    def look_and_stop(context: JobContext, progress: Progress) -> None:
        take(context, progress)
        if progress.iteration > 1 and not pages:
            pages.append(Page(client.get(reverse("matching:model", args=[model.pk]))))
            client.post(address)

    monkeypatch.setattr(JobContext, "on_progress", look_and_stop)
    run_waiting()
    assert any(form.address == address for form in pages[0].every("form"))
    model.refresh_from_db()
    assert model_state(model).key == "stopped"
    assert model.figures["relative_gap"] > 1e-6
    assert len(model.weights) == 14
    assert AuditLine.objects.filter(verb="stopped learning").exists()
    assert Page(client.post(address, follow=True)).one("alert").says("nothing to stop")


def test_cancelled_and_failed_are_said(bob: User, client_of: Callable, returning: Cohort) -> None:
    client = client_of(bob)
    learn(client, returning)
    model = LearnedModel.objects.get()
    job_cancel(user=bob, job=model.job)
    model = LearnedModel.objects.get()
    assert model_state(model).words == "Cancelled"
    page = Page(client.get(reverse("matching:model", args=[model.pk])))
    assert page.has("link", "Learn again")
    learn(client, returning)
    model = LearnedModel.objects.exclude(pk=model.pk).get()
    returning.delete()
    run_waiting()
    model.refresh_from_db()
    assert model_state(model).key == "failed"
    page = Page(client.get(reverse("matching:model", args=[model.pk])))
    assert page.one("region", "Learn: Returning 2024").says("was removed")


def test_the_certificate_of_a_running_job_comes_from_its_trace(
    alice: User, bob: User, client_of: Callable, returning: Cohort
) -> None:
    learn(client_of(bob), returning)
    model = LearnedModel.objects.get()
    address = reverse("matching:model-certificate", args=[model.pk])
    assert Page(client_of(alice).get(address)).section("Certificate").says("The first bounds")
    model.job.trace.create(iteration=1, seconds=0.1, relative_gap=2.34)
    page = Page(client_of(alice).get(address))
    assert page.section("Certificate").says("Too early to tell")
    assert not page.says("from the best fit, by")
    assert page.has("listitem", "if you stop now, they are kept")
    model.job.trace.create(iteration=9, seconds=0.2, relative_gap=7.4e-4)
    page = Page(client_of(alice).get(address))
    assert page.has("img", "0.074 %")
    certificate = page.section("Certificate")
    assert certificate.says("from the best fit, by the bounds so far")  # nothing is certified yet
    assert certificate.element.get("hx-trigger")
    assert page.says("Waiting to learn")
    Job.objects.update(state="running")
    page = Page(client_of(alice).get(address))
    (state,) = page.element.xpath("//*[@id='model-state']")
    assert state.get("hx-swap-oob") == "true"
    assert not page.says("Waiting to learn")
    Job.objects.update(state="queued")
    job_cancel(user=bob, job=model.job)
    assert "hx-trigger" not in Page(client_of(alice).get(address)).source


def test_the_latest_year_is_kept_for_the_check(
    bob: User, client_of: Callable, returning: Cohort, later_year: Cohort
) -> None:
    form = client_of(bob).get("/models/new/").context["form"]
    assert form.chosen == [str(returning.pk)]
    assert form["check_on"].value() == str(later_year.pk)


def test_what_cannot_be_learned_gets_a_sentence(
    bob: User, client_of: Callable, returning: Cohort, later_year: Cohort
) -> None:
    client = client_of(bob)
    assert Page(learn(client), status=422).says("Choose at least one cohort")
    both = Page(learn(client, returning, check_on=str(returning.pk)), status=422)
    assert "cannot check the model" in both.field("Cohort to check on").description
    later_year.questions = [{"name": "Other", "kind": "binary", "levels": ["No", "Yes"]}]
    later_year.save()
    assert Page(learn(client, returning, later_year), status=422).has("alert", "share no question")
    assert learn(client, returning, ridge="-1").status_code == 422
    assert not LearnedModel.objects.exists()


def test_another_year_can_check_later(
    bob: User, client_of: Callable, learned: LearnedModel, later_year: Cohort
) -> None:
    client = client_of(bob)
    address = reverse("matching:model-check", args=[learned.pk])
    client.post(address, {"cohort": str(later_year.pk)})
    (job,) = run_waiting()
    assert job.state == JobState.SUCCEEDED, job.error
    learned.refresh_from_db()
    assert 0 <= learned.findings["auc"] <= 1
    assert learned.checked_name == later_year.name
    refused = client.post(address, {"cohort": str(learned.cohorts.get().pk)}, follow=True)
    assert Page(refused).one("alert").says("cannot check the model")


def test_what_a_check_was_made_on_outlives_its_cohort(
    bob: User, alice: User, client_of: Callable, learned: LearnedModel, later_year: Cohort
) -> None:
    """Once its cohort was purged, a check on simulated pairs used to be called one on real ones."""
    Cohort.objects.filter(pk=later_year.pk).update(pairs_origin=PairsOrigin.SIMULATED)
    model_check(user=bob, model=learned, cohort=later_year)
    run_waiting()
    cohort_purge(user=bob, cohort=later_year, typed_name=later_year.name)
    address = reverse("matching:model", args=[learned.pk])
    pages = (address, "/models/", "/", "/placements/new/")
    client = client_of(bob)
    cohort = str(learned.cohorts.get().pk)
    for page in pages:
        text = Page(client.get(page, {"cohort": cohort}))
        assert text.says("simulated pairs of Returning 2025"), page
    Placement.objects.create(
        organisation=bob.organisation,
        cohort=learned.cohorts.get(),
        model=learned,
        name="Used",
        is_pairs=True,
        buildings=BuildingList.everything.create(
            organisation=bob.organisation, name="Used", is_private=True
        ),
    )
    assert not Page(client.get("/")).says("Read the check")
    learned.refresh_from_db()
    findings = {name: value for name, value in learned.findings.items() if name != "is_simulated"}
    LearnedModel.objects.filter(pk=learned.pk).update(findings=findings)  # of an earlier version
    shown = Page(client_of(alice).get(address))
    assert shown.says("16 pairs of unknown origin of Returning 2025")


def test_one_check_runs_at_a_time(
    bob: User, client_of: Callable, learned: LearnedModel, later_year: Cohort
) -> None:
    """The model used to keep whichever of two ended last."""
    client, address = client_of(bob), reverse("matching:model-check", args=[learned.pk])
    client.post(address, {"cohort": str(later_year.pk)})
    page = Page(client.post(address, {"cohort": str(later_year.pk)}, follow=True))
    assert page.one("alert").says("The model is being checked.")
    run_waiting()
    client.post(address, {"cohort": str(later_year.pk)})
    assert Job.objects.count() == 2


def test_learning_again_begins_with_the_same_settings(
    bob: User, client_of: Callable, returning: Cohort, later_year: Cohort
) -> None:
    """The cohorts came back, but neither the settings nor the year to check on."""
    client = client_of(bob)
    sent = {"name": "Both & more", "ridge": "10.0", "gap": "1e-06", "method": "theta", "rho": "0.5"}
    learn(client, returning, check_on=str(later_year.pk), **sent)
    model = LearnedModel.objects.get()
    job_cancel(user=bob, job=model.job)
    page = Page(client.get(reverse("matching:model", args=[model.pk])))
    address = page.one("link", "Learn again").address
    form = client.get(address).context["form"]
    assert form.chosen == [str(returning.pk)]
    assert {name: form[name].value() for name in sent} == sent
    assert (form["check_on"].value(), form["seed"].value()) == (str(later_year.pk), None)


def test_viewers_look_and_others_see_nothing(
    alice: User, mallory: User, client_of: Callable, learned: LearnedModel
) -> None:
    address = reverse("matching:model", args=[learned.pk])
    assert client_of(alice).get(address).status_code == 200
    assert client_of(alice).get("/models/").status_code == 200
    assert client_of(alice).get("/models/new/").status_code == 403
    for name in ("model-check", "model-rename", "model-delete"):
        inside = reverse(f"matching:{name}", args=[learned.pk])
        assert client_of(alice).post(inside).status_code == 403
        assert client_of(mallory).post(inside).status_code in (403, 404)
    assert client_of(mallory).get(address).status_code == 404
    weights = reverse("matching:model-weights", args=[learned.pk])
    assert client_of(mallory).get(weights).status_code == 404


def test_a_question_opens_its_answers_and_weights_download(
    alice: User, client_of: Callable, learned: LearnedModel
) -> None:
    client = client_of(alice)
    page = client.get(reverse("matching:model", args=[learned.pk]) + "?question=0")
    assert Page(page).has("caption", "which answers go together")
    response = client.get(reverse("matching:model-weights", args=[learned.pk]))
    assert len(response.content.decode().strip().splitlines()) == 15
    assert "sandbox" in response["Content-Security-Policy"]
    line = AuditLine.objects.get(verb="exported")
    assert (line.username, line.target_id) == ("alice", str(learned.pk))


def test_a_model_in_use_stays(
    carol: User, client_of: Callable, placement: object, learned: LearnedModel
) -> None:
    address = reverse("matching:model-delete", args=[learned.pk])
    page = Page(client_of(carol).post(address, {"name": learned.name}, follow=True), status=422)
    typed = page.field("Type “Returning” to confirm")
    assert "First-years was placed by this model" in typed.description
    assert LearnedModel.objects.filter(pk=learned.pk).exists()


def test_weights_that_were_stopped_before_any_proof_keep_their_honest_gap(
    alice: User, client_of: Callable, learned: LearnedModel
) -> None:
    stopped = {"is_certified": True, "is_converged": False, "relative_gap": 2.34}
    figures = learned.figures | stopped
    LearnedModel.objects.filter(pk=learned.pk).update(figures=figures)
    page = Page(client_of(alice).get(reverse("matching:model", args=[learned.pk])))
    assert page.section("Certificate").says("Too early to tell")
    assert page.says("Stopped early before it could tell")
    assert not page.says("from the best fit, at most")
    assert "too early to tell how near" in jobs._learned_sentence(figures)


@pytest.mark.parametrize("is_certified", [True, False])
def test_an_estimate_is_not_called_a_bound(
    alice: User, client_of: Callable, learned: LearnedModel, is_certified: bool
) -> None:
    figures = learned.figures | {"is_certified": is_certified}
    LearnedModel.objects.filter(pk=learned.pk).update(figures=figures)
    page = Page(client_of(alice).get(reverse("matching:model", args=[learned.pk])))
    assert page.says("from the best fit, at most") == is_certified
    assert page.says("from the best fit, as estimated") != is_certified
    assert page.has("listitem", "no weights fit these past choices better") == is_certified
    sentence = jobs._learned_sentence(figures)
    assert sentence.startswith("Certified" if is_certified else "Estimate")


@pytest.mark.parametrize(
    ("effect", "kind", "words"),
    [
        (-0.66, "ordinal", "48 % less likely per step apart"),
        (-0.58, "binary", "44 % less likely if different"),
        (0.06, "ordinal", "6 % more likely per step apart"),
        (-0.02, "ordinal", "No clear effect"),
        (1.0, "nominal", "2.7 times as likely if different"),
    ],
)
def test_effects_in_words(effect: float, kind: str, words: str) -> None:
    found = effect_in_words(effect, kind)
    assert f"{found['words']} {found['per']}".strip() == words


def test_every_solver_of_the_engine_can_be_chosen_and_no_other() -> None:
    assert set(METHODS) == set(SOLVERS)


def test_a_year_that_cannot_check_is_refused_before_learning(
    bob: User, client_of: Callable, returning: Cohort, later_year: Cohort, first_years: Cohort
) -> None:
    with pytest.raises(MatchingError, match="First-years has 0 pairs; at least 2 are needed"):
        model_learn(user=bob, name="", cohorts=[returning], check_on=first_years)
    questions = later_year.questions
    questions[0]["name"] = "Other"
    Cohort.objects.filter(pk=later_year.pk).update(questions=questions)
    page = Page(learn(client_of(bob), returning, check_on=str(later_year.pk)), status=422)
    assert page.has("alert", "is missing")
    assert not LearnedModel.objects.exists()


@pytest.mark.parametrize("is_purged", [True, False])
def test_what_was_learned_stays_when_its_check_fails(
    bob: User, client_of: Callable, returning: Cohort, later_year: Cohort, is_purged: bool
) -> None:
    """The finished weights used to be thrown away."""
    learn(client_of(bob), returning, check_on=str(later_year.pk))
    train = jobs.train_roommates

    def train_and_remove(*arguments: object, **options: object) -> TrainedRoommates:
        if is_purged:
            cohort_purge(user=bob, cohort=later_year, typed_name=later_year.name)
        else:
            later_year.past_pairs.all().delete()
        return train(*arguments, **options)

    with patch.object(jobs, "train_roommates", train_and_remove):
        (job,) = run_waiting()
    model = LearnedModel.objects.get()
    assert (job.state, model.findings, model.checked_name) == ("succeeded", {}, ""), job.error
    assert model.is_learned
    assert model.path.exists()
    if is_purged:
        assert "Not checked: The cohort was removed" in job.sentence
        return
    run_waiting()
    model.refresh_from_db()
    assert "Evaluation needs at least two pairs" in model.check_job.error
    assert (model_state(model).key, model.findings) == ("certified", {})


def test_cancelling_the_check_loses_nothing(
    bob: User,
    client_of: Callable,
    returning: Cohort,
    later_year: Cohort,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The check was the end of learning: who cancelled it lost the weights."""
    monkeypatch.setattr(context, "STOP_SECONDS", 0.0)
    learn(client_of(bob), returning, check_on=str(later_year.pk))
    evaluate = jobs.evaluate_roommates

    def cancel_and_evaluate(*arguments: object, **options: object) -> object:
        for job in Job.objects.filter(state=JobState.RUNNING):
            job_cancel(user=bob, job=job)
        return evaluate(*arguments, **options)

    with patch.object(jobs, "evaluate_roommates", cancel_and_evaluate):
        run_waiting()
        run_waiting()
    model = LearnedModel.objects.get()
    assert model.check_job.state == JobState.CANCELLED
    assert (model.job.state, model_state(model).key) == (JobState.SUCCEEDED, "certified")
    assert model.figures["relative_gap"] <= 1e-4
    assert len(model.weights) == 14
    assert model.path.exists()
    address = reverse("matching:model", args=[model.pk])
    page = Page(client_of(bob).get(address))
    assert page.says("Certified: within")
    assert page.one("region", "Check: Returning 2024, Returning 2025").says("Cancelled")


@pytest.mark.parametrize("kind", ["check", "simulate"])
def test_purging_a_cohort_cancels_what_reads_it(
    bob: User, learned: LearnedModel, later_year: Cohort, first_years: Cohort, kind: str
) -> None:
    if kind == "check":
        cohort = later_year
        model_check(user=bob, model=learned, cohort=cohort)
    else:
        cohort = first_years
        pairs_simulation_start(user=bob, cohort=cohort)
    cohort_purge(user=bob, cohort=cohort, typed_name=cohort.name)
    job = Job.objects.get()
    assert (job.state, job.cancelled_by) == (JobState.CANCELLED, bob)


@pytest.mark.parametrize("kind", ["check", "simulate"])
def test_a_cohort_that_went_while_it_was_read_is_named(
    bob: User, learned: LearnedModel, later_year: Cohort, first_years: Cohort, kind: str
) -> None:
    """The answer used to be that the fault was ours."""
    if kind == "check":
        model_check(user=bob, model=learned, cohort=later_year)
        computes, cohort = "webapp.matching.jobs.evaluation_figures", later_year
    else:
        pairs_simulation_start(user=bob, cohort=first_years)
        computes, cohort = "webapp.cohorts.jobs.simulate_pairs", first_years
    compute = import_string(computes)

    def compute_and_remove(*arguments: object, **options: object) -> object:
        result = compute(*arguments, **options)
        cohort.delete()
        return result

    with patch(computes, compute_and_remove):
        (job,) = run_waiting()
    assert job.error.startswith("The cohort was removed meanwhile.")


def test_the_form_offers_every_method_in_words(
    client_of: Callable, bob: User, returning: Cohort
) -> None:
    page = Page(client_of(bob).get(reverse("matching:model-new")))
    for method, words in METHODS.items():
        assert page.one("option", words, exactly=True).value == method


def test_a_model_deleted_while_it_is_learned_leaves_no_weights(
    client_of: Callable, bob: User, returning: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn(client_of(bob), returning)
    model, train = LearnedModel.objects.get(), jobs.train_roommates

    def delete_and_train(*arguments: object, **options: object) -> TrainedRoommates:
        model_delete(user=bob, model=model, typed_name=model.name)
        return train(*arguments, **options)

    monkeypatch.setattr(jobs, "train_roommates", delete_and_train)
    monkeypatch.setattr(JobContext, "should_stop", lambda context: False)  # it ends by itself
    path = model.path
    (job,) = run_waiting()
    assert job.cancelled_by == bob
    assert job.state == JobState.CANCELLED
    assert job.sentence.endswith(f" s. The model “{model.name}” was removed. Nothing was changed.")
    assert not path.exists()


def test_without_room_the_form_says_so(
    client_of: Callable, bob: User, returning: Cohort, settings: object
) -> None:
    settings.ORGANISATION_QUOTA_GB = 0
    page = client_of(bob).post(reverse("matching:model-new"), {"cohort": str(returning.pk)})
    assert page.status_code == 422
    assert Page(page, status=422).has("alert", "your organisation would take")
    assert not LearnedModel.objects.exists()
