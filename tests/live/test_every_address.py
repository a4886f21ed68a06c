"""A server that listens at all addresses answers by the names that are set, and prints them."""

import os
import signal
import socket
from pathlib import Path

import pytest
import requests

from tests.live.product import children_of, name_of, new_product
from tests.patience import wait_for


@pytest.mark.slow
def test_pages_answer_by_the_names_that_are_set(tmp_path: Path) -> None:
    product = new_product(tmp_path, HOST="0.0.0.0")
    with pytest.raises(AssertionError, match="ALLOWED_HOSTS: other machines can reach"):
        product.start()
    assert not (product.instance / "broker.url").exists()
    names = ["127.0.0.1", *own_addresses()]
    product.environment["ALLOWED_HOSTS"] = ",".join(names)
    product.start()
    try:
        log = product.instance / "supervisor.log"
        wait_for(lambda: "Ctrl+C stops it." in log.read_text(), logs=product.logs)
        said = log.read_text()
        for host in names:
            url = f"http://{host}:{product.port}/"
            assert f"Bethe Hall is at {url}" in said
            answer = requests.get(f"{url}accounts/sign-in/", timeout=60)
            assert answer.status_code == 200, (host, answer.text[:300])
        stranger = requests.get(
            f"{product.url}/", headers={"Host": "elsewhere.example"}, timeout=60
        )
        assert stranger.status_code == 400
        assert "ALLOWED_HOSTS" in stranger.text
    finally:
        product.stop()


def own_addresses() -> list[str]:
    """Return the IPv4 addresses under which this machine knows its own name."""
    try:
        found = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
    except socket.gaierror:
        return []
    return sorted({str(place[0]) for *_, place in found} - {"127.0.0.1"})


@pytest.mark.slow
def test_compiling_beside_the_server_leaves_no_zombie(tmp_path: Path) -> None:
    product = new_product(tmp_path)
    product.options = ("--warm",)
    product.start()
    try:
        assert product.process is not None
        supervisor = product.process.pid

        def zombies() -> list[str]:
            found = []
            for stat in Path("/proc").glob("[0-9]*/stat"):
                try:
                    fields = stat.read_text(errors="replace").rpartition(")")[2].split()
                except OSError:
                    continue
                if int(fields[1]) == supervisor and fields[0] == "Z":
                    found.append(stat.parent.name)
            return found

        def compiling() -> list[int]:
            return [pid for pid in children_of(supervisor) if name_of(pid) == "warm"]

        (pid,) = wait_for(compiling, logs=product.logs)
        os.kill(pid, signal.SIGKILL)  # it need not compile everything for this test
        wait_for(lambda: not Path(f"/proc/{pid}").exists(), seconds=20)
        assert zombies() == []
    finally:
        product.stop()
