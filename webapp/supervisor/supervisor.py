"""The supervisor: starts in order, watches, restarts what dies, stops in the reverse order."""

import contextlib
import fcntl
import ipaddress
import os
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from types import FrameType
from typing import IO

import structlog

from webapp.instance import BASE_DIR, instance_folder, is_set
from webapp.sizing import Sizes, sizes
from webapp.supervisor import broker, leftovers, roles
from webapp.supervisor.child import Child, rotate

log = structlog.get_logger(__name__)

LOOK_SECONDS = 0.5
START_SECONDS = 300.0  # a child that ends is found at once; a slow machine is no failure
STOP_SECONDS = 30.0
PORT_SECONDS = 5.0
STOPPING = "stopping"
# Addresses that mean "every one of this machine", and where we then reach ourselves.
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104
PLAIN_HTTP = (
    "Others can reach this address over plain http, where sessions can be read on the way. Put a "
    "proxy with TLS before it and set SECURE_COOKIES=1."
)


class Supervisor:
    """Broker, worker and web server as children of one process.

    With ``REDIS_URL`` set, that broker is used and none is started.
    """

    def __init__(self, *, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._instance = instance_folder()
        self._sizes: Sizes = sizes()
        self._stopping = False
        self._broker: broker.Broker | None = None
        self._lock: IO[str] | None = None
        self.children: list[Child] = []

    def run(self) -> int:
        """Serve until a signal asks to stop; return the exit code."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        if not self._take_lock():
            say("Another server runs on this instance folder.")
            return 1
        n_left = leftovers.end_leftovers(self._instance)
        if n_left:
            log.warning("ended what a killed server left behind", processes=n_left)
        if not self._wait_for_port():
            say(f"{self._host}:{self._port} is in use. Choose another port: PORT=8001 bin/start")
            return 1
        if not is_set("SECURE_COOKIES") and not is_loopback(self._host):
            say(PLAIN_HTTP)
        try:
            self._start()
            while not self._stopping:
                time.sleep(LOOK_SECONDS)
                for child in self.children:
                    child.restart_if_ended()
                for path in (self._instance / "log").glob("*.log"):
                    rotate(path)
            return 0
        except StartError as error:
            if not self._stopping:
                say(str(error))
            return 0 if self._stopping else 1
        finally:
            self._stop()

    def _start(self) -> None:
        environment = self._environment()
        (self._instance / "log").mkdir(mode=0o700, exist_ok=True)
        if not environment.get("REDIS_URL"):
            self._broker = broker.prepare_broker(self._instance)
            environment["REDIS_URL"] = self._broker.url
            self._add("broker", self._broker.command, environment)
            self._wait_for("broker", lambda: broker.answers(environment["REDIS_URL"]))
        self._write_state(environment)
        self._add("web", roles.web_command(self._bind(), self._sizes), environment)
        size = self._sizes
        for name, queue, processes in (
            ("worker", "short", size.job_workers),
            ("learner", "long", size.learn_workers),
        ):
            command = roles.worker_command(queue, processes)
            self._add(name, command, environment | roles.low_priority(name, size), stop_seconds=8.0)
        self._add("sweep", roles.sweep_command(), environment)
        self._wait_for("web", self._web_answers)
        log.info("serving", host=self._host, port=self._port)

    def _environment(self) -> dict[str, str]:
        """The children's environment: instance folder, hosts, threads."""
        environment = {
            **roles.own_environment(self._sizes),
            "SECURE_COOKIES": "0",  # plain http; behind TLS set it to 1
            **os.environ,
            "BETHE_HALL_INSTANCE": str(self._instance),
            leftovers.MARK: str(os.getpid()),
            "LINES_LOG": str(self._instance / "log" / "access.log"),
            "PROMETHEUS_MULTIPROC_DIR": str(roles.new_counts_folder()),
            "PYTHONPATH": os.pathsep.join(
                filter(None, [str(BASE_DIR), os.environ.get("PYTHONPATH")])
            ),
        }
        environment["ALLOWED_HOSTS"] = os.environ.get("ALLOWED_HOSTS") or ",".join(
            ["localhost", "127.0.0.1", "[::1]", *self._own_names()]
        )
        return environment

    def _own_names(self) -> list[str]:
        """The names under which this machine may be asked, when it listens beyond loopback."""
        if self._host not in EVERYWHERE:
            return [f"[{self._host}]" if ":" in self._host else self._host]
        name = socket.gethostname()
        names = {name, socket.getfqdn()}
        with contextlib.suppress(OSError):
            names.update(str(entry[4][0]) for entry in socket.getaddrinfo(name, None))
        return sorted(f"[{entry}]" if ":" in entry else entry for entry in names)

    def _wait_for_port(self) -> bool:
        """Give the children of a server that was killed a moment to end."""
        deadline = time.monotonic() + PORT_SECONDS
        while not self._port_is_free():
            if self._stopping or time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def _port_is_free(self) -> bool:
        """Whether nothing listens there yet: another server's answer must not pass for ours."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self._host, self._port))
            except OSError:
                return False
        return True

    def _bind(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self._port}"

    def _add(
        self,
        name: str,
        command: tuple[str, ...],
        environment: dict[str, str],
        stop_seconds: float = 10.0,
    ) -> None:
        child = Child(
            name,
            command,
            environment=environment,
            log_path=self._instance / "log" / f"{name}.log",
            stop_seconds=stop_seconds,
        )
        child.start()
        self.children.append(child)

    def _wait_for(self, name: str, is_ready: Callable[[], bool]) -> None:
        """Wait until a child answers; StartError, with the end of its log, when it does not."""
        deadline = time.monotonic() + START_SECONDS
        child = next(entry for entry in self.children if entry.name == name)
        while time.monotonic() < deadline and not self._stopping:
            if is_ready():
                return
            if not child.is_running:
                break
            time.sleep(0.05)
        raise StartError(f"The {name} did not start.\n{self._log_tail(name)}")

    def _web_answers(self) -> bool:
        host = EVERYWHERE.get(self._host, f"[{self._host}]" if ":" in self._host else self._host)
        try:
            with urllib.request.urlopen(f"http://{host}:{self._port}/healthz", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def _stop(self) -> None:
        """Stop web and worker together, then the broker that both talk to."""
        self._mark_lock(STOPPING)
        users = [child for child in self.children if child.name != "broker"]
        for group in (users, [child for child in self.children if child.name == "broker"]):
            for child in group:
                child.ask_to_stop()
            for child in group:
                child.stop()
        if self._broker is not None:
            broker.remove_run_folder(self._broker)
        self._forget_state()
        if self._lock is not None:
            self._lock.close()

    def _take_lock(self) -> bool:
        """One server an instance folder; the lock goes with the process.

        Waits for a server that is stopping, not for one that serves.
        """
        lock = (self._instance / "supervisor.lock").open("a+", encoding="ascii")
        deadline = time.monotonic() + STOP_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.seek(0)
                if lock.read() == STOPPING and time.monotonic() < deadline:
                    time.sleep(0.1)
                    continue
                lock.close()
                return False
            self._lock = lock
            # Before the lock names us: a server that was killed left the address of a dead broker.
            self._forget_state()
            self._mark_lock(str(os.getpid()))
            return True

    def _mark_lock(self, text: str) -> None:
        """Write into the lock file what the server does: its process id, or that it stops."""
        if self._lock is not None:
            self._lock.truncate(0)
            self._lock.write(text)
            self._lock.flush()

    def _write_state(self, environment: dict[str, str]) -> None:
        """Leave the broker's address where this user's own commands find it."""
        path = self._instance / "broker.url"
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(environment["REDIS_URL"])

    def _forget_state(self) -> None:
        (self._instance / "broker.url").unlink(missing_ok=True)

    def _log_tail(self, name: str) -> str:
        path = self._instance / "log" / f"{name}.log"
        if not path.exists():
            return ""
        return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True


class StartError(RuntimeError):
    """A child did not come up."""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address; a name counts only if it says so."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def say(sentence: str) -> None:
    """Tell the person who started the server."""
    print(sentence, file=sys.stderr)  # noqa: T201
