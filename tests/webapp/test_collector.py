"""A full collection of a web process has nothing to walk over."""

import gc
import importlib
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from webapp.sizing import sizes
from webapp.supervisor.roles import web_command


@pytest.fixture
def collector() -> Iterator[None]:
    """Leave the collector of the tests as it was."""
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("collector")
def test_what_a_web_process_loads_is_left_out_of_collections() -> None:
    command = web_command("127.0.0.1:8000", sizes())
    (module,) = [word.removeprefix("python:") for word in command if word.startswith("python:")]
    importlib.import_module(module).when_ready(SimpleNamespace(cfg=SimpleNamespace(workers=2)))
    assert gc.get_freeze_count() > 50_000
    assert len(gc.get_objects()) < 5_000
