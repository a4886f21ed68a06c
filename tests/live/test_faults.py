"""The short form of the fault run; the long one is ``python -m benchmarks product faults``."""

from pathlib import Path

import pytest

from benchmarks.product.fault_hosts import OneMachine
from benchmarks.product.faults import run


@pytest.mark.slow
def test_a_dozen_random_faults_lose_nothing(tmp_path: Path) -> None:
    installation = OneMachine(tmp_path)
    try:
        wrong = run(installation, kills=12, seed=7, n_jobs=10, pace=0.5)
    finally:
        installation.remove()
    assert wrong == []
