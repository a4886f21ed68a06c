"""Addresses at which a server starts, and the names by which it may be asked."""

import socket

import pytest
from django.test import Client

from tests.webapp.roles import Page
from webapp.supervisor import StartError
from webapp.supervisor.address import is_loopback, listen, read_port, urls


def test_addresses_are_printed_as_a_browser_takes_them() -> None:
    names = ["hall.example", "10.1.2.3", "[fd00::5]", ".example", "*"]
    assert urls("127.0.0.1", 8000, names) == ["http://127.0.0.1:8000/"]
    assert urls("fd00::5", 8000, names) == ["http://[fd00::5]:8000/"]
    called = ["http://hall.example:8000/", "http://10.1.2.3:8000/", "http://[fd00::5]:8000/"]
    assert urls("0.0.0.0", 8000, names) == called
    assert urls("::", 8000, names) == called
    assert urls("0.0.0.0", 8000, ["*"]) == ["http://127.0.0.1:8000/"]
    assert urls("::", 8000, [".example"]) == ["http://[::1]:8000/"]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True), ("127.0.0.9", True), ("::1", True), ("localhost", True),
        ("0.0.0.0", False), ("::", False), ("10.1.2.3", False), ("hall.example", False),
    ],
)  # fmt: skip
def test_hosts_that_other_machines_reach(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize("text", ["abc", "", "0", "65536", "-1", "1.5", " 80", "٣"])
def test_a_port_that_is_none(text: str) -> None:
    with pytest.raises(StartError, match="from 1 to 65535"):
        read_port(text)


def test_a_port_that_another_program_has_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        words = f"^127.0.0.1:{port} is in use. Choose another port: PORT=8001 bin/start$"
        with pytest.raises(StartError, match=words):
            listen("127.0.0.1", port)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs IPv6")
def test_all_addresses_of_ipv6_are_those_of_ipv4_too() -> None:
    with listen("::", 0) as listener:
        for host in ("127.0.0.1", "::1"):
            with socket.create_connection((host, listener.getsockname()[1])):
                assert listener.accept()


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
