"""Learning itself, killed in the middle: the model is the one that an undisturbed run gives.

By Frank-Wolfe, whose hundred steps take seconds: the ascent in the weights would end first.
"""

import json
import os
import signal
import time
from typing import Any

import pytest

from tests.live.product import Product
from tests.live.test_job_life_cycle import is_over, read, wait
from tests.patience import busyness

_LEARN = """
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.matching.services.learning import model_learn
staff = User.objects.get(username="demo-staff")
cohorts = list(Cohort.objects.filter(organisation=staff.organisation, name__startswith="Returning"))
assert len(cohorts) == 2
model = model_learn(
    user=staff, name={name!r}, cohorts=cohorts, relative_gap=0.1, method="frank-wolfe", seed=5
)
print(model.job_id)
"""


def weights_of(product: Product, name: str) -> Any:
    rows = product.rows("SELECT weights FROM matching_learnedmodel WHERE name = ?", name)
    return json.loads(rows[0]["weights"])


@pytest.mark.slow
def test_a_worker_killed_while_learning_gives_the_same_model(product: Product) -> None:
    product.manage("load_demonstration")
    # The first run compiles what the cache lacks; it also is the one to compare with.
    undisturbed = product.run(_LEARN.format(name="undisturbed"))
    first = wait(product, undisturbed, is_over)
    assert first["state"] == "succeeded", product.logs()
    expected = weights_of(product, "undisturbed")
    assert expected

    pk = product.run(_LEARN.format(name="killed"))
    job = wait(product, pk, lambda row: len(row["trace"]) >= 3)
    os.kill(int(job["worker"].split(":")[-2]), signal.SIGKILL)
    killed_at = time.monotonic()
    job = wait(product, pk, is_over)
    assert (job["state"], job["attempt"]) == ("succeeded", 2), product.logs()
    assert time.monotonic() - killed_at < 60 * busyness()
    assert weights_of(product, "killed") == expected
    # Which steps between are told depends on time; the last one always is, and none is told twice.
    told, expected = read(product, pk)["trace"], read(product, undisturbed)["trace"]
    assert told[-1] == expected[-1]
    assert len(set(told)) == len(told)
