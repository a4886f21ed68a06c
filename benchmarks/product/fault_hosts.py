"""Installations to break: one machine under its supervisor, or three hosts in namespaces."""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.live.product import ROOT, Product, children_of, new_product

SETTINGS = "benchmarks.product.fault_settings"
NETWORK = "10.77.0"
SERVICES = "services"
DISK_MEGABYTES = 300


def descendants(pid: int) -> list[int]:
    """A process and all below it, by one look at /proc."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):  # it ended meanwhile
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(folder.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def kill(pid: int) -> bool:
    """SIGKILL; False when it was gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def pause(pid: int, seconds: float) -> bool:
    """Stop a process for some seconds, as one on an overloaded machine is; False when it is gone.

    It is not waited for: other faults happen meanwhile.
    """
    try:
        os.kill(pid, signal.SIGSTOP)
    except ProcessLookupError:
        return False

    def go_on() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    timer = threading.Timer(seconds, go_on)
    timer.daemon = True
    timer.start()
    return True


def fill_disk(folder: Path, seconds: float) -> None:
    """Take all room of a file system for some seconds; it must be one of its own."""
    if not folder.is_mount():
        raise RuntimeError(f"{folder} is no file system of its own.")
    filler = folder / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))
        time.sleep(seconds)
    finally:
        filler.unlink(missing_ok=True)


class OneMachine:
    """Supervisor, embedded broker and SQLite.

    As root, the folders of the instance and of its files are file systems of their own, in memory:
    the first fills up and the second becomes read-only now and then.
    """

    faults: tuple[str, ...] = ("kill", "kill", "kill", "pause")

    def __init__(self, folder: Path) -> None:
        self._mounts: list[Path] = []
        instance, media = folder / "instance", folder / "media"
        if os.geteuid() == 0:
            for place in (instance, media):
                place.mkdir(parents=True)
                _mount("-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m", "none", str(place))
                self._mounts.append(place)
            self.faults = ("kill", "kill", "kill", "pause", "pause", "disk", "read-only")
        try:
            self.product = new_product(
                instance,
                DJANGO_SETTINGS_MODULE=SETTINGS,
                MEDIA_ROOT=str(media),
                MIN_FREE_GB="0.02",
                TMPDIR=str(folder),
            )
        except BaseException:
            self.remove()
            raise
        self.url = self.product.url

    def fill_disk(self, rng: Any) -> None:
        """Leave the instance no room for some seconds."""
        fill_disk(self._mounts[0], float(rng.uniform(1, 5)))

    def close_store(self, rng: Any) -> bool:
        """Make the store of files read-only for some seconds; False while a file is written."""
        media = str(self._mounts[1])
        try:
            _mount("-o", "remount,ro", media)
        except subprocess.CalledProcessError:
            return False
        time.sleep(float(rng.uniform(1, 5)))
        _mount("-o", "remount,rw", media)
        return True

    def remove(self) -> None:
        """End what still runs, and take the file systems away."""
        if getattr(self, "product", None) is not None and self.product.process is not None:
            for pid in reversed(descendants(self.product.process.pid)):
                kill(pid)
            self.product.process.wait()
        if self._mounts and (self._mounts[0] / "log").is_dir():  # they end with the file system
            logs = self._mounts[0].parent / "log"
            shutil.copytree(self._mounts[0] / "log", logs, dirs_exist_ok=True)
        for place in reversed(self._mounts):
            subprocess.run(["umount", "-l", str(place)], check=False)

    def start(self) -> None:
        """Start it, or what is left of it, again."""
        self.product.start()

    def targets(self, rng: Any) -> list[int]:
        """All processes; the supervisor, with which all others end, one time in ten."""
        process = self.product.process
        assert process is not None
        found = descendants(process.pid)
        return found if rng.random() < 0.1 else found[1:]

    def keep(self) -> None:
        """Do what a service manager does: start the supervisor again when it is gone."""
        process = self.product.process
        if process is not None and process.poll() is not None:
            with contextlib.suppress(AssertionError):  # slow: it goes on coming up
                self.product.start()

    def run(self, code: str) -> str:
        """Run Python in the installation."""
        return self.product.run(code, timeout=600)

    def logs(self) -> str:
        """Return the ends of all logs."""
        return self.product.logs()

    def stop(self) -> None:
        """Stop as a service manager would."""
        self.product.stop()

    def marks(self) -> list[str]:
        """What stands in the environment of every process of it."""
        return [f"BETHE_HALL_INSTANCE={self.product.instance}"]


@dataclass
class Kept:
    """A program that is started again whenever it ends, as systemd would."""

    name: str
    host: str
    command: list[str]
    environment: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it in the network of its host, under the host's name."""
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.host]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [*named, "ip", "netns", "exec", self.host, *self.command],
                cwd=ROOT,
                env=self.environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def keep(self) -> None:
        """Start it again when it ended; what it left behind is ended first."""
        if self.process is not None and self.process.poll() is not None:
            self.end()
            self.start()

    def end(self) -> None:
        """End it and whatever it started."""
        if self.process is not None:
            for pid in descendants(self.process.pid):
                kill(pid)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@dataclass
class ThreeHosts:
    """Web, worker, learner and sweep on each of three hosts; PostgreSQL, Redis and a store beside.

    Each host is a network namespace with a folder and a name of its own: none can see whether a
    process of another one lives. The object store is s3rver, which keeps its files on disk, so that
    it can be killed as well.
    """

    folder: Path
    programs: list[Kept] = field(default_factory=list)
    faults = ("kill", "kill", "kill", "pause", "pause", "cut", "host")

    def __post_init__(self) -> None:
        self.word = secrets.token_hex(2)
        self.hosts = [f"bh{self.word}{k}" for k in (1, 2, 3)]
        self.services = f"bh{self.word}s"
        self.bridge = f"bh{self.word}"
        self.url = f"http://{NETWORK}.1:8000"
        self._lock = threading.Lock()
        try:
            self._make()
        except BaseException:
            self.remove()
            raise

    def _make(self) -> None:
        """Make network, services and an installation with people; start no host yet."""
        self._make_network()
        self._start_services()
        environment = self._environment(self.folder / "host-1")
        self.product = Product(self.folder / "host-1", 8000, environment)
        self.product.prepare()
        for k in (2, 3):
            shutil.copytree(self.folder / "host-1" / "static", self.folder / f"host-{k}" / "static")
        for k, host in enumerate(self.hosts, start=1):
            own = self._environment(self.folder / f"host-{k}")
            for role in ("web", "worker", "learner", "sweep"):
                bind = ["--bind", f"{NETWORK}.{k}:8000"] if role == "web" else []
                command = [sys.executable, "-m", "webapp.supervisor.roles", role, *bind]
                log = self.folder / f"{role}-{k}.log"
                self.programs.append(Kept(role, host, command, own, log))

    def _make_network(self) -> None:
        _ip("link", "add", self.bridge, "type", "bridge")
        _ip("addr", "add", f"{NETWORK}.254/24", "dev", self.bridge)
        _ip("link", "set", self.bridge, "up")
        for name, last in [*zip(self.hosts, (1, 2, 3), strict=True), (self.services, 10)]:
            _ip("netns", "add", name)
            _ip("link", "add", f"{name}o", "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", f"{name}o", "master", self.bridge)
            _ip("link", "set", f"{name}o", "up")
            for words in (
                ("addr", "add", f"{NETWORK}.{last}/24", "dev", "eth0"),
                ("link", "set", "eth0", "up"),
                ("link", "set", "lo", "up"),
            ):
                _ip("-n", name, *words)

    def _start_services(self) -> None:
        binaries = Path(sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1])
        data = self.folder / "postgres"
        data.mkdir()
        shutil.chown(data, "postgres", "postgres")
        self.folder.chmod(0o755)
        as_postgres = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
        subprocess.run(
            [*as_postgres, str(binaries / "initdb"), "-D", str(data / "data"), "--auth=trust",
             "--username=bethe", "--encoding=UTF8", "--no-sync"],
            check=True, capture_output=True, cwd=data,
        )  # fmt: skip
        with (data / "data" / "pg_hba.conf").open("a") as file:
            file.write(f"host all all {NETWORK}.0/24 trust\n")
        store = self.folder / "objects"
        (store / "hall").mkdir(parents=True)
        (self.folder / "redis").mkdir()
        address = f"{NETWORK}.10"
        s3rver = os.environ.get("S3RVER") or shutil.which("s3rver")
        if s3rver is None:
            raise SystemExit("s3rver is absent: npm install s3rver, and S3RVER=its path")
        commands = {
            "database": [*as_postgres, str(binaries / "postgres"), "-D", str(data / "data"),
                         "-k", str(data), "-h", address, "-c", "fsync=off"],
            "broker": ["redis-server", "--bind", address, "--protected-mode", "no", "--dir",
                       str(self.folder / "redis"), "--appendonly", "yes", "--save", ""],
            "store": [s3rver, "--directory", str(store), "--address", address, "--port", "9000",
                      "--silent", "--configure-bucket", "hall"],
        }  # fmt: skip
        for name, command in commands.items():
            log = self.folder / f"{name}.log"
            kept = Kept(name, self.services, command, dict(os.environ), log)
            kept.start()
            self.programs.append(kept)
        time.sleep(5)

    def _environment(self, instance: Path) -> dict[str, str]:
        instance.mkdir(exist_ok=True)
        host = f"{NETWORK}.10"
        unwanted = {"DEBUG", "REQUIRE_ALL", "TEST_SUMMARY"}
        return {
            **{name: value for name, value in os.environ.items() if name not in unwanted},
            "DJANGO_SETTINGS_MODULE": SETTINGS,
            "BETHE_HALL_INSTANCE": str(instance),
            "DATABASE_URL": f"postgres://bethe@{host}/postgres?connect_timeout=3",
            "REDIS_URL": f"redis://{host}:6379/0",
            "STORE_URL": f"s3://hall/files?endpoint=http://{host}:9000",
            "AWS_ACCESS_KEY_ID": "S3RVER",
            "AWS_SECRET_ACCESS_KEY": "S3RVER",
            "SECRET_KEY": "the same on every host, of fifty characters and more, for the fault run",
            "SECURE_COOKIES": "0",
            "ALLOWED_HOSTS": "*",
            "WEB_WORKERS": "1",
            "JOB_WORKERS": "2",
            "LEARN_WORKERS": "1",
            "PYTHONPATH": str(ROOT),
        }

    def start(self) -> None:
        """Start all that is not running, and wait for the first host's pages."""
        for program in self.programs:
            if program.process is None:
                program.start()
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            if _is_alive(self.url):
                return
            time.sleep(0.5)
        raise AssertionError("the hosts did not start")

    def targets(self, rng: Any) -> list[int]:
        """All processes of hosts and services."""
        running = [p.process.pid for p in self.programs if p.process and p.process.poll() is None]
        return [pid for top in running for pid in descendants(top)]

    def keep(self) -> None:
        """Do what each host's service manager does."""
        with self._lock:
            for program in self.programs:
                program.keep()

    def cut(self, rng: Any) -> str:
        """Cut a host, or all services, off the network for some seconds."""
        name = str(rng.choice([*self.hosts, self.services]))
        _ip("link", "set", f"{name}o", "down")
        time.sleep(float(rng.uniform(1, 6)))
        _ip("link", "set", f"{name}o", "up")
        return f"cut {name}"

    def end_host(self, rng: Any) -> str:
        """Kill all processes of one host at once."""
        name = str(rng.choice(self.hosts))
        with self._lock:
            for program in self.programs:
                if program.host == name:
                    program.end()
        return f"host {name}"

    def run(self, code: str) -> str:
        """Run Python in the installation, from the first host."""
        return self.product.run(code, timeout=600)

    def logs(self) -> str:
        """Return the ends of all logs."""
        return "\n".join(
            f"--- {file.name}\n" + "\n".join(file.read_text(errors="replace").splitlines()[-25:])
            for file in sorted(self.folder.glob("*.log"))
        )

    def stop(self) -> None:
        """Stop hosts, then services, then the network."""
        hosts = [p for p in self.programs if p.host != self.services]
        for program in hosts:
            if program.process is not None and program.process.poll() is None:
                for child in children_of(program.process.pid) or [program.process.pid]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(child, signal.SIGTERM)
                with contextlib.suppress(ProcessLookupError):
                    program.process.terminate()
        for program in hosts:
            with contextlib.suppress(subprocess.TimeoutExpired):
                if program.process is not None:
                    program.process.wait(20)

    def remove(self) -> None:
        """End the services and take the network away."""
        for program in self.programs:
            program.end()
        for words in [*(["netns", "del", n] for n in [*self.hosts, self.services]),
                      ["link", "del", self.bridge]]:  # fmt: skip
            subprocess.run(["ip", *words], check=False, stderr=subprocess.DEVNULL)

    def marks(self) -> list[str]:
        """What stands in the environment of every process of the hosts."""
        return [f"BETHE_HALL_INSTANCE={self.folder}/host-{k}" for k in (1, 2, 3)]


def _is_alive(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=3) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
