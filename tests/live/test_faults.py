"""The short form of the fault run; the long one is ``python -m benchmarks.faults``."""

from pathlib import Path

import pytest

from benchmarks.fault_hosts import OneMachine
from benchmarks.faults import run


@pytest.mark.slow
def test_a_dozen_random_kills_lose_nothing(tmp_path: Path) -> None:
    installation = OneMachine(tmp_path)
    try:
        wrong = run(installation, kills=12, seed=7, n_jobs=10, pause=0.5)
    finally:
        if installation.product.process is not None:
            installation.product.process.kill()
    assert wrong == []
