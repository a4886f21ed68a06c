"""An installation of the oldest version that still runs is upgraded, and no job of it is lost."""

import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from tests.live.product import ROOT

_BEFORE = """
import os, signal
from webapp.accounts.models import Organisation, User
from webapp.cohorts.demonstration import survey_as_csv
from webapp.cohorts.models import Cohort, PairsOrigin
from webapp.cohorts.services.cohorts import cohort_set_pairs, draft_import
from webapp.cohorts.services.drafts import draft_create
from webapp.matching.services.learning import model_learn
from webapp.jobs import dispatch
from webapp.jobs.services import job_claim
from engine import simulate_university
import numpy as np
dispatch.send = lambda *arguments: False  # no broker runs
north = Organisation.objects.create(name="Northfield")
bob = User.objects.create_user(username="bob", organisation=north, role="staff")
year = simulate_university(40, 1, rng=np.random.default_rng(1)).cohorts[0]
data = survey_as_csv(year.survey)
draft = draft_create(user=bob, filename="s.csv", size=len(data), read=lambda: data)
cohort = draft_import(user=bob, draft=draft, name="2024", version=draft.version)
pairs = [(int(a), int(b)) for a, b in year.pairs]
cohort_set_pairs(user=bob, cohort=cohort, pairs=pairs, origin=PairsOrigin.SIMULATED, note="")
models = [model_learn(user=bob, name=name, cohorts=[Cohort.objects.get()])
          for name in ("waits", "runs")]
job_claim(job_id=models[1].job_id)
os.kill(os.getpid(), signal.SIGKILL)  # as the upgrade finds it: running, and its process is gone
"""

_AFTER = """
from django.conf import settings
from webapp.jobs import dispatch, runner
from webapp.jobs.models import Job
from webapp.jobs.services import jobs_sweep
from webapp.matching.models import LearnedModel
dispatch.send = lambda *arguments: False
settings.JOB_ORPHAN_SECONDS = 0  # the upgrade took longer than that
print(jobs_sweep()["requeued"], end=" ")
old = list(Job.objects.order_by("created_at"))
for job in old:
    runner.run_job(job.pk)  # what it leaves to a job of its own may wait
    job.refresh_from_db()
print(*(job.state for job in old), end=" ")
print(sum(model.is_learned for model in LearnedModel.objects.all()))
"""


def git(*words: str) -> bytes:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else b""


def manage(folder: Path, instance: Path, *words: str) -> subprocess.CompletedProcess[str]:
    unwanted = {"DEBUG", "DATABASE_URL", "REDIS_URL", "STORE_URL", "MEDIA_ROOT"}
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    environment["BETHE_HALL_INSTANCE"] = str(instance)
    return subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_jobs_of_the_oldest_version_are_done_by_this_one(tmp_path: Path) -> None:
    history = git("rev-list", "--reverse", "HEAD", "--", "webapp/jobs/migrations").split()
    if not history:
        pytest.skip("needs the history of the repository, which is absent")
    old, instance = tmp_path / "old", tmp_path / "instance"
    with tarfile.open(fileobj=BytesIO(git("archive", history[0].decode()))) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # not in Python 3.11.2
        archive.extractall(old)
    assert manage(old, instance, "migrate", "--verbosity", "0").returncode == 0
    before = manage(old, instance, "shell", "--no-imports", "-c", _BEFORE)
    assert before.returncode == -9, before.stderr
    migrated = manage(ROOT, instance, "migrate", "--verbosity", "0")
    assert migrated.returncode == 0, migrated.stderr
    after = manage(ROOT, instance, "shell", "--no-imports", "-c", _AFTER)
    assert after.stdout.split() == ["1", "succeeded", "succeeded", "2"], after.stderr
