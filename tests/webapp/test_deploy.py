"""The files of deploy/ are understood by the tool that reads them, and start what they name."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from webapp.instance import BASE_DIR
from webapp.sizing import Sizes
from webapp.supervisor import roles

UNITS = sorted((BASE_DIR / "deploy" / "systemd").glob("*.service"))
SIZE = Sizes(web_workers=3, web_threads=5, job_workers=4, job_threads=6)


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_systemd_understands_a_unit(unit: Path, tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("needs systemd-analyze, which is absent")
    # The program must exist where a unit names it: here it is this one.
    text = unit.read_text(encoding="utf-8")
    text = text.replace("/opt/bethe-hall/.venv/bin/python", sys.executable)
    text = re.sub(r"^(User|Group)=.*$", r"\1=root", text, flags=re.MULTILINE)
    copy = tmp_path / unit.name
    copy.write_text(text.replace("file:///opt/bethe-hall", f"file://{BASE_DIR}"), encoding="utf-8")
    done = subprocess.run(
        [program, "verify", "--man=no", "--recursive-errors=no", str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert unit.name not in done.stderr, done.stderr


def test_each_unit_starts_its_role() -> None:
    named = {
        re.search(r"webapp\.supervisor\.roles (\w+)", path.read_text(encoding="utf-8"))[1]
        for path in UNITS
    }
    assert named == {"web", "worker", "sweep"}


def test_sizes_reach_the_programs() -> None:
    web = " ".join(roles.web_command("127.0.0.1:8000", SIZE))
    assert "--workers 3 --threads 5" in web
    assert "--concurrency 4" in " ".join(roles.worker_command(SIZE))
    assert roles.own_environment(SIZE)["NUMBA_NUM_THREADS"] == "6"


def test_the_sweep_runs_alone_and_stops_when_asked(tmp_path: Path) -> None:
    environment = {
        **{k: v for k, v in os.environ.items() if k not in {"DATABASE_URL", "REDIS_URL"}},
        "BETHE_HALL_INSTANCE": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
    }
    log = tmp_path / "sweep.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "webapp.supervisor.roles", "sweep"],
            cwd=BASE_DIR,
            env=environment,
            stderr=output,
        )
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and b"sweep failed" not in log.read_bytes():
            time.sleep(0.1)
        # There are no tables yet: it says so and goes on.
        assert b"sweep failed, it will be tried again" in log.read_bytes()
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
