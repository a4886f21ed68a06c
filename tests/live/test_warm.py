"""What `bin/start` compiles beside the server: every first computation, once and small."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.live.product import children_of
from webapp.instance import BASE_DIR
from webapp.supervisor.warm import warm


def test_both_halves_are_computed_from_learning_to_the_result(tmp_path: Path) -> None:
    warm(tmp_path)
    for name in ("new.csv", "evaluation/roc.csv", "masks/0.mask.png", "masks/1.marginals.npy"):
        assert (tmp_path / name).stat().st_size > 0, name


def _wait_for(is_so: Callable[[], object]) -> bool:
    end = time.monotonic() + 60
    while not (found := is_so()) and time.monotonic() < end:
        time.sleep(0.05)
    return bool(found)


def test_a_verb_ends_when_the_warm_up_is_killed() -> None:
    compiling = subprocess.Popen([sys.executable, "-m", "webapp.supervisor.warm"], cwd=BASE_DIR)
    try:
        assert _wait_for(lambda: children_of(compiling.pid))
        (verb, *_) = children_of(compiling.pid)
    finally:
        compiling.kill()
        compiling.wait()
    assert _wait_for(lambda: not os.path.exists(f"/proc/{verb}/exe"))
