"""Supervisor that starts programs in order, restarts dead ones, and stops in reverse order."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from types import FrameType
from typing import IO

import structlog
from django.core.exceptions import ImproperlyConfigured

from webapp.environment import flag, listed
from webapp.instance import BASE_DIR, instance_folder
from webapp.private_files import close_to_others
from webapp.sizing import Sizes, sizes
from webapp.supervisor import address, broker, forks, leftovers, roles
from webapp.supervisor.child import Child, rotate

log = structlog.get_logger(__name__)

LOOK_SECONDS = 0.5
START_SECONDS = 300.0  # an ended child is noticed at once; a slow machine is no failure
STOP_SECONDS = 30.0
PORT_SECONDS = 5.0
# All together take at most ten seconds, even on a busy machine; then they are killed.
USERS_STOP_SECONDS = 6.5
BROKER_STOP_SECONDS = 1.5
STOPPING = "stopping"
OTHER_SERVER = "Another server runs on this instance folder."
NOT_WRITABLE = (
    "{folder} cannot be written by this user. Choose a folder that can: "
    "BETHE_HALL_INSTANCE=/a/folder bin/start"
)
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
        self._access_log = self._instance / "log" / "access.log"
        self._sizes: Sizes = sizes()
        self._stopping = False
        self._is_cold = is_cold  # nothing is compiled yet
        self._warming: subprocess.Popen[bytes] | None = None
        self._broker: broker.Broker | None = None
        self._watch: broker.Watch | None = None
        self._lock: IO[str] | None = None
        self._listener = socket.socket()  # the web server's; closed once it stops
        self.children: list[Child] = []

    def show_in_environment(self) -> None:
        """Start this program again, with the variables by which its processes are found.

        Forked processes show the variables with which this process was started.
        """
        if os.environ.get(leftovers.MARK) != str(os.getpid()):
            shown = {"BETHE_HALL_INSTANCE": str(self._instance), leftovers.MARK: str(os.getpid())}
            os.execve(sys.executable, sys.orig_argv, {**os.environ, **shown})  # noqa: S606

    def problem(self) -> str:
        """Return in one sentence the reason why no server can start here; '' if it can."""
        try:
            address.listen(self._host, self._port).close()
        except address.AddressError as error:
            return str(error)
        except OSError:
            pass  # a killed server may still be ending: `run` waits for it
        return self._obstacle() or (OTHER_SERVER if self._is_served() else "")

    def _obstacle(self) -> str:
        """Return a problem of names or of the folder in one sentence; '' if there is none."""
        if self._host in address.EVERYWHERE and not listed("ALLOWED_HOSTS"):
            return NAMES_WANTED.format(host=self._host)
        if not os.access(self._instance, os.W_OK | os.X_OK):
            return NOT_WRITABLE.format(folder=self._instance)
        return ""

    def _is_served(self) -> bool:
        """Return True if another server runs on this folder and is not stopping."""
        try:
            with (self._instance / "supervisor.lock").open("r+", encoding="ascii") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            text = (self._instance / "supervisor.lock").read_text(encoding="ascii")
            return text != STOPPING
        return False

    def run(self) -> int:
        """Serve until a signal asks to stop; return the exit code."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        problem = close_to_others(self._instance, large=self._instance / "media")
        if problem:
            say(problem)
            return 1
        if (problem := self._obstacle()) or not self._take_lock():
            say(problem or OTHER_SERVER)
            return 1
        n_left = leftovers.end_leftovers(self._instance)
        if n_left:
            log.warning("ended what a killed server left behind", processes=n_left)
        try:
            self._listener = self._listen()
        except address.AddressError as error:
            say(str(error))
            return 1
        except OSError:
            say(f"{self._host}:{self._port} is in use. Choose another port: PORT=8001 bin/start")
            return 1
        if not flag("SECURE_COOKIES") and not address.is_loopback(self._host):
            say(PLAIN_HTTP)
        try:
            self._start()
            while not self._stopping:
                time.sleep(LOOK_SECONDS)
                self._look_after()
            return 0
        except StartError as error:
            if not self._stopping:
                say(str(error))
            return 0 if self._stopping else 1
        finally:
            self._stop()

    def _look_after(self) -> None:
        """Restart ended programs, keep the access log small; go on if one of these steps fails."""
        try:
            for child in self.children:
                self._end_if_stuck(child)
                child.restart_if_ended()
            if self._warming is not None:
                self._warming.poll()  # an ended child that is not polled stays as a zombie
            rotate(self._access_log)
        except OSError as error:  # for example no room for a process: it is tried again
            log.warning("the supervisor could not look after everything", error=str(error))

    def _end_if_stuck(self, child: Child) -> None:
        """End a broker that runs without answering: jobs would wait until a person notices."""
        if child.name != "broker" or self._watch is None or not self._watch.is_stuck():
            return
        log.error("the broker answers nobody, it is started again")
        child.end()
        self._watch.begin()

    def _start(self) -> None:
        environment = self._environment()
        (self._instance / "log").mkdir(mode=0o700, exist_ok=True)
        if not environment.get("REDIS_URL"):
            self._broker = broker.prepare_broker(self._instance)
            environment["REDIS_URL"] = self._broker.url
            self._add("broker", self._broker.command, environment)
            self._wait_for("broker", lambda: broker.answers(environment["REDIS_URL"]))
            self._watch = broker.Watch(self._broker.url)
        self._write_state(environment)
        self._load(environment)
        web = environment | {forks.LISTENER: str(self._listener.fileno())}
        self._add("web", roles.web_command("fd://3", self._sizes), web, is_forked=True)
        size = self._sizes
        for name, queue, processes in (
            ("worker", "short", size.job_workers),
            ("learner", "long", size.learn_workers),
        ):
            command = roles.worker_command(queue, processes)
            own = environment | roles.low_priority(name, size)
            self._add(name, command, own, is_forked=True)
        self._add("sweep", roles.sweep_command(), environment, is_forked=True)
        self._wait_for("web", self._web_answers)
        log.info("serving", host=self._host, port=self._port)
        self._greet()
        if self._is_cold:
            self._warm_up()

    def _load(self, environment: dict[str, str]) -> None:
        """Load the product here, once: its programs are forked and share its memory."""
        os.environ.update(environment)
        try:
            forks.preload_shared_modules()
        except ImproperlyConfigured as error:
            raise StartError(f"The settings cannot be used: {error}") from error
        except Exception as error:  # whatever the error, no program could start
            log.error("the product cannot be loaded", exc_info=error)
            raise StartError(f"The product cannot be loaded: {error}") from error
        if self._stopping:
            raise StartError("")

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

    def _warm_up(self) -> None:
        """Compile the code of the first computations in the background."""
        with (self._instance / "warm.log").open("ab") as output:
            self._warming = subprocess.Popen(
                ["nice", "-n", "10", sys.executable, "-m", "webapp.supervisor.warm"],  # noqa: S607
                cwd=BASE_DIR,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _environment(self) -> dict[str, str]:
        """Return the children's environment: instance folder, hosts, threads."""
        environment = {
            **roles.own_environment(self._sizes),
            "SECURE_COOKIES": "0",  # plain http; behind TLS set it to 1
            **os.environ,
            "BETHE_HALL_INSTANCE": str(self._instance),
            leftovers.MARK: str(os.getpid()),
            "LINES_LOG": str(self._access_log),
            "PYTHONPATH": os.pathsep.join(
                filter(None, [str(BASE_DIR), os.environ.get("PYTHONPATH")])
            ),
        }
        environment["ALLOWED_HOSTS"] = ",".join(self._allowed_hosts())
        return environment

    def _allowed_hosts(self) -> list[str]:
        """Return the names by which pages answer: those set, else the host and loopback."""
        own = {"localhost", "127.0.0.1", "[::1]", address.in_brackets(self._host)}
        return listed("ALLOWED_HOSTS") or sorted(own)

    def _listen(self) -> socket.socket:
        """Take the port; wait briefly for the children of a killed server to end."""
        deadline = time.monotonic() + PORT_SECONDS
        while True:
            try:
                return address.listen(self._host, self._port)
            except OSError:
                if self._stopping or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    def _add(
        self,
        name: str,
        command: tuple[str, ...],
        environment: dict[str, str],
        *,
        is_forked: bool = False,
    ) -> None:
        child = Child(
            name,
            command,
            environment=environment,
            log_path=self._instance / "log" / f"{name}.log",
            is_forked=is_forked,
        )
        child.start()
        self.children.append(child)

    def _wait_for(self, name: str, is_ready: Callable[[], bool]) -> None:
        """Wait until a child answers; raise StartError with the end of its log if it does not."""
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
        host = address.EVERYWHERE.get(self._host, address.in_brackets(self._host))
        try:
            with urllib.request.urlopen(f"http://{host}:{self._port}/healthz", timeout=2) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def _stop(self) -> None:
        """Stop web and worker together, then the broker that both use."""
        self._mark_lock(STOPPING)
        self._listener.close()
        self._end_warming()
        users = [child for child in self.children if child.name != "broker"]
        brokers = [child for child in self.children if child.name == "broker"]
        for group, seconds in ((users, USERS_STOP_SECONDS), (brokers, BROKER_STOP_SECONDS)):
            for child in group:
                child.ask_to_stop()
            deadline = time.monotonic() + seconds  # for all together
            for child in group:
                child.stop(deadline)
        if self._broker is not None:
            broker.remove_run_folder(self._broker)
        self._forget_state()
        if self._lock is not None:
            self._lock.close()

    def _end_warming(self) -> None:
        """End the warm-up and the processes that it started."""
        if self._warming is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._warming.pid, signal.SIGKILL)
            self._warming.wait()

    def _take_lock(self) -> bool:
        """Lock the instance folder for this server; the lock goes with the process.

        Waits for a stopping server, not for a running one.
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
            # Before the lock names us: a killed server left the address of a dead broker.
            self._forget_state()
            self._mark_lock(str(os.getpid()))
            return True

    def _mark_lock(self, text: str) -> None:
        """Write the server's state into the lock file: its process id, or that it stops."""
        if self._lock is not None:
            self._lock.truncate(0)
            self._lock.write(text)
            self._lock.flush()

    def _write_state(self, environment: dict[str, str]) -> None:
        """Write the broker's address to the place where this user's own commands find it."""
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
    """Error for a child that did not start."""


def say(sentence: str) -> None:
    """Print a sentence for the person who started the server."""
    print(sentence, file=sys.stderr)  # noqa: T201
