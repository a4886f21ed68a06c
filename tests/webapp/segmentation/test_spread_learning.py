"""Learning on more hosts than the job's own: the same model; alone where there are none."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.conf import LazySettings

from engine import load_segmentation_model
from engine.core.hosts import HostLostError
from tests.webapp.factories.images import MakeSet
from webapp.accounts.models import User
from webapp.instance import BASE_DIR
from webapp.jobs.models import JobState
from webapp.jobs.runner import run_job
from webapp.segmentation import spread_learning
from webapp.segmentation.models import ImageSet, Segmenter
from webapp.segmentation.services.segmenters import LearningChoices, segmenter_learn
from webapp.supervisor import roles

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


def test_with_certificates_and_the_scheme_the_scheduler_takes_only_callers_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set as the operating guide says; anybody who reaches the scheduler could run programs."""
    from distributed import Client
    from distributed.security import Security

    (certificate, key), strangers = pair_of_keys(tmp_path, "ours"), pair_of_keys(tmp_path, "other")
    monkeypatch.setattr(roles, "SPREAD_PORT", "0")
    prefix = "DASK_DISTRIBUTED__COMM__"
    given = {
        f"{prefix}DEFAULT_SCHEME": "tls",
        f"{prefix}REQUIRE_ENCRYPTION": "True",
        f"{prefix}TLS__CA_FILE": certificate,
        f"{prefix}TLS__SCHEDULER__CERT": certificate,
        f"{prefix}TLS__SCHEDULER__KEY": key,
    }
    guide = (BASE_DIR / "docs" / "operating.md").read_text(encoding="utf-8")
    for name in list(given)[:3]:
        assert f"`{name}" in guide, name
    process = subprocess.Popen(
        roles.scheduler_command(), env=os.environ | given, stderr=subprocess.PIPE, text=True
    )
    try:
        lines = iter(process.stderr.readline, "")
        address = next(found[0] for line in lines if (found := re.search(r"tls://\S+", line)))

        def caller(address: str, certificate_of_caller: str, key_of_caller: str) -> Client:
            security = Security(
                tls_ca_file=certificate,
                tls_client_cert=certificate_of_caller,
                tls_client_key=key_of_caller,
            )
            return Client(address, security=security, timeout=5)

        with caller(address, certificate, key) as client:
            assert client.scheduler_info()["address"] == address
        with pytest.raises(OSError), caller(address, *strangers):
            pass
        with pytest.raises(OSError), Client(address.replace("tls:", "tcp:"), timeout=5):
            pass
    finally:
        process.terminate()
        process.wait()


def pair_of_keys(folder: Path, name: str) -> tuple[str, str]:
    """Make a certificate that signs itself; return the paths of it and of its key."""
    certificate, key = str(folder / f"{name}.pem"), str(folder / f"{name}-key.pem")
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    make += ["-subj", "/CN=hall", "-keyout", key, "-out", certificate]
    subprocess.run(make, check=True, capture_output=True)
    return certificate, key
