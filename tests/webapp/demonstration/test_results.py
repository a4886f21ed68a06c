"""Results of the demonstration: each is started once, survives any end of a process, can fail."""

import pytest

from tests.webapp.demonstration.conftest import advance_while_it_can
from webapp.accounts.models import User
from webapp.cohorts.demonstration import PAST_YEARS
from webapp.cohorts.models import Cohort
from webapp.common.errors import Refusal
from webapp.demonstration import services
from webapp.demonstration.models import DemonstrationResult, ResultState
from webapp.demonstration.services import result_retry, results_advance, results_load
from webapp.demonstration.steps.questionnaire import ANSWERED, INVITED
from webapp.demonstration.steps.step import StepError
from webapp.housing.models import BuildingList, Placement
from webapp.jobs.models import Job, JobState
from webapp.jobs.runner import run_job
from webapp.letters.models import LetterTemplate
from webapp.matching.models import LearnedModel
from webapp.segmentation.models import ImageSet, Segmenter, Stroke
from webapp.surveys.models import Questionnaire


class KilledError(BaseException):
    """Stands for SIGKILL: the transaction ends in the middle, and nothing handles it."""


def states() -> dict[str, str]:
    return dict(DemonstrationResult.objects.values_list("key", "state"))


def counts() -> dict[str, int]:
    """Return the number of objects of each kind that steps without a job have made."""
    kinds = (Questionnaire, LearnedModel, Placement, Segmenter, ImageSet, Job, LetterTemplate)
    return {kind.__name__: kind.objects.count() for kind in kinds}


FIRST_COUNTS = {
    "Questionnaire": 1,
    "LearnedModel": 2,  # one is being learned, one has weights set by hand
    "Placement": 1,
    "Segmenter": 1,
    "ImageSet": 1,
    "Job": 3,
    "LetterTemplate": 0,
}


def test_each_result_is_started_once_and_others_wait_for_it(planned: User) -> None:
    advance_while_it_can()
    assert states() == {
        "questionnaire": "ready",
        "model": "started",
        "pairs": "waiting",
        "draft": "waiting",
        "published": "started",
        "painted": "started",
        "counts": "waiting",
    }
    assert counts() == FIRST_COUNTS
    asked = Questionnaire.objects.get()
    assert asked.participants.count() == INVITED
    assert asked.participants.exclude(finished_at=None).count() == ANSWERED
    assert asked.is_open
    assert set(Stroke.objects.values_list("value", flat=True)) == {1, 2}
    assert results_advance() == 0
    results_load(planned.own_organisation, planned)
    assert results_advance() == 0
    assert counts() == FIRST_COUNTS


@pytest.mark.parametrize("at", range(5))
def test_a_process_killed_before_its_commit_leaves_nothing_and_the_next_goes_on(
    planned: User, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    change, calls = services._change, []

    def change_and_die(*arguments: object, **fields: object) -> None:
        change(*arguments, **fields)
        calls.append(arguments)
        if len(calls) == at + 1:
            raise KilledError

    monkeypatch.setattr(services, "_change", change_and_die)
    with pytest.raises(KilledError):
        advance_while_it_can()
    n_stored = DemonstrationResult.objects.exclude(state=ResultState.WAITING).count()
    assert Job.objects.count() <= n_stored
    advance_while_it_can()
    assert counts() == FIRST_COUNTS


def test_students_who_answered_before_a_kill_do_not_answer_twice(
    planned: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    from webapp.demonstration.steps import questionnaire

    finish, finished = questionnaire.answers_finish, []

    def finish_or_die(**arguments: object) -> None:
        if len(finished) == 7:
            finished.append(None)
            raise KilledError
        finished.append(arguments)
        finish(**arguments)

    monkeypatch.setattr(questionnaire, "answers_finish", finish_or_die)
    with pytest.raises(KilledError):
        advance_while_it_can()
    people = Questionnaire.objects.get().participants
    assert people.exclude(finished_at=None).count() == 7
    assert people.exclude(updated_at=None).count() == 7
    advance_while_it_can()
    assert people.exclude(finished_at=None).count() == ANSWERED
    assert counts() == FIRST_COUNTS


def test_a_computed_placement_is_published_once_with_a_letter_that_is_not_sent(
    planned: User, carol: User
) -> None:
    advance_while_it_can()
    placement = Placement.objects.get()
    run_job(placement.job_id, watched=False)
    advance_while_it_can()
    placement.refresh_from_db()
    assert placement.is_published
    assert placement.published_by == carol.username
    assert placement.places.filter(room__isnull=False).count() == ANSWERED
    assert states()["published"] == "ready"
    letter = LetterTemplate.objects.get()
    assert not letter.letters.exists()
    assert BuildingList.objects.count() == 2


def test_a_failed_job_is_told_and_prepared_again_without_its_remains(planned: User) -> None:
    advance_while_it_can()
    job = LearnedModel.objects.get(learned_at=None).job
    Job.objects.filter(pk=job.pk).update(state=JobState.FAILED, error="There is no memory.")
    advance_while_it_can()
    row = DemonstrationResult.objects.get(key="model")
    assert (row.state, row.error) == ("failed", "There is no memory.")
    assert states()["pairs"] == "waiting"
    result_retry(user=planned, key="model")
    advance_while_it_can()
    assert states()["model"] == "started"
    again = LearnedModel.objects.get(learned_at=None)
    assert again.job_id != job.pk
    with pytest.raises(StepError):
        result_retry(user=planned, key="model")


def test_a_removed_year_is_named(planned: User) -> None:
    Cohort.objects.get(name=PAST_YEARS[0]).delete()
    advance_while_it_can()
    row = DemonstrationResult.objects.get(key="model")
    assert row.state == "failed"
    assert PAST_YEARS[0] in row.error


def test_a_result_removed_before_others_use_it_is_prepared_again_with_them(planned: User) -> None:
    while states()["questionnaire"] != "ready":
        results_advance()
    advance_while_it_can()
    row = DemonstrationResult.objects.get(key="published")
    Job.objects.filter(pk=row.job_id).update(state=JobState.CANCELLED, sentence="Cancelled.")
    Questionnaire.objects.all().delete()
    Cohort.objects.filter(name__startswith="Early").delete()
    advance_while_it_can()
    assert states()["published"] == "failed"
    result_retry(user=planned, key="published")
    advance_while_it_can()
    assert (states()["questionnaire"], states()["published"]) == ("ready", "started")


def test_an_error_that_nobody_foresaw_stops_one_result_only(
    planned: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(**arguments: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("webapp.demonstration.steps.past_years.model_learn", break_down)
    advance_while_it_can()
    found = states()
    assert found.pop("model") == "failed"
    assert "failed" not in found.values()
    assert "log" in DemonstrationResult.objects.get(key="model").error


def test_without_a_demonstration_nothing_is_prepared(bob: User) -> None:
    assert results_advance() == 0
    assert not Questionnaire.objects.exists()
    assert not Job.objects.exists()


def test_a_closed_demonstration_is_left_as_it_is(planned: User) -> None:
    planned.is_active = False
    planned.save()
    assert results_advance() == 0
    assert not Job.objects.exists()


def test_another_organisation_cannot_prepare_again(planned: User, mallory: User) -> None:
    DemonstrationResult.objects.update(state=ResultState.FAILED)
    with pytest.raises(Refusal):
        result_retry(user=mallory, key="model")
    assert set(states().values()) == {"failed"}
