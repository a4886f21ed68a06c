"""Commands of a product, which are copies of one process, behave as if Python had been started."""

import subprocess
from pathlib import Path

import pytest

from tests.live.product import Product, is_running, new_product
from tests.patience import wait_for


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """An installation whose database is ready and whose server does not run."""
    return new_product(tmp_path_factory.mktemp("commands"))


def test_each_command_is_a_process_of_its_own(waiting: Product) -> None:
    code = "import os, sys; print(os.getpid(), hasattr(sys, 'left')); sys.left = True"
    first, second = (waiting.run(code).split() for _ in "ab")
    assert first[0] != second[0]
    assert first[1] == second[1] == "False"


def test_a_command_has_the_environment_of_its_installation(
    waiting: Product, tmp_path: Path
) -> None:
    code = "from django.conf import settings; print(settings.INSTANCE_DIR, settings.BROKER_URL)"
    assert waiting.run(code).split()[0] == str(waiting.instance)
    (waiting.instance / "broker.url").write_text("unix:///nowhere/broker.sock")
    assert waiting.run(code).split()[1] == "unix:///nowhere/broker.sock"
    other = new_product(tmp_path)
    assert other.run(code).split()[0] == str(tmp_path)


def test_a_command_that_fails_says_why(waiting: Product) -> None:
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        waiting.run("1 / 0")
    with pytest.raises(AssertionError, match="This installation has people"):
        waiting.manage("restore", "/nowhere.tar")


def test_a_command_that_takes_too_long_is_ended(waiting: Product, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.run(code, timeout=10)
    pid = int(note.read_text())
    assert wait_for(lambda: not is_running(pid))
