"""Compile what the first computations need: ``python -m webapp.supervisor.warm``.

Runs the verbs once on tiny input, so that the compile cache is filled before a user waits for it.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from webapp.instance import BASE_DIR


def warm(folder: Path) -> None:
    """Simulate three small cohorts, train on two, assign and evaluate the third."""
    out = str(folder)
    survey, pairs, model = f"{out}/survey_3.csv", f"{out}/pairs_3.csv", f"{out}/model.npz"
    cohorts = [f"{out}/survey_{k}.csv:{out}/pairs_{k}.csv" for k in (1, 2)]
    for arguments in (
        ["roommates", "simulate", "--students", "40", "--cohorts", "3", "--out", out],
        ["roommates", "train", "--cohort", cohorts[0], "--cohort", cohorts[1], "--out", model],
        ["roommates", "assign", "--survey", survey, "--model", model, "--out", f"{out}/new.csv"],
        ["roommates", "evaluate", "--survey", survey, "--pairs", pairs, "--model", model,
         "--out", f"{out}/evaluation"],
    ):  # fmt: skip
        command = [sys.executable, "-m", "engine", *arguments]
        subprocess.run(command, cwd=BASE_DIR, check=True, timeout=600)  # noqa: S603


if __name__ == "__main__":
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        warm(Path(name))
    print(f"compiled in {time.monotonic() - started:.1f} s", file=sys.stderr)  # noqa: T201
