"""Starting, stopping and restarting the real processes."""

import os
import signal
import stat
import tempfile
import time
import urllib.request
from pathlib import Path

import pytest

from tests.live.product import Product, children_of, is_running, new_product
from tests.patience import PATIENCE_SECONDS, busyness, wait_for
from webapp.supervisor import broker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc"),
]


def all_descendants(pid: int) -> list[int]:
    found = children_of(pid)
    return found + [deeper for child in found for deeper in all_descendants(child)]


def test_it_stops_everything_on_sigterm(product: Product) -> None:
    assert product.process is not None
    supervisor = product.process.pid
    # Broker, web and two of its own, worker and two of its own, which it has perhaps yet to fork.
    wait_for(lambda: len(all_descendants(supervisor)) >= 6)
    pids = all_descendants(supervisor)
    started = time.monotonic()
    assert product.stop() == 0
    assert time.monotonic() - started < 10 * busyness()
    assert [pid for pid in pids if is_running(pid)] == []
    assert not (product.instance / "broker.url").exists()


def test_nothing_outlives_a_killed_supervisor(product: Product) -> None:
    """Programs that web server and workers forked ended only when the next server started."""
    assert product.process is not None
    wait_for(lambda: len(all_descendants(product.process.pid)) >= 9)
    pids = all_descendants(product.process.pid)
    assert len(pids) > len(children_of(product.process.pid))
    product.process.kill()
    product.process.wait()
    wait_for(lambda: not any(is_running(pid) for pid in pids), seconds=5 * busyness())


@pytest.mark.parametrize("name", ["broker", "worker", "web"])
def test_it_restarts_what_dies(product: Product, name: str) -> None:
    before = product.pid_of(name)
    os.kill(before, signal.SIGKILL)

    def is_back() -> bool:
        try:
            return product.pid_of(name) != before
        except AssertionError:
            return False

    wait_for(is_back, logs=product.logs)
    if name == "web":

        def answers() -> bool:
            try:
                with urllib.request.urlopen(f"{product.url}/healthz", timeout=30) as answer:
                    return answer.status == 200
            except OSError:
                return False

        wait_for(answers, logs=product.logs)


def test_visitors_wait_while_the_web_server_starts_again(product: Product) -> None:
    """Its socket belongs to the supervisor: connections were refused until it listened again."""
    web = product.pid_of("web")
    killed = (web, *children_of(web))
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not any(map(is_running, killed)))  # one that ends may still accept and close
    with urllib.request.urlopen(f"{product.url}/healthz", timeout=PATIENCE_SECONDS) as answer:
        assert answer.status == 200
    assert product.pid_of("web") != web


def test_a_killed_server_leaves_no_run_folder_to_the_next(product: Product) -> None:
    assert product.process is not None
    before = product.instance / "broker" / "run_folder"
    folder = Path(before.read_text(encoding="utf-8"))
    assert folder.is_dir()
    product.process.kill()
    product.process.wait()
    product.start()
    wait_for(lambda: not folder.exists())


def test_the_broker_is_open_to_this_user_only(product: Product) -> None:
    url = (product.instance / "broker.url").read_text(encoding="ascii")
    assert stat.S_IMODE((product.instance / "broker.url").stat().st_mode) == 0o600
    assert url.startswith("unix://")
    socket = Path(url.removeprefix("unix://"))
    assert stat.S_IMODE(socket.stat().st_mode) == 0o700
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    assert len(os.fsencode(socket)) <= 100


def test_a_second_server_on_the_same_folder_is_refused(product: Product) -> None:
    second = Product(product.instance, product.port + 1, product.environment)
    with pytest.raises(AssertionError, match="Another server runs on this instance folder"):
        second.start()


def test_a_long_folder_for_temporary_files_is_too_long_for_a_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / ("x" * 90)
    base.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(base))
    prepared = broker.prepare_broker(tmp_path / "instance")
    try:
        assert prepared.run_folder.parent == Path("/tmp")
        assert stat.S_IMODE(prepared.run_folder.stat().st_mode) == 0o700
        assert "\nport 0\n" in Path(prepared.command[1]).read_text(encoding="utf-8")
    finally:
        prepared.run_folder.rmdir()


def test_what_a_running_product_keeps_is_read_by_nobody_else(tmp_path: Path) -> None:
    product = new_product(tmp_path / "hall")
    for path in (product.instance, *product.instance.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
    product.launcher = ("sh", "-c", 'umask 000; exec "$@"', "sh")
    product.start()
    try:
        urllib.request.urlopen(f"{product.url}/accounts/sign-in/", timeout=30).read()
        kept = [product.instance, *product.instance.rglob("*")]
        kept = [path for path in kept if path.name != "supervisor.log"]  # the test's own
        modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in kept if path.exists()}
        names = {path.name for path in modes}
        assert {"bethe_hall.sqlite3", "web.log", "access.log", "appendonlydir", "static"} <= names
        assert not {
            str(path): oct(mode)
            for path, mode in modes.items()
            if mode & 0o077 and not path.is_symlink()
        }
    finally:
        product.stop()


def test_the_secret_is_made_once_and_kept_to_oneself(tmp_path: Path) -> None:
    first = new_product(tmp_path)
    code = "from django.conf import settings; print(settings.SECRET_KEY)"
    key = first.run(code, new_python=True)
    assert len(key) >= 50
    assert first.run(code, new_python=True) == key
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600


def test_a_port_in_use_is_named(product: Product, tmp_path: Path) -> None:
    second = new_product(tmp_path)
    second.port = product.port
    with pytest.raises(AssertionError, match="is in use"):
        second.start()


def test_it_starts_straight_after_a_killed_one_whose_web_workers_hold_the_port(
    product: Product,
) -> None:
    """A request that takes long kept a web worker, and with it the port, for longer than a start
    waits."""
    assert product.process is not None
    workers = children_of(product.pid_of("web"))
    assert workers
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)  # as busy as can be: they do not even see their parent end
    product.process.kill()
    product.process.wait()
    product.start()
    assert [pid for pid in workers if is_running(pid)] == []
