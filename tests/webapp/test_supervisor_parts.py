"""Parts of the supervisor that need no running product."""

import errno
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.patience import wait_for
from webapp.instance import BASE_DIR
from webapp.monitoring.log_settings import LinesFile
from webapp.supervisor import StartError, broker, child, supervisor
from webapp.supervisor.child import Child
from webapp.supervisor.supervisor import OTHER_SERVER, Supervisor


def test_lines_of_several_programs_follow_a_log_that_is_moved(tmp_path: Path) -> None:
    """The log of requests grows while programs never start again, and no line is lost."""
    path, earlier = tmp_path / "access.log", tmp_path / "access.log.1"
    writers = [LinesFile(path, max_bytes=150) for _ in range(3)]

    def write(text: str) -> None:
        for number, writer in enumerate(writers):
            line = f"{number} {text}"
            writer.emit(logging.LogRecord("x", logging.INFO, "", 0, line, None, None))

    write("before" * 4)
    assert not earlier.exists(), "it is small"
    write("before" * 4)
    assert not path.exists()
    write("after")
    assert path.read_text() == "0 after\n1 after\n2 after\n"
    assert earlier.read_text().count("\n") == 6
    for writer in writers:
        writer.close()


def test_a_program_starts_although_its_log_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"a file, where the folder of the logs should be")
    program = make_sleeper(tmp_path / "log")
    try:
        time.sleep(1.0)
        assert program.is_running
    finally:
        program.end()


def test_a_broker_that_answers_nobody_for_a_minute_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, replies, ended = [100.0], [True], []
    monkeypatch.setattr(supervisor.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(broker, "answers", lambda _: replies[0])
    monkeypatch.setenv("BETHE_HALL_INSTANCE", str(tmp_path))
    server = Supervisor(host="127.0.0.1", port=8000)
    server._broker = broker.Broker(("valkey",), "unix:///nothing", tmp_path / "none")
    server._broker_answered = now[0]
    monkeypatch.setattr(server, "_child", lambda name: FakeChild(name, ended))

    def look_until(end: float) -> int:
        while now[0] < end:
            now[0] += 0.5
            server._end_silent_broker()
        return len(ended)

    assert look_until(200) == 0
    replies[0] = False
    assert look_until(255) == 0
    replies[0] = True  # it was only late
    assert look_until(265) == 0
    replies[0] = False
    assert look_until(330) == 1
    assert look_until(340) == 1, "the clock starts again for the next broker"
    assert ended == ["broker"]


class FakeChild:
    """Program of the supervisor that only notes its end."""

    def __init__(self, name: str, ended: list[str]) -> None:
        self._name, self._ended = name, ended

    def end(self) -> None:
        """Note it."""
        self._ended.append(self._name)


def make_sleeper(folder: Path) -> Child:
    """Start a program that does nothing for a minute."""
    return Child(
        "sleeper",
        [sys.executable, "-c", "import time; time.sleep(60)"],
        environment=dict(os.environ),
        log_path=folder / "sleeper.log",
    )


def test_a_program_that_was_stopped_by_a_signal_is_ended_and_started_again(tmp_path: Path) -> None:
    program = make_sleeper(tmp_path)
    try:
        first = program.pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        program.end()
        program.restart_if_ended()
        assert program.pid is None, "a program that ends at once is not started in a tight loop"

        def is_back() -> bool:
            program.restart_if_ended()
            return program.pid not in (None, first)

        wait_for(is_back, seconds=60)
    finally:
        program.end()


def test_a_program_for_which_there_was_no_room_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "RESTART_SECONDS", 0.0)
    program = make_sleeper(tmp_path)
    program.end()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fork", no_room)
        for _ in range(2):
            with pytest.raises(BlockingIOError):
                program.restart_if_ended()
    program.restart_if_ended()
    assert program.is_running
    program.end()


def no_room() -> int:
    """Fail as a fork does where a user has too many processes."""
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


def test_stopping_takes_ten_seconds_at_most_whatever_the_programs_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five that do not listen took their time one after the other, 46 seconds in all."""
    monkeypatch.setenv("BETHE_HALL_INSTANCE", str(tmp_path))
    (tmp_path / "log").mkdir()
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); "
    server = Supervisor(host="127.0.0.1", port=8000)
    for name in ("broker", "web", "worker", "learner", "sweep"):
        command = (sys.executable, "-c", f"{code} time.sleep(120)")
        server._add(name, command, dict(os.environ))
    for program in server.children:
        assert program.is_running
        log = tmp_path / "log" / f"{program.name}.log"
        wait_for(lambda log=log: log.exists() and "deaf" in log.read_text(), seconds=60)
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
        words = "^ALLOWED_HOSTS: other machines can reach 0.0.0.0, so set the names"
        with pytest.raises(StartError, match=words) as caught:
            server.claim()
        assert "ALLOWED_HOSTS=hall.example,10.1.2.3" in str(caught.value)
    assert not (tmp_path / "supervisor.lock").exists()
    monkeypatch.setenv("ALLOWED_HOSTS", "hall.example, 10.1.2.3")
    server.claim()
    server._stop()
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
    server.claim()
    server._stop()
    assert server._environment()["ALLOWED_HOSTS"] == names


def test_a_host_that_is_named_needs_no_other_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ALLOWED_HOSTS", raising=False)
    server = supervisor_at("192.0.2.7", tmp_path, monkeypatch)
    with pytest.raises(StartError, match=r"^HOST: 192\.0\.2\.7 is no address of this machine"):
        server.claim()
    names = server._environment()["ALLOWED_HOSTS"]
    assert names == "127.0.0.1,192.0.2.7,[::1],localhost"


def test_a_start_waits_for_a_server_that_stops_but_not_for_one_that_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving = supervisor_at("127.0.0.1", tmp_path, monkeypatch)
    serving.claim()
    second = supervisor_at("127.0.0.1", tmp_path, monkeypatch)
    with pytest.raises(StartError, match=OTHER_SERVER):
        second.claim()
    assert serving._lock is not None
    serving._lock.truncate(0)  # as at the begin of its stop
    stop = threading.Timer(0.5, serving._stop)
    stop.start()
    second.claim()
    stop.join()
    assert (tmp_path / "supervisor.lock").read_text() == str(os.getpid())
    second._stop()


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
from pathlib import Path
from webapp.supervisor.child import Child
atexit.register(lambda: print("end of the parent", flush=True))
signal.signal(signal.SIGTERM, lambda *_: print("the parent's handler", flush=True))
log = Path(sys.argv[1])
lock = open(sys.argv[1] + ".lock", "w")
first, second = (
    Child("probe", [sys.executable, "-m", "probe", *words], environment={"WORD": "y"}, log_path=log)
    for words in (("3", "x"), ("sleep",))
)
while not log.exists() or log.read_text().count("bethe-probe") < 2 or first.is_running:
    time.sleep(0.05)
print(first._process.exitcode, second._process.exitcode, flush=True)
second.ask_to_stop()
second._process.join()
print(second._process.exitcode, flush=True)
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
    assert done.stdout.splitlines() == ["3 None", "-15", "end of the parent"], done.stderr
    said = (tmp_path / "probe.log").read_text().splitlines()
    # The last of its files is the list of files itself.
    assert "[['3', 'x'], ['WORD'], True, ['0', '1', '2', '3']]" in said
    assert said.count("bethe-probe") == 2
    assert said.count("own end") == 1  # a signal ended the other
