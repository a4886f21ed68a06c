"""Learning from images on the real parts: killed in the middle, and cancelled.

Twenty pictures at full size and a small gap keep the learner busy far longer than the two seconds
between its checkpoints, so that a fast machine cannot end it before the test gets hold of it.
"""

import json
import os
import signal
import time
from datetime import datetime
from typing import Any

import pytest

from tests.live.product import Product
from tests.patience import busyness

_START = """
import json
import numpy as np
from webapp.accounts.models import User
from webapp.segmentation.demonstration import _make_set
from webapp.segmentation.models import ImageSet
from webapp.segmentation.services.segmenters import LearningChoices, segmenter_learn
bob = User.objects.get(username="bob")
if not ImageSet.objects.filter(name="Leaves").exists():
    _make_set(bob, "Leaves", count=20, rng=np.random.default_rng(1), with_masks=True, first=1)
segmenter = segmenter_learn(
    user=bob,
    name="Live",
    image_sets=[ImageSet.objects.get(name="Leaves")],
    choices=LearningChoices(solver="theta", max_side=320, max_seconds=600, relative_gap={gap}),
    seed=7,
)
print(json.dumps(dict(job=str(segmenter.job_id), segmenter=str(segmenter.pk))))
"""


def start(product: Product, *, gap: float) -> dict[str, str]:
    return json.loads(product.run(_START.format(gap=gap)).splitlines()[-1])


def read(product: Product, started: dict[str, str]) -> dict[str, Any]:
    keys = {name: value.replace("-", "") for name, value in started.items()}
    found = dict(product.rows("select * from jobs_job where uuid = ?", keys["job"])[0])
    points = product.rows(
        "select max(iteration) as steps from segmentation_heldoutpoint where segmenter_id = ?",
        keys["segmenter"],
    )
    (model,) = product.rows(
        "select outcome from segmentation_segmenter where uuid = ?", keys["segmenter"]
    )
    return found | {"steps": points[0]["steps"] or 0, "outcome": json.loads(model["outcome"])}


def wait(product: Product, started: dict[str, str], is_there: Any, seconds: float = 660.0) -> Any:
    deadline = time.monotonic() + seconds
    while True:
        found = read(product, started)
        if is_there(found):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


@pytest.mark.slow
def test_learning_goes_on_after_its_worker_was_killed(product: Product) -> None:
    started = start(product, gap=1e-6)
    running = wait(product, started, lambda one: one["steps"] >= 4 or one["state"] != "running")
    saved = f"media/organisation-*/checkpoints/{started['job']}*"
    while running["state"] in {"queued", "running"} and not list(product.instance.glob(saved)):
        time.sleep(0.05)
        running = read(product, started)
    assert running["state"] == "running", running
    os.kill(int(running["worker"].split(":")[-2]), signal.SIGKILL)
    ended = wait(product, started, lambda one: one["state"] in {"succeeded", "failed"})
    assert ended["state"] == "succeeded", ended
    assert ended["attempt"] == 2
    assert ended["resumed_from"] > 0
    assert ended["outcome"]["relative_gap"] <= 1e-6


@pytest.mark.slow
def test_learning_is_cancelled_within_two_seconds(product: Product) -> None:
    started = start(product, gap=1e-9)
    wait(product, started, lambda one: one["steps"] >= 2)
    product.run(
        "from webapp.accounts.models import User\n"
        "from webapp.jobs.models import Job\n"
        "from webapp.jobs.services import job_cancel\n"
        f"job = Job.objects.get(pk='{started['job']}')\n"
        "job_cancel(user=User.objects.get(username='bob'), job=job)"
    )
    ended = wait(product, started, lambda one: one["state"] == "cancelled")
    assert not ended["outcome"]
    times = [datetime.fromisoformat(ended[key]) for key in ("cancel_requested_at", "finished_at")]
    assert (times[1] - times[0]).total_seconds() < 2.5 * busyness()
