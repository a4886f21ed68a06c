"""A machine with too little memory for 2,500 students: one sentence, and all well with more."""

import json
import resource
import time
from pathlib import Path

import pytest

from tests.live.product import Product, children_of, name_of, new_product

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc"),
]
STUDENTS = 2_500
HEADROOM = 24 << 20  # bytes: less than one number for each pair of so many students

_YEAR = f"""
from benchmarks.product.web_load import Filler
from webapp.accounts.models import User
bob = User.objects.get(username="bob")
filler = Filler(bob)
filler._model_data()
cohort = filler._cohort("A large year", {STUDENTS}, with_pairs=True)
"""
_LEARN = """
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.matching.services.learning import model_learn
bob = User.objects.get(username="bob")
model = model_learn(user=bob, name="A model", cohorts=[Cohort.objects.get()], relative_gap=1e-2)
print(model.job_id)
"""
_ENDED = """
import json
from webapp.cohorts.models import Cohort
from webapp.jobs.models import Job
jobs = Job.objects.filter(kind="roommates.learn").order_by("created_at")
print(json.dumps([[[job.state, job.error] for job in jobs], Cohort.objects.get().n_pairs]))
"""


def test_learning_without_memory_is_one_sentence_and_loses_nothing(tmp_path: Path) -> None:
    product = new_product(tmp_path, LEARN_WORKERS="1")
    product.start()
    try:
        product.run(_YEAR)
        leave_little_memory(product)
        product.run(_LEARN)
        (state, error), n_pairs = ended(product, 1)
        assert state == "failed", error
        assert error.startswith("This needs more memory than the machine has."), error
        assert n_pairs == STUDENTS // 2
        assert product.stop() == 0
        product.start()
        product.run(_LEARN)
        assert ended(product, 2)[0][0] == "succeeded"
    finally:
        product.stop()


def leave_little_memory(product: Product) -> None:
    """Let no process that runs jobs take much more memory than it has, nor its children."""
    supervisor = product.process
    assert supervisor is not None
    for worker in children_of(supervisor.pid):
        if name_of(worker) in ("worker", "learner"):
            for process in (worker, *children_of(worker)):
                most = data_bytes(process) + HEADROOM
                resource.prlimit(process, resource.RLIMIT_DATA, (most, resource.RLIM_INFINITY))


def data_bytes(process: int) -> int:
    """Return the memory that a process may write, which is what the limit counts."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    (kilobytes,) = [line.split()[1] for line in lines if line.startswith("VmData:")]
    return int(kilobytes) << 10


def ended(product: Product, count: int) -> tuple[list[str], int]:
    """Wait for the newest of so many jobs; return its state and error, and the pairs there are."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        jobs, n_pairs = json.loads(product.run(_ENDED).splitlines()[-1])
        if len(jobs) == count and all(job[0] not in ("queued", "running") for job in jobs):
            return jobs[-1], n_pairs
        time.sleep(1)
    raise AssertionError(product.logs())
