"""Who listens beyond this machine over plain http is warned."""

from pathlib import Path

import pytest

from webapp.supervisor import StartError
from webapp.supervisor.address import is_loopback
from webapp.supervisor.supervisor import PLAIN_HTTP, Supervisor


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_addresses(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "hall.example"])
def test_addresses_that_others_reach(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("host", "secure", "is_warned"),
    [("127.0.0.1", "", False), ("192.0.2.7", "0", True), ("192.0.2.7", "1", False)],
)
def test_the_start_warns(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    host: str,
    secure: str,
    is_warned: bool,
) -> None:
    def refuse(self: Supervisor) -> None:
        raise StartError("Nothing is started here.")

    monkeypatch.setenv("BETHE_HALL_INSTANCE", str(tmp_path))
    monkeypatch.setenv("SECURE_COOKIES", secure)
    monkeypatch.setattr("webapp.supervisor.supervisor.signal.signal", lambda *_: None)
    monkeypatch.setattr(Supervisor, "claim", lambda self: None)
    monkeypatch.setattr(Supervisor, "_start", refuse)
    with pytest.raises(StartError):
        Supervisor(host=host, port=8000).run()
    assert (PLAIN_HTTP in capsys.readouterr().err) == is_warned
