"""`bin/start` in a home with nothing in it, as a user who is not root: root becomes nobody.

The first start also prepares the results of the demonstration, while its processes are killed.
"""

import os
import pwd
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from tests.live.product import ROOT, children_of, free_ports, name_of
from tests.live.visitor import PAGES
from tests.packaging.test_start_problems import make_environment
from tests.patience import PATIENCE_SECONDS, wait_for

USER = "nobody"
STARTED = re.compile(r"Bethe Hall is at (\S+)/")
SIGN_IN = re.compile(r"Sign in as (\S+) .*password (\S+)")
START_SECONDS = 4 * PATIENCE_SECONDS  # it makes the demonstration and compiles, for the first time
# What the demonstration's results are, each once.
MADE = {
    "surveys_questionnaire": 1,
    "matching_learnedmodel": 2,  # one learned, one with weights set by hand
    "housing_placement": 3,  # two in rooms, one in pairs
    "letters_lettertemplate": 1,
    "segmentation_segmenter": 1,
    "segmentation_predictionbatch": 1,
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs Linux"),
]


def as_user(user: str, *command: str) -> list[str]:
    """The command line that runs a command as another user, or as this one for ''."""
    if not user:
        return list(command)
    who = pwd.getpwnam(user)
    groups = ["--regid", str(who.pw_gid), "--clear-groups"]
    return ["setpriv", "--reuid", str(who.pw_uid), *groups, *command]


def python_of(user: str) -> str:
    """A Python of this version that the user may run, with the packages of this one."""
    if user and shutil.which("setpriv") is None:
        pytest.skip("needs setpriv, to become another user")
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = f"PYTHONPATH={sysconfig.get_path('purelib')}"
    for found in (sys.executable, shutil.which(name, path="/usr/bin:/usr/local/bin")):
        program = as_user(user, "env", "-i", packages, found or "", "-c", "import django")
        done = subprocess.run(program, cwd="/", check=False, capture_output=True)
        if found and done.returncode == 0:
            return found
    pytest.skip(f"no {name} that {user} may run: this one is below a closed folder")


def copy_of_product(folder: Path) -> Path:
    """Copy the product: among its sources lies what others may not read, left by those who test."""
    hidden = shutil.ignore_patterns("__pycache__")
    for name in ("bin", "engine", "static", "tasks", "templates", "webapp"):
        shutil.copytree(ROOT / name, folder / name, ignore=hidden)
    for path in (ROOT / "manage.py", *ROOT.glob("requirements*.txt")):
        shutil.copy(path, folder)
    return folder


@dataclass
class Started:
    """Output of `bin/start` of the other user, and its folders."""

    user: str
    home: Path
    said: Path
    process: subprocess.Popen[bytes]

    def text(self) -> str:
        """All that it said so far."""
        return self.said.read_text(errors="replace")


@pytest.fixture
def started() -> Iterator[Started]:
    """The product of a user with a new home, ended afterwards."""
    user = USER if os.geteuid() == 0 else ""
    python = python_of(user)
    folder = Path(tempfile.mkdtemp())  # those of pytest are closed to others
    try:
        folder.chmod(0o755)
        packages = sysconfig.get_path("purelib")
        venv = make_environment(
            folder / "venv", line=f"export PYTHONPATH={packages}", python=python
        )
        checkout = copy_of_product(folder / "checkout")
        subprocess.run(["chmod", "-R", "go=u-w", str(venv), str(checkout)], check=True)
        home = folder / "home"
        home.mkdir()
        if user:
            shutil.chown(home, user)
        port = str(free_ports(1)[0])
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "PORT": port,
            "VENV": str(venv),
            "BETHE_HALL_INSTANCE": str(home / "instance"),
            "LEARN_NICE": "0",  # other tests run meanwhile, and it is waited for
        }
        said = folder / "said.log"
        with said.open("wb") as output:
            process = subprocess.Popen(
                as_user(user, "bin/start"),
                cwd=checkout,
                env=environment,
                stdout=output,
                stderr=output,
            )
        yield Started(user, home, said, process)
        if process.poll() is None:
            process.kill()
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wait_for_text(started: Started, pattern: re.Pattern[str]) -> re.Match[str]:
    """Wait until it says something; fail with all that it said."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if found := pattern.search(started.text()):
            return found
        assert started.process.poll() is None, started.text()
        time.sleep(0.2)
    raise AssertionError(started.text())


def the_demonstration_gets_ready(started: Started, session: requests.Session, url: str) -> None:
    """Wait until Home says that all is ready; kill sweep and workers once on the way."""
    for name in ("sweep", "worker", "learner"):
        pids = [pid for pid in children_of(started.process.pid) if name_of(pid) == name]
        os.kill(wait_for(lambda pids=pids: pids[0]), signal.SIGKILL)

    def is_ready() -> bool:
        panel = session.get(f"{url}/demonstration/state/", timeout=60).text
        assert "Prepare again" not in panel, panel
        return "The demonstration is ready" in panel

    wait_for(is_ready, seconds=START_SECONDS, logs=started.text)
    stored = started.home / "instance" / "bethe_hall.sqlite3"
    with sqlite3.connect(f"file:{stored}?mode=ro", uri=True) as database:
        made = {
            table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in MADE
        }
        finished = database.execute(
            "SELECT count(*) FROM surveys_participant WHERE finished_at IS NOT NULL"
        ).fetchone()[0]
    assert made == MADE
    assert finished == 34
    for number in range(1, 6):
        step = session.get(f"{url}/tour/{number}/", timeout=60)
        assert f"Tour, step {number} of 5" in step.text
        assert "Not ready yet" not in step.text


def test_a_user_with_an_empty_home_starts_it_and_sees_every_page(started: Started) -> None:
    url = wait_for_text(started, STARTED)[1]
    name, password = wait_for_text(started, SIGN_IN).groups()
    session = requests.Session()
    page = session.get(f"{url}/accounts/sign-in/", timeout=60)
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    assert token is not None
    form = {"username": name, "password": password, "csrfmiddlewaretoken": token[1]}
    home = session.post(f"{url}/accounts/sign-in/", form, timeout=60)
    assert home.status_code == 200
    assert "sign-in" not in home.url
    ahead, answers = ["/"], {}
    while ahead and len(answers) < PAGES:
        path = ahead.pop(0)
        answer = session.get(url + path, timeout=60)
        answers[path] = answer.status_code
        if answer.headers.get("Content-Type", "").startswith("text/html"):
            links = re.findall(r'href="(/[^"#]*)"', answer.text)
            ahead += {link for link in links if link not in answers} - set(ahead)
    assert len(answers) > 20
    assert {path: status for path, status in answers.items() if status != 200} == {}
    # Pages are served before the worker has started.
    wait_for(
        lambda: session.get(f"{url}/readyz", timeout=60).status_code == 200,
        seconds=START_SECONDS,
        logs=lambda: session.get(f"{url}/readyz", timeout=60).text,
    )
    the_demonstration_gets_ready(started, session, url)
    owner = (started.home / "instance" / "bethe_hall.sqlite3").stat().st_uid
    assert owner == (pwd.getpwnam(started.user).pw_uid if started.user else os.geteuid())

    started.process.send_signal(signal.SIGTERM)
    assert started.process.wait(60) == 0
    assert "Traceback" not in started.text()
