"""A set, model or prediction that is removed cancels the jobs that work on it, and says why."""

from typing import Any

import pytest
from django.conf import LazySettings

from webapp.jobs.models import Job, JobState
from webapp.jobs.runner import run_job
from webapp.segmentation.models import ImageSet, PredictionBatch, Segmenter
from webapp.segmentation.services.image_sets import image_set_purge
from webapp.segmentation.services.predictions import prediction_start
from webapp.segmentation.services.segmenters import (
    LearningChoices,
    segmenter_delete,
    segmenter_learn,
)

SET_REMOVED = "Cancelled while it waited. The image set “Leaves” was removed. Nothing was changed."


def learning(user: Any, *sets: ImageSet) -> Job:
    segmenter = segmenter_learn(
        user=user, name="Leaf model", image_sets=list(sets), choices=LearningChoices()
    )
    assert segmenter.job is not None
    return segmenter.job


def predicting(user: Any, segmenter: Segmenter, image_set: ImageSet) -> Job:
    batch = prediction_start(user=user, segmenter=segmenter, image_set=image_set)
    assert batch.job is not None
    return batch.job


@pytest.mark.parametrize("at_once", [200, 0])  # a small set, and one that a job takes away
def test_a_set_removed_under_queued_jobs_cancels_them_with_that_reason(
    bob, image_set, segmenter, settings: LazySettings, at_once: int
) -> None:
    jobs = [learning(bob, image_set), predicting(bob, segmenter, image_set)]
    settings.REMOVED_AT_ONCE = at_once
    image_set_purge(user=bob, image_set=image_set)
    for job in jobs:
        job.refresh_from_db()
        assert (job.state, job.sentence) == (JobState.CANCELLED, SET_REMOVED)
        run_job(job.pk, watched=False)  # a message that is still on its way
        job.refresh_from_db()
        assert job.state == JobState.CANCELLED


def test_learning_goes_on_from_the_sets_that_are_left(bob, image_set, make_set) -> None:
    job = learning(bob, image_set, make_set(bob, name="More leaves"))
    image_set_purge(user=bob, image_set=image_set)
    job.refresh_from_db()
    assert job.state == JobState.QUEUED


def test_a_model_removed_under_its_prediction_says_so(bob, image_set, segmenter) -> None:
    job = predicting(bob, segmenter, image_set)
    segmenter_delete(user=bob, segmenter=segmenter)
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert "The model “Leaf model” was removed." in job.sentence


def test_a_job_whose_subject_is_gone_is_cancelled_and_not_our_fault(
    bob, image_set, segmenter
) -> None:
    """Whatever removed it, and said nothing to the job."""
    job = predicting(bob, segmenter, image_set)
    PredictionBatch.everything.all().delete()
    run_job(job.pk, watched=False)
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert "The predictions were removed." in job.sentence
