"""Supervisor that starts programs in order, restarts dead ones, and stops in reverse order."""

import fcntl
import http.client
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import IO

import structlog
from django.core.exceptions import ImproperlyConfigured

from webapp.environment import flag, listed
from webapp.instance import BASE_DIR, instance_folder
from webapp.private_files import close_to_others
from webapp.sizing import sizes
from webapp.supervisor import StartError, address, broker, roles
from webapp.supervisor.child import Child, load_product

log = structlog.get_logger(__name__)

LOOK_SECONDS = 0.5
START_SECONDS = 300.0  # an ended child is noticed at once; a slow machine is no failure
PING_SECONDS = 5.0
SILENT_SECONDS = 60.0  # a busy machine answers late, but not as late as this
# All together take at most ten seconds, even on a busy machine; then they are killed.
USERS_STOP_SECONDS = 6.5
BROKER_STOP_SECONDS = 1.5
OTHER_STOP_SECONDS = 30.0  # of another server on this folder
OTHER_SERVER = "Another server runs on this instance folder."
# Nobody knows from within a machine what others call it: behind a proxy, in several networks.
NAMES_WANTED = (
    "ALLOWED_HOSTS: other machines can reach {host}, so set the names by which they call this "
    "server, separated by commas: ALLOWED_HOSTS=hall.example,10.1.2.3 bin/start"
)
PLAIN_HTTP = (
    "Others can reach this address over plain http, where sessions can be read on the way. Put a "
    "proxy with TLS before it and set SECURE_COOKIES=1."
)


class Supervisor:
    """Broker, worker and web server as children of one process.

    With ``REDIS_URL`` set, that broker is used and none is started.
    """

    def __init__(self, *, host: str, port: int, is_cold: bool = False) -> None:
        self._host = host
        self._port = port
        self._instance = instance_folder()
        self._sizes = sizes()
        self._stopping = False
        self._is_cold = is_cold  # nothing is compiled yet
        self._broker: broker.Broker | None = None
        self._broker_answered = 0.0
        self._lock: IO[str] | None = None
        self._listener = socket.socket()  # the web server's; closed once it stops
        self.children: list[Child] = []

    def run(self) -> None:
        """Serve until a signal asks to stop; raise StartError if the server cannot start."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        self.claim()
        if not flag("SECURE_COOKIES") and not address.is_loopback(self._host):
            say(PLAIN_HTTP)
        try:
            self._start()
            while not self._stopping:
                time.sleep(LOOK_SECONDS)
                self._look_after()
        except StartError:
            if not self._stopping:
                raise
        finally:
            self._stop()

    def claim(self) -> None:
        """Take the instance folder and the port; raise StartError if that is impossible."""
        if self._host in address.EVERYWHERE and not listed("ALLOWED_HOSTS"):
            raise StartError(NAMES_WANTED.format(host=self._host))
        if problem := close_to_others(self._instance, large=self._instance / "media"):
            raise StartError(problem)
        self._take_lock()
        self._listener = address.listen(self._host, self._port)

    def _take_lock(self) -> None:
        """Lock the instance folder; wait for a server that is stopping, but for no other.

        The file names the process that serves. It is empty while a server stops. The lock ends with
        its process.
        """
        lock = (self._instance / "supervisor.lock").open("a+", encoding="ascii")
        deadline = time.monotonic() + OTHER_STOP_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                lock.seek(0)
                if lock.read() or self._stopping or time.monotonic() > deadline:
                    raise StartError(OTHER_SERVER) from error
            time.sleep(0.1)
        # Before the lock names us: a killed server left the address of a dead broker.
        (self._instance / "broker.url").unlink(missing_ok=True)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def _start(self) -> None:
        environment = self._environment()
        (self._instance / "log").mkdir(exist_ok=True)
        if not environment.get("REDIS_URL"):
            self._broker = broker.prepare_broker(self._instance)
            url = environment["REDIS_URL"] = self._broker.url
            self._add("broker", self._broker.command, environment)
            self._wait_for("broker", lambda: broker.answers(url))
            self._broker_answered = time.monotonic()
        # This user's own commands find the broker there.
        (self._instance / "broker.url").write_text(environment["REDIS_URL"], encoding="ascii")
        self._load(environment)
        size = self._sizes
        web = roles.web_command("fd://3", size)
        self._add("web", web, environment, listener=self._listener)
        for name, queue, processes in (
            ("worker", "short", size.job_workers),
            ("learner", "long", size.learn_workers),
        ):
            command = roles.worker_command(queue, processes)
            self._add(name, command, environment | roles.low_priority(name, size))
        self._add("sweep", roles.sweep_command(), environment)
        self._wait_for("web", self._web_answers)
        self._greet()
        if self._is_cold:
            warm = (sys.executable, "-m", "webapp.supervisor.warm")
            self._add("warm", warm, environment, is_kept=False)

    def _environment(self) -> dict[str, str]:
        """Return the children's environment: instance folder, hosts, threads."""
        path = [str(BASE_DIR), os.environ.get("PYTHONPATH")]
        return {
            **roles.own_environment(self._sizes),
            "SECURE_COOKIES": "0",  # plain http; behind TLS set it to 1
            "LINES_LOG_MEGABYTES": "10",
            **os.environ,
            "BETHE_HALL_INSTANCE": str(self._instance),
            "LINES_LOG": str(self._instance / "log" / "access.log"),
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            "ALLOWED_HOSTS": ",".join(self._allowed_hosts()),
        }

    def _allowed_hosts(self) -> list[str]:
        """Return the names by which pages answer: those set, else the host and loopback."""
        own = {"localhost", "127.0.0.1", "[::1]", address.in_brackets(self._host)}
        return listed("ALLOWED_HOSTS") or sorted(own)

    def _add(
        self,
        name: str,
        command: tuple[str, ...],
        environment: dict[str, str],
        *,
        listener: socket.socket | None = None,
        is_kept: bool = True,
    ) -> None:
        self.children.append(
            Child(
                name,
                command,
                environment=environment,
                log_path=self._log_path(name),
                listener=listener,
                is_kept=is_kept,
            )
        )

    def _wait_for(self, name: str, is_ready: Callable[[], bool]) -> None:
        """Wait until a child answers; raise StartError with the end of its log if it does not."""
        deadline = time.monotonic() + START_SECONDS
        child = self._child(name)
        while child.is_running and time.monotonic() < deadline and not self._stopping:
            if is_ready():
                return
            time.sleep(0.05)
        path = self._log_path(name)
        lines = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        raise StartError("\n".join([f"The {name} did not start.", *lines.splitlines()[-20:]]))

    def _load(self, environment: dict[str, str]) -> None:
        """Load the product here, once: its programs are forked and share its memory."""
        os.environ.update(environment)
        try:
            load_product()
        except ImproperlyConfigured as error:
            raise StartError(f"The settings cannot be used: {error}") from error
        except Exception as error:  # whatever the error, no program could start
            log.error("the product cannot be loaded", exc_info=error)
            raise StartError(f"The product cannot be loaded: {error}") from error

    def _web_answers(self) -> bool:
        host = address.EVERYWHERE.get(self._host, self._host)
        connection = http.client.HTTPConnection(host, self._port, timeout=2)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _greet(self) -> None:
        """Print the addresses of the pages, now that they are served."""
        for url in address.urls(self._host, self._port, self._allowed_hosts()):
            say(f"Bethe Hall is at {url}")
        password = self._instance / "demonstration_password"
        if password.exists():
            say(
                "Sign in as demo-staff (or demo-viewer, or demo-admin, who is administrator and "
                "operator) with the password " + password.read_text(encoding="utf-8").strip()
            )
        say("Ctrl+C stops it.")

    def _look_after(self) -> None:
        """Restart ended programs; go on if one of them cannot be started now."""
        try:
            for child in self.children:
                child.restart_if_ended()
            self._end_silent_broker()
        except OSError as error:  # for example no room for a process: it is tried again
            log.warning("the supervisor could not look after everything", error=str(error))

    def _end_silent_broker(self) -> None:
        """End a broker that runs without answering: jobs would wait until a person notices."""
        silent_seconds = time.monotonic() - self._broker_answered
        if self._broker is None or silent_seconds < PING_SECONDS:
            return
        if broker.answers(self._broker.url):
            self._broker_answered = time.monotonic()
        elif silent_seconds >= SILENT_SECONDS:
            log.error("the broker answers nobody, it is started again")
            self._child("broker").end()
            self._broker_answered = time.monotonic()

    def _stop(self) -> None:
        """Stop web and worker together, then the broker that both use."""
        if self._lock is not None:
            self._lock.truncate(0)
        self._listener.close()
        users = [child for child in self.children if child.name != "broker"]
        brokers = [child for child in self.children if child.name == "broker"]
        for group, seconds in ((users, USERS_STOP_SECONDS), (brokers, BROKER_STOP_SECONDS)):
            for child in group:
                child.ask_to_stop()
            deadline = time.monotonic() + seconds  # for all together
            while any(child.is_running for child in group) and time.monotonic() < deadline:
                time.sleep(0.02)
            for child in group:
                child.end()
        if self._broker is not None:
            shutil.rmtree(self._broker.run_folder, ignore_errors=True)
        (self._instance / "broker.url").unlink(missing_ok=True)
        if self._lock is not None:
            self._lock.close()

    def _child(self, name: str) -> Child:
        return next(child for child in self.children if child.name == name)

    def _log_path(self, name: str) -> Path:
        return self._instance / "log" / f"{name}.log"

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True


def say(sentence: str) -> None:
    """Print a sentence for the person who started the server."""
    print(sentence, file=sys.stderr)  # noqa: T201
