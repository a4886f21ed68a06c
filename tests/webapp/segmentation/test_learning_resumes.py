"""Long learning goes on from its checkpoint, by whichever method it learns."""

from typing import Any

import pytest

from engine import InvalidProblemError
from webapp.jobs.checkpoint import StoredCheckpoint
from webapp.jobs.runner import run_job
from webapp.segmentation import jobs, spread_learning
from webapp.segmentation.models import Segmenter
from webapp.segmentation.services.segmenters import LearningChoices, segmenter_learn


@pytest.mark.parametrize("solver", [Segmenter.Solver.THETA, Segmenter.Solver.AUTO])
def test_every_learner_gets_the_checkpoint_of_its_job(
    bob, image_set, monkeypatch: pytest.MonkeyPatch, solver: str
) -> None:
    given: list[Any] = []

    def train(*_: Any, checkpoint: Any = None, **__: Any) -> Any:
        given.append(checkpoint)
        raise InvalidProblemError("enough")

    monkeypatch.setattr(jobs, "train_boosted_segmentation", train)
    monkeypatch.setattr(spread_learning, "train_segmentation", train)
    choices = LearningChoices(solver=solver)
    segmenter = segmenter_learn(user=bob, name="Leaf", image_sets=[image_set], choices=choices)
    run_job(segmenter.job_id, watched=False)
    assert [type(checkpoint) for checkpoint in given] == [StoredCheckpoint]
