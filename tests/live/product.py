"""The real product for tests: supervisor, broker, worker and web server on a free port."""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.live.commands import ROOT, run_command
from tests.made_once import being_made
from tests.patience import PATIENCE_SECONDS

_OF_THE_INSTALLATION = {"REDIS_URL", "SECRET_KEY", "DEBUG", "DATABASE_URL", "ALLOWED_HOSTS"}
PASSWORD = "quiet-lamp-orbit-42"

_PREPARE = f"""
from django.core.management import call_command
from webapp.accounts.models import Organisation, User
call_command("migrate", verbosity=0)
call_command("collectstatic", interactive=False, verbosity=0)
make = Organisation.objects.get_or_create
north, _ = make(name="Northfield University", department="Residential Life")
south, _ = make(name="Southgate College", department="Housing")
people = [("alice", north, "viewer"), ("erin", north, "viewer"), ("bob", north, "staff"),
          ("carol", north, "administrator"), ("mallory", south, "staff")]
for name, organisation, role in people:
    if not User.objects.filter(username=name).exists():
        User.objects.create_user(
            username=name, password="{PASSWORD}", organisation=organisation, role=role
        )
User.objects.filter(username="carol").update(is_operator=True)
"""


@dataclass
class Product:
    """A running installation of its own: address, instance folder, hands on its processes.

    ``launcher`` is what the supervisor is started by, such as ``unshare``; it must become the
    supervisor. ``seen_as`` returns where the test finds the instance folder of a process that sees
    other file systems.
    """

    instance: Path
    port: int
    environment: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    launcher: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # further ones of the supervisor
    seen_as: Callable[[int], Path] | None = None

    @property
    def url(self) -> str:
        """Address of the web server, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the supervisor and wait for the first answer."""
        log = (self.instance / "supervisor.log").open("ab")
        self.process = subprocess.Popen(
            [
                *self.launcher,
                sys.executable,
                "-m",
                "webapp.supervisor",
                "--port",
                str(self.port),
                *self.options,
            ],
            cwd=ROOT,
            env=self.environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        if self.seen_as is not None:
            self.instance = self.seen_as(self.process.pid)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            if not self._has_lock() or not (self.instance / "broker.url").exists():
                time.sleep(0.05)  # till then, a server that was killed may still answer
                continue
            try:
                with urllib.request.urlopen(f"{self.url}/healthz", timeout=30) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise AssertionError(f"the product did not start:\n{self.logs()}")

    def _has_lock(self) -> bool:
        """Whether this server, not one before it, owns the instance folder."""
        lock = self.instance / "supervisor.lock"
        assert self.process is not None
        return lock.exists() and lock.read_text(encoding="ascii") == str(self.process.pid)

    def stop(self) -> int:
        """Stop the supervisor as a service manager would; return its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENCE_SECONDS)

    def run(self, code: str, *, timeout: float = 120, new_python: bool = False) -> str:
        """Run Python inside the product's Django; return what it printed.

        With ``new_python`` it starts Python; otherwise it copies a process that loaded the code.
        """
        arguments = ["shell", "--no-imports", "-c", code]
        done = run_command(arguments, self.environment, timeout=timeout, new_python=new_python)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def prepare(self) -> None:
        """Make the database, the static files and the people of two organisations."""
        self.run(_PREPARE, timeout=600)

    def manage(self, *arguments: str) -> str:
        """Run a management command of the product; return what it printed."""
        done = run_command(arguments, self.environment, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def pid_of(self, name: str) -> int:
        """The process id of a child of the supervisor: broker, worker, learner, sweep or web."""
        assert self.process is not None
        for pid in children_of(self.process.pid):
            if name_of(pid) == name:
                return pid
        raise AssertionError(f"no {name} among the children of the supervisor")

    def rows(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """Read the database directly: quick, and independent of the code under test."""
        connection = sqlite3.connect(self.instance / "bethe_hall.sqlite3", timeout=10)
        connection.row_factory = sqlite3.Row
        try:
            return connection.execute(query, values).fetchall()
        finally:
            connection.close()

    def logs(self) -> str:
        """The ends of all logs, for messages."""
        files = [self.instance / "supervisor.log", *sorted((self.instance / "log").glob("*.log"))]
        return "\n".join(
            f"--- {file.name}\n" + "\n".join(file.read_text(errors="replace").splitlines()[-25:])
            for file in files
            if file.exists()
        )


@cache
def _prepared() -> Path:
    """A folder with database, static files and people, made once in a run: the rest are copies."""
    with being_made("instance") as instance:
        if not instance.exists():
            unfinished = Path(tempfile.mkdtemp(dir=instance.parent))
            Product(unfinished, port=0, environment=environment_of(unfinished)).prepare()
            unfinished.rename(instance)
    return instance


def children_of(pid: int) -> list[int]:
    """Direct children of a process, by /proc."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue
            fields = stat.rpartition(")")[2].split()
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(folder.name))
    return sorted(found)


def seconds_of(pid: int) -> float:
    """Processor seconds of a process and all that it started, those that ended included."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0.0
    ticks = sum(int(field) for field in stat.rpartition(")")[2].split()[11:15])
    own: float = ticks / os.sysconf("SC_CLK_TCK")
    return own + sum(map(seconds_of, children_of(pid)))


def is_running(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def name_of(pid: int) -> str:
    """Name of a program of the product, by what lists of processes show; '' when it is gone."""
    try:
        shown = Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip()
    except OSError:
        return ""
    return "broker" if shown == "valkey-server" else shown.removeprefix("bethe-")


def memory_of(pids: Iterable[int]) -> int:
    """Bytes that processes take together, with what they share counted once.

    Pages of files count whole, also where processes of others have the same files open: a machine
    that runs nothing else has to hold them.
    """
    total, of_files = 0, dict[str, int]()
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps").read_text(errors="replace").splitlines()
            shared = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
        except OSError:
            continue  # it ended
        total += sum(int(line.split()[1]) for line in shared if line.startswith("Pss_Anon:"))
        mapping, size = "", 0
        for line in lines:
            name, _, rest = line.partition(" ")
            if not name.endswith(":"):
                fields = line.split(None, 5)
                mapping = f"{fields[5]} {fields[2]}" if len(fields) > 5 else ""
            elif name == "Rss:":
                size = int(rest.split()[0])
            elif name == "Anonymous:" and mapping.startswith("/"):
                size -= int(rest.split()[0])
                of_files[mapping] = max(of_files.get(mapping, 0), size)
    return (total + sum(of_files.values())) << 10


def environment_of(instance: Path) -> dict[str, str]:
    """The variables of an installation in a folder, with nothing of another one's."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_THE_INSTALLATION}
    return kept | {
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "BETHE_HALL_INSTANCE": str(instance),
        "SECURE_COOKIES": "0",
    }


def free_ports(count: int) -> list[int]:
    """Return ports of this machine on which nothing listens."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def new_product(instance: Path, **environment: str) -> Product:
    """Prepare an installation in a folder: database, static files, people of two organisations."""
    (port,) = free_ports(1)
    product = Product(instance, port, environment_of(instance) | environment)
    if "DATABASE_URL" in environment:
        product.prepare()
    elif not (instance / "bethe_hall.sqlite3").exists():  # one that was kept stays as it is
        shutil.copytree(
            _prepared(),
            instance,
            ignore=shutil.ignore_patterns("secret_key"),  # each installation makes its own
            dirs_exist_ok=True,
        )
    return product
