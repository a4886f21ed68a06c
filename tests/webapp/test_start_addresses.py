"""Addresses at which a server starts, and the names by which it may be asked."""

import socket

import pytest
from django.test import Client

from tests.webapp.roles import Page
from webapp.supervisor import address
from webapp.supervisor.address import AddressError, listen, own_names, read_port, urls


@pytest.fixture(autouse=True)
def interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine in two networks."""
    known = ["10.1.2.3", "192.168.7.9", "fd00::5", "fe80::1", "127.0.0.1", "::1"]
    monkeypatch.setattr(address, "own_addresses", lambda: known)
    monkeypatch.setattr(socket, "gethostname", lambda: "hall-1")
    monkeypatch.setattr(socket, "getfqdn", lambda: "hall-1.example")


def test_every_interface_may_be_asked_where_all_listen() -> None:
    found = own_names("0.0.0.0")
    assert {"10.1.2.3", "192.168.7.9", "[fd00::5]", "hall-1", "hall-1.example"} <= set(found)
    assert {"localhost", "127.0.0.1", "[::1]"} <= set(own_names("127.0.0.1"))
    assert "10.1.2.3" not in own_names("127.0.0.1")
    assert "hall.example" in own_names("hall.example")


def test_addresses_are_printed_as_a_browser_takes_them() -> None:
    assert urls("127.0.0.1", 8000) == ["http://127.0.0.1:8000/"]
    assert urls("0.0.0.0", 8000) == [
        "http://10.1.2.3:8000/", "http://192.168.7.9:8000/", "http://127.0.0.1:8000/",
    ]  # fmt: skip
    assert "http://[fd00::5]:8000/" in urls("::", 8000)
    assert not [url for url in urls("::", 8000) if "fe80" in url]


@pytest.mark.parametrize("text", ["abc", "", "0", "65536", "-1", "1.5", " 80", "٣"])
def test_a_port_that_is_none(text: str) -> None:
    with pytest.raises(AddressError, match="from 1 to 65535"):
        read_port(text)


def test_a_port_that_somebody_has_is_no_wrong_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(OSError) as caught:
        listen("127.0.0.1", server.getsockname()[1])
    assert not isinstance(caught.value, AddressError)


def test_connections_wait_in_the_socket_until_the_web_server_answers() -> None:
    with listen("localhost", 0) as listener:
        assert listener.family == socket.AF_INET  # the address that people type, if there are two
        with socket.create_connection(listener.getsockname()):
            assert listener.accept()


def test_an_unknown_name_is_told_how_it_becomes_known(client: Client, db: None) -> None:
    answer = client.get("/accounts/sign-in/", headers={"host": "hall.example<b>:8000"})
    assert answer.status_code == 400
    answer = client.get("/accounts/sign-in/", headers={"host": "hall.example:8000"})
    page = Page(answer, status=400)
    assert page.says("does not answer by the name “hall.example:8000”")
    assert page.says("ALLOWED_HOSTS")
