"""Learning on more hosts than the job's own: the same model; alone where there are none."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from django.conf import LazySettings

from engine import load_segmentation_model
from engine.core.hosts import HostLostError
from tests.webapp.segmentation.conftest import MakeSet
from webapp.accounts.models import User
from webapp.jobs.models import JobState
from webapp.jobs.runner import run_job
from webapp.segmentation import spread_learning
from webapp.segmentation.models import ImageSet, Segmenter
from webapp.segmentation.services.segmenters import LearningChoices, segmenter_learn

CHOICES = LearningChoices(
    solver="theta", max_side=40, max_seconds=600, relative_gap=0.05, holdout_percent=0
)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """A scheduler and two workers on threads of this process, spoken to over TCP."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        protocol="tcp",
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=50,
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(autouse=True)
def every_set_is_large(settings: LazySettings) -> None:
    settings.SPREAD_PIXELS = 1


@pytest.fixture
def used_hosts(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """How many hosts each learning used; 0 is the job's own."""
    used: list[Any] = []
    train = spread_learning.train_segmentation

    def noted(*arguments: Any, **options: Any) -> Any:
        used.append(options["hosts"].count if options.get("hosts") else 0)
        return train(*arguments, **options)

    monkeypatch.setattr(spread_learning, "train_segmentation", noted)
    return used


@pytest.fixture
def image_set(bob: User, make_set: MakeSet) -> ImageSet:
    return make_set(bob, images=8, masks=8)


def learned(user: User, image_set: ImageSet, name: str) -> Segmenter:
    segmenter = segmenter_learn(
        user=user, name=name, image_sets=[image_set], choices=CHOICES, seed=1
    )
    run_job(segmenter.job_id, watched=False)
    segmenter.refresh_from_db()
    assert segmenter.job.state == JobState.SUCCEEDED, segmenter.job.error
    return segmenter


def test_the_model_is_the_same_wherever_its_pictures_were(
    bob: User, image_set: ImageSet, scheduler: str, settings: LazySettings, used_hosts: list[Any]
) -> None:
    models = []
    for address in ("", scheduler):
        settings.DASK_SCHEDULER = address
        segmenter = learned(bob, image_set, f"Model {address}")
        models.append(load_segmentation_model(segmenter.path).theta)
        assert segmenter.outcome["n_learned"] == 8
    assert used_hosts == [0, 2]
    assert np.abs(models[0] - models[1]).max() <= 1e-9 * np.abs(models[0]).max()


def test_small_sets_are_learned_from_at_home(
    bob: User, image_set: ImageSet, scheduler: str, settings: LazySettings, used_hosts: list[Any]
) -> None:
    settings.DASK_SCHEDULER, settings.SPREAD_PIXELS = scheduler, 1e9
    learned(bob, image_set, "Small")
    assert used_hosts == [0]


def test_a_lost_host_or_scheduler_costs_no_job(
    bob: User,
    image_set: ImageSet,
    scheduler: str,
    settings: LazySettings,
    used_hosts: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    train, lost = spread_learning.train_segmentation, []

    def lose_one(*arguments: Any, **options: Any) -> Any:
        if not lost:
            list(zip(*arguments, strict=True))  # it was among the pictures when the host went
            lost.append(True)
            raise HostLostError("A host went away.")
        return train(*arguments, **options)

    monkeypatch.setattr(spread_learning, "train_segmentation", lose_one)
    settings.DASK_SCHEDULER = scheduler
    segmenter = learned(bob, image_set, "Lost")
    assert used_hosts == [2]
    assert segmenter.outcome["n_learned"] == 8
    monkeypatch.setattr(spread_learning, "PATIENCE", 0.2)
    settings.DASK_SCHEDULER = "tcp://127.0.0.1:1"
    learned(bob, image_set, "Away")
    assert used_hosts == [2, 0]
