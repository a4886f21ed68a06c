"""Parts of the supervisor that need no running product."""

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import wait_for
from webapp.instance import BASE_DIR
from webapp.monitoring.log_settings import LinesFile
from webapp.supervisor import broker, child, leftovers
from webapp.supervisor.supervisor import Supervisor


def test_a_large_log_is_kept_as_the_earlier_one_when_its_program_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "LARGEST_LOG_BYTES", 100)
    path = tmp_path / "web.log"
    for text, earlier in ((b"a" * 90, None), (b"b" * 200, None), (b"c" * 200, b"b" * 200)):
        path.write_bytes(text)
        program = child.Child(
            "teller",
            [sys.executable, "-c", "print('started')"],
            environment=dict(os.environ),
            log_path=path,
        )
        program.start()
        program.stop(time.monotonic() + 60)
        is_large = len(text) > 100
        assert path.read_bytes() == (b"" if is_large else text) + b"started\n"
        kept = tmp_path / "web.log.1"
        assert (kept.read_bytes() if kept.exists() else None) == (text if is_large else earlier)


def test_lines_of_several_programs_follow_a_log_that_is_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of requests grows while programs never start again, and no line is lost."""
    monkeypatch.setattr(child, "LARGEST_LOG_BYTES", 100)
    path, earlier = tmp_path / "access.log", tmp_path / "access.log.1"
    writers = [LinesFile(path, delay=True) for _ in range(3)]

    def write(text: str) -> None:
        for number, writer in enumerate(writers):
            line = f"{number} {text}"
            writer.emit(logging.LogRecord("x", logging.INFO, "", 0, line, None, None))

    write("before" * 3)
    child.rotate(path)
    assert not earlier.exists(), "it is small"
    write("before" * 3)
    child.rotate(path)
    assert not path.exists()
    write("after")
    assert path.read_text() == "0 after\n1 after\n2 after\n"
    assert earlier.read_text().count("\n") == 6
    for writer in writers:
        writer.close()


def test_a_program_starts_although_its_log_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"a file, where the folder of the logs should be")
    program = child.Child(
        "sleeper",
        [sys.executable, "-c", "import time; time.sleep(60)"],
        environment=dict(os.environ),
        log_path=tmp_path / "log" / "sleeper.log",
    )
    program.start()
    try:
        assert program.is_running
    finally:
        program.end()


def test_a_broker_that_answers_nobody_for_a_minute_is_stuck(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, replies = [0.0], [True]
    monkeypatch.setattr(broker.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(broker, "answers", lambda _: replies[0])
    watch = broker.Watch("unix:///nothing")

    def look_until(end: float) -> bool:
        found = False
        while now[0] < end:
            now[0] += 0.5
            found = watch.is_stuck() or found
        return found

    assert not look_until(100)
    replies[0] = False
    assert not look_until(155)
    replies[0] = True  # it was only late
    assert not look_until(165)
    replies[0] = False
    assert look_until(230)
    watch.begin()
    assert not look_until(240)


def test_a_program_that_was_stopped_by_a_signal_is_ended_and_started_again(tmp_path: Path) -> None:
    program = child.Child(
        "sleeper",
        [sys.executable, "-c", "import time; time.sleep(60)"],
        environment=dict(os.environ),
        log_path=tmp_path / "sleeper.log",
    )
    program.start()
    try:
        first = program.pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        program.end()
        assert program.restart_if_ended()
        assert program.pid not in (None, first)
    finally:
        program.end()


def test_stopping_takes_ten_seconds_at_most_whatever_the_programs_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five that do not listen took their time one after the other, 46 seconds in all."""
    monkeypatch.setenv("BETHE_HALL_INSTANCE", str(tmp_path))
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); "
    server = Supervisor(host="127.0.0.1", port=8000)
    for name in ("broker", "web", "worker", "learner", "sweep"):
        command = (sys.executable, "-c", f"{code} time.sleep(120)")
        server._add(name, command, dict(os.environ))
    for program in server.children:
        log = tmp_path / "log" / f"{program.name}.log"
        wait_for(lambda log=log: "deaf" in log.read_text(), seconds=60)
    started = time.monotonic()
    server._stop()
    assert time.monotonic() - started < 10
    assert not any(program.is_running for program in server.children)


def supervisor_at(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    monkeypatch.setenv("BETHE_HALL_INSTANCE", str(tmp_path))
    return Supervisor(host=host, port=0)


def test_names_are_asked_for_where_other_machines_can_reach_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = supervisor_at("0.0.0.0", tmp_path, monkeypatch)
    for nothing in ("", " , "):
        monkeypatch.setenv("ALLOWED_HOSTS", nothing)
        words = "ALLOWED_HOSTS: other machines can reach 0.0.0.0, so set the names"
        assert server.problem().startswith(words)
        assert "ALLOWED_HOSTS=hall.example,10.1.2.3" in server.problem()
    assert not (tmp_path / "supervisor.lock").exists()
    monkeypatch.setenv("ALLOWED_HOSTS", "hall.example, 10.1.2.3")
    assert server.problem() == ""
    assert server._environment()["ALLOWED_HOSTS"] == "hall.example,10.1.2.3"


@pytest.mark.parametrize(
    ("host", "names"),
    [
        ("127.0.0.1", "127.0.0.1,[::1],localhost"),
        ("127.0.0.2", "127.0.0.1,127.0.0.2,[::1],localhost"),
        ("localhost", "127.0.0.1,[::1],localhost"),
    ],
)
def test_loopback_needs_no_names(
    host: str, names: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ALLOWED_HOSTS", raising=False)
    server = supervisor_at(host, tmp_path, monkeypatch)
    assert server.problem() == ""
    assert server._environment()["ALLOWED_HOSTS"] == names


def test_a_host_that_is_named_needs_no_other_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ALLOWED_HOSTS", raising=False)
    server = supervisor_at("10.1.2.3", tmp_path, monkeypatch)
    assert "ALLOWED_HOSTS" not in server.problem()
    names = server._environment()["ALLOWED_HOSTS"]
    assert names == "10.1.2.3,127.0.0.1,[::1],localhost"


_PROBE = """
import atexit, os, sys
atexit.register(lambda: os.write(1, b"own end\\n"))
files = sorted(os.listdir("/proc/self/fd"))
facts = [sys.argv[1:], sorted(os.environ), os.getsid(0) == os.getpid(), files]
os.write(1, repr(facts).encode() + b"\\n")
os.write(1, open("/proc/self/comm", "rb").read())
if sys.argv[1] == "sleep":
    import time
    time.sleep(60)
sys.exit(int(sys.argv[1]))
"""
_FORK = """
import atexit, os, signal, sys, time
from webapp.supervisor.forks import Fork
atexit.register(lambda: print("end of the parent", flush=True))
signal.signal(signal.SIGTERM, lambda *_: print("the parent's handler", flush=True))
lock = open(sys.argv[1] + ".lock", "w")
with open(sys.argv[1], "ab") as output:
    first = Fork([sys.executable, "-m", "probe", "3", "x"], {"WORD": "y"}, output, name="probe")
    second = Fork([sys.executable, "-m", "probe", "sleep"], {"WORD": "y"}, output, name="probe")
print(first.wait(200), first.poll(), second.poll(), flush=True)
while open(sys.argv[1]).read().count("bethe-probe") < 2:
    time.sleep(0.05)
second.send_signal(signal.SIGTERM)
print(second.wait(200), flush=True)
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_a_program_that_is_forked_has_nothing_of_its_parent_but_what_is_loaded(
    tmp_path: Path,
) -> None:
    (tmp_path / "probe.py").write_text(_PROBE)
    path = os.pathsep.join([str(BASE_DIR), str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "-c", _FORK, str(tmp_path / "probe.log")],
        env={**os.environ, "PYTHONPATH": path},
        check=True, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["3 3 None", "-15", "end of the parent"], done.stderr
    said = (tmp_path / "probe.log").read_text().splitlines()
    # The last of its files is the list of files itself.
    assert "[['3', 'x'], ['WORD'], True, ['0', '1', '2', '3']]" in said
    assert said.count("bethe-probe") == 2
    assert said.count("own end") == 1  # a signal ended the other


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_what_a_killed_supervisor_of_this_folder_left_is_ended(tmp_path: Path) -> None:
    def sleeper(**variables: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(60)"],
            env={**os.environ, **variables},
            start_new_session=True,
        )

    here, elsewhere = str(tmp_path), str(tmp_path / "other")
    left = sleeper(BETHE_HALL_INSTANCE=here, BETHE_HALL_CHILD_OF="1")
    kept = [
        sleeper(BETHE_HALL_INSTANCE=here),  # a command that somebody runs beside it
        sleeper(BETHE_HALL_INSTANCE=here, BETHE_HALL_CHILD_OF=str(os.getpid())),  # our own
        sleeper(BETHE_HALL_INSTANCE=elsewhere, BETHE_HALL_CHILD_OF="1"),
    ]
    try:
        for process in (left, *kept):  # till then it shows the variables of this process
            shown = Path(f"/proc/{process.pid}/environ")
            wait_for(lambda shown=shown: here.encode() in shown.read_bytes())
        reaper_free = leftovers.end_leftovers(tmp_path)
        assert reaper_free == 1
        assert left.wait(5) != 0
        assert [process.poll() for process in kept] == [None, None, None]
    finally:
        for process in [left, *kept]:
            process.kill()
            process.wait()
