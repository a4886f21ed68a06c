"""`bin/start` says in one sentence why it cannot start, before it prepares anything."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
Start = Callable[..., subprocess.CompletedProcess[str]]


def make_environment(folder: Path, *, line: str = "", python: str = sys.executable) -> Path:
    """Make a virtual environment that has everything; ``line`` goes before its Python."""
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "python"
    program.write_text(f'#!/bin/sh\n{line}\nexec {python} "$@"\n')
    program.chmod(0o755)
    stamp = subprocess.run(
        ["sh", "-c", "cat requirements*.txt | cksum"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    (folder / "installed-requirements.txt").write_text(stamp)
    return folder


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """A function that runs `bin/start` with some variables until it ends."""
    prepared = make_environment(tmp_path / "venv")

    def run(**variables: str) -> subprocess.CompletedProcess[str]:
        own_choices = ("HOST", "PORT", "ALLOWED_HOSTS")
        own = {"VENV": str(prepared), "BETHE_HALL_INSTANCE": str(tmp_path / "instance")}
        kept = {name: text for name, text in os.environ.items() if name not in own_choices}
        return subprocess.run(
            ["bin/start"], cwd=ROOT, env={**kept, **own, **variables},
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    return run


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line that was said; fail where more was, or where pages were promised."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Bethe Hall is at" not in done.stdout + done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line]
    assert "Traceback" not in line
    return line


@pytest.mark.parametrize("port", ["abc", "99999", "0", "-1", "8000x", "²"])
def test_a_port_that_is_none(start: Start, port: str) -> None:
    said = sentence(start(PORT=port))
    assert said == f"PORT: expected a whole number from 1 to 65535, received {port!r}."


def test_a_host_that_nobody_knows(start: Start) -> None:
    assert "HOST: 'no-such-host.invalid' is not known here." in sentence(
        start(HOST="no-such-host.invalid")
    )


def test_an_address_of_another_machine(start: Start) -> None:
    said = sentence(start(HOST="192.0.2.7"))
    assert said.startswith("HOST: 192.0.2.7 is no address of this machine. Use 0.0.0.0 for all")


def test_an_address_for_others_without_names(start: Start) -> None:
    said = sentence(start(HOST="0.0.0.0"))
    assert said.startswith("ALLOWED_HOSTS: other machines can reach 0.0.0.0, so set the names")


def test_a_folder_that_cannot_be_written(start: Start) -> None:
    said = sentence(start(BETHE_HALL_INSTANCE="/proc/nothing"))
    assert said.startswith("/proc/nothing cannot be written by this user.")


def test_an_environment_that_cannot_be_made(start: Start) -> None:
    done = start(VENV="/proc/nothing")
    assert "The virtual environment /proc/nothing cannot be made." in sentence(done)


def test_packages_that_cannot_be_fetched(start: Start, tmp_path: Path) -> None:
    offline = 'if [ "$2" = pip ]; then echo "no route to host" >&2; exit 1; fi'
    venv = make_environment(tmp_path / "offline", line=offline)
    (venv / "installed-requirements.txt").write_text("of an earlier version")
    said = sentence(start(VENV=str(venv)))
    assert said.startswith("The packages of requirements.txt could not be installed:")
    assert "no route to host" in (venv / "install.log").read_text()


def test_a_second_start_on_one_folder(start: Start, tmp_path: Path) -> None:
    instance = tmp_path / "instance"
    instance.mkdir()
    with (instance / "supervisor.lock").open("w") as lock:
        lock.write("12345")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert sentence(start()) == "Another server runs on this instance folder."
    assert not (instance / "prepared").exists()
