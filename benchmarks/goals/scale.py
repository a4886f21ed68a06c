"""Learning from pictures on one host and on several: seconds, network, and what more would cost.

    python -m benchmarks goals scale [--pictures 16 48] [--hosts 1 2] [--gap 1e-3] [--rate 1gbit]

Every host is a worker of Dask on one thread, in a network namespace of its own where the command
runs as root, else a process of this machine. The learner and the scheduler share one more. The
answer is compared with that of one process first; then come seconds, processor time of the busiest
host, and the bytes that crossed the learner's network card. A model is fitted to them,

    seconds(P, h, c) = a P / (h c) + E (r + d P / bandwidth) + (s P + C) / bandwidth,

with P pixels, h hosts of c cores, E evaluations, s bytes a pixel sent once, d bytes a pixel an
evaluation, r seconds of the quickest round trip to all hosts, C bytes that come back once, and
printed for up to 1e9 pixels. More hosts than cores measure what crosses the network, not the speed.
"""

import argparse
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.reporting import ROOT, print_machine, print_table
from engine.core.hosts import HostRequest

NETWORK = "10.78.0"
PORT = 8786
SHAPE = (150, 200)
SIZES = (1e6, 1e7, 1e8, 1e9)
HOSTS = (1, 2, 4, 8, 16, 32)
CORES = 8
BANDWIDTHS = {"1 Gbit/s": 1.1e8, "10 Gbit/s": 1.1e9}  # bytes a second that arrive


class TimedHosts:
    """Hosts that count what is asked of them."""

    def __init__(self, hosts: Any) -> None:
        self._hosts = hosts
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}

    @property
    def count(self) -> int:
        """See `Hosts.count`."""
        return int(self._hosts.count)

    def place(self, make: Any) -> None:
        """See `Hosts.place`."""
        self._hosts.place(make)

    def ask(self, requests: Sequence[Any], should_stop: Any) -> list[Any]:
        """See `Hosts.ask`."""
        started = time.perf_counter()
        answers = self._hosts.ask(requests, should_stop)
        method = requests[0].method
        self.seconds[method] = self.seconds.get(method, 0.0) + time.perf_counter() - started
        self.calls[method] = self.calls.get(method, 0) + 1
        return list(answers)


def learn(pictures: int, gap: float, scheduler: str) -> dict[str, Any]:
    """Learn once, here or on the hosts of a scheduler; the numbers as JSON can say them."""
    from engine import generate_leaf_images, train_segmentation
    from engine.learning.segmentation.dask_hosts import DaskHosts

    made = generate_leaf_images(pictures, rng=np.random.default_rng(0), shape=SHAPE)
    images, masks = [p.image for p in made], [p.mask for p in made]
    with contextlib.ExitStack() as stack:
        hosts = None
        if scheduler:
            hosts = TimedHosts(stack.enter_context(DaskHosts(scheduler)))
            # Every host compiles, or reads what is compiled, before the clock starts.
            train_segmentation(images[: 4 * hosts.count], masks[: 4 * hosts.count],
                               relative_gap=0.5, hosts=hosts)  # fmt: skip
            hosts.seconds.clear()
            hosts.calls.clear()
        else:
            train_segmentation(images[:4], masks[:4], relative_gap=0.5)
        before, started = _card_bytes(), time.perf_counter()
        trained = train_segmentation(images, masks, relative_gap=gap, hosts=hosts)
        seconds, after = time.perf_counter() - started, _card_bytes()
        round_trip = 0.0 if hosts is None else min(_round_trip(hosts) for _ in range(50))
    return {
        "seconds": seconds,
        "round_trip": round_trip,
        "pixels": trained.n_pixels,
        "sent": after[1] - before[1],
        "received": after[0] - before[0],
        "asked": {} if hosts is None else hosts.seconds,
        "calls": {} if hosts is None else hosts.calls,
        "theta": trained.model.theta.tolist(),
        "bounds": [trained.result.lower_bound, trained.result.objective],
    }


def _round_trip(hosts: Any) -> float:
    """Seconds until all hosts have answered something that takes no time."""
    started = time.perf_counter()
    hosts.ask([HostRequest(k, "stop", ()) for k in range(hosts.count)], lambda: False)
    return time.perf_counter() - started


def _card_bytes() -> tuple[int, int]:
    """Bytes that came in and went out by the network card of this namespace, or by loopback."""
    rows = {}
    for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
        name, _, rest = line.partition(":")
        rows[name.strip()] = rest.split()
    row = rows.get("eth0") or rows["lo"]
    return int(row[0]), int(row[8])


@dataclass
class Cluster:
    """A scheduler and some workers, each in a namespace of its own where that is permitted."""

    hosts: int
    rate: str
    is_apart: bool = field(default_factory=lambda: os.geteuid() == 0)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.word = f"bs{secrets.token_hex(2)}"
        self.names = [f"{self.word}n{k}" for k in range(self.hosts + 1)]  # the learner's first
        self.address = f"tcp://{NETWORK if self.is_apart else '127.0.0'}.1:{PORT}"

    def __enter__(self) -> "Cluster":
        if self.is_apart:
            self._make_network()
        where = self.address.removeprefix("tcp://").partition(":")[0]
        self._start(0, "scheduler", "--host", where, "--port", str(PORT), "--no-dashboard")
        time.sleep(3)
        for k in range(1, self.hosts + 1):
            own = ["--host", f"{NETWORK}.{k + 1}"] if self.is_apart else []
            self.workers.append(
                self._start(
                    k,
                    "worker",
                    self.address,
                    "--nworkers",
                    "1",
                    "--nthreads",
                    "1",
                    "--no-nanny",
                    "--no-dashboard",
                    *own,
                )
            )
        time.sleep(5)
        return self

    def __exit__(self, *error: object) -> None:
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if self.is_apart:
            for name in self.names:
                subprocess.run(["ip", "netns", "del", name], check=False)
            subprocess.run(["ip", "link", "del", self.word], check=False)

    def learn(self, pictures: int, gap: float) -> dict[str, Any]:
        """Learn from the learner's namespace; also the processor seconds of the busiest worker."""
        before = [_processor_seconds(worker.pid) for worker in self.workers]
        command = [sys.executable, "-m", "benchmarks.goals.scale", "--learn", str(pictures),
                   "--gap", str(gap), "--scheduler", self.address]  # fmt: skip
        answer = subprocess.run(
            [*self._inside(0), *command], cwd=ROOT, env=_environment(), check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
        used = [_processor_seconds(w.pid) - b for w, b in zip(self.workers, before, strict=True)]
        return found | {"busiest": max(used), "all": sum(used)}

    def _start(self, place: int, *words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*self._inside(place), sys.executable, "-m", "distributed.cli.dask_" + words[0],
             *words[1:]],
            cwd=ROOT, env=_environment(), start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def _inside(self, place: int) -> list[str]:
        return ["ip", "netns", "exec", self.names[place]] if self.is_apart else []

    def _make_network(self) -> None:
        _run("ip", "link", "add", self.word, "type", "bridge")
        _run("ip", "link", "set", self.word, "up")
        for k, name in enumerate(self.names):
            _run("ip", "netns", "add", name)
            _run("ip", "link", "add", f"{name}o", "type", "veth", "peer", "name", "eth0",
                 "netns", name)  # fmt: skip
            _run("ip", "link", "set", f"{name}o", "master", self.word)
            _run("ip", "link", "set", f"{name}o", "up")
            _run("ip", "-n", name, "addr", "add", f"{NETWORK}.{k + 1}/24", "dev", "eth0")
            _run("ip", "-n", name, "link", "set", "eth0", "up")
            _run("ip", "-n", name, "link", "set", "lo", "up")
            if self.rate:
                _run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "netem",
                     "rate", self.rate, "delay", "0.1ms")  # fmt: skip


def _environment() -> dict[str, str]:
    one = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    return {**os.environ, **one, "PYTHONPATH": str(ROOT)}


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _run(*words: str) -> None:
    subprocess.run(words, check=True)


def measure(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Learn by one process, then on every number of hosts; say how far the answers are apart."""
    for pictures in arguments.pictures:
        command = [sys.executable, "-m", "benchmarks.goals.scale", "--learn", str(pictures),
                   "--gap", str(arguments.gap)]  # fmt: skip
        answer = subprocess.run(command, cwd=ROOT, env=_environment(), check=True,
                                capture_output=True, text=True)  # fmt: skip
        alone = json.loads(answer.stdout.splitlines()[-1])
        yield alone | {"hosts": 0, "pictures": pictures, "difference": 0.0}
        for hosts in arguments.hosts:
            with Cluster(hosts, arguments.rate) as cluster:
                found = cluster.learn(pictures, arguments.gap)
            one, two = np.array(alone["theta"]), np.array(found["theta"])
            difference = float(np.abs(one - two).max() / np.abs(one).max())
            yield found | {"hosts": hosts, "pictures": pictures, "difference": difference}


def report(runs: list[dict[str, Any]]) -> None:
    """Print what was measured and what the model says of more."""
    rows = []
    for run in runs:
        where = f"{run['hosts']} of one core" if run["hosts"] else "one process"
        crossed = (run["sent"] + run["received"]) / 1e6 if run["hosts"] else None
        idle = run["seconds"] - run["busiest"] if run["hosts"] else None
        rows.append([run["pictures"], run["pixels"], where, run["seconds"],
                     run.get("busiest"), idle, crossed, run["difference"]])  # fmt: skip
    print_table(
        "Learning to a certified gap, beside one process",
        ["pictures", "pixels", "hosts", "seconds", "processor of the busiest", "rest",
         "MB by the card", "difference"],
        rows,
    )  # fmt: skip
    spread = [run for run in runs if run["hosts"]]
    if not spread:
        return
    model = fit(spread)
    print("\nModel: " + ", ".join(f"{name} {value:.3g}" for name, value in model.items()))
    for name, bandwidth in BANDWIDTHS.items():
        table = []
        for pixels in SIZES:
            row: list[Any] = [f"{pixels:.0e}"]
            for hosts in HOSTS:
                total, share = predict(model, pixels, hosts, bandwidth)
                row.append(f"{_words(total)} ({share:.0%})")
            table.append(row)
        title = f"Modelled: hosts of {CORES} cores, {name}; in brackets the network's share"
        print_table(title, ["pixels", *map(str, HOSTS)], table)


def fit(runs: list[dict[str, Any]]) -> dict[str, float]:
    """Estimate the terms of the model; what a learning costs whatever its size is apart."""
    pixels = np.array([run["pixels"] for run in runs], dtype=float)
    calls = np.array([run["calls"]["solve"] for run in runs], dtype=float)
    return {
        "a (processor s/pixel)": _slope(pixels, [run["all"] for run in runs])[0],
        "s (bytes/pixel, once)": _slope(pixels, [run["sent"] for run in runs])[0],
        "d (bytes/pixel/evaluation)": _slope(pixels * calls, [run["received"] for run in runs])[0],
        "C (bytes, once)": _slope(pixels * calls, [run["received"] for run in runs])[1],
        "E (evaluations)": float(np.median(calls)),
        "r (s/evaluation)": float(np.median([run["round_trip"] for run in runs])),
    }


def _slope(x: np.ndarray, y: list[float]) -> tuple[float, float]:
    """Slope and height of the line through points, neither below 0."""
    matrix = np.column_stack([x, np.ones_like(x)])
    slope, height = np.linalg.lstsq(matrix, np.array(y, dtype=float), rcond=None)[0]
    return max(float(slope), 0.0), max(float(height), 0.0)


def predict(
    model: dict[str, float], pixels: float, hosts: int, bandwidth: float
) -> tuple[float, float]:
    """Seconds of learning, and the share of them that the network takes."""
    a, s, d, once, evaluations, wait = model.values()
    network = (pixels * (s + d * evaluations) + once) / bandwidth + evaluations * wait
    total = a * pixels / (hosts * CORES) + network
    return total, network / total


def _words(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def main() -> None:
    """Measure, or learn once for a measurement."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pictures", type=int, nargs="+", default=[16, 48])
    parser.add_argument("--hosts", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--rate", default="", help="of every network card, such as 1gbit")
    parser.add_argument("--learn", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--scheduler", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.learn:
        print(json.dumps(learn(arguments.learn, arguments.gap, arguments.scheduler)))
        return
    print_machine()
    report(list(measure(arguments)))


if __name__ == "__main__":
    main()
