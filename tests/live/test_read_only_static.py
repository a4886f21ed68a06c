"""Static files on a disk that is mounted read-only: one sentence, or pages where they are."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.product import ROOT, Product, new_product
from tests.live.test_disk_full import _may_mount

_PAGE = """
from django.test import Client
answer = Client().get("/accounts/sign-in/", HTTP_HOST="127.0.0.1")
print(answer.status_code)
"""


@pytest.fixture
def product(tmp_path: Path) -> Product:
    if not _may_mount(tmp_path):
        pytest.skip("a disk of its own needs unshare and namespaces of users")
    return new_product(tmp_path)


def with_static(product: Product, mount: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a management command with the static folder mounted in a way of the test's."""
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", f'{mount} && exec "$@"', "sh",
         sys.executable, "manage.py", *arguments],
        cwd=ROOT, env=product.environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.slow
def test_a_start_says_in_one_sentence_that_it_cannot_write_them(product: Product) -> None:
    folder = product.instance / "static"
    mount = f"mount -t tmpfs -o ro none '{folder}'"
    done = with_static(product, mount, "collectstatic", "--noinput", "--verbosity", "0")
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert f"Static files cannot be written into {folder}: Read-only file system." in line
    assert "then start it again" in line


@pytest.mark.slow
def test_what_was_collected_is_served_from_there(product: Product) -> None:
    folder = product.instance / "static"
    mount = f"mount --bind '{folder}' '{folder}' && mount -o remount,bind,ro '{folder}'"
    done = with_static(product, mount, "shell", "--no-imports", "-c", _PAGE)
    assert done.stdout.strip().splitlines()[-1:] == ["200"], done.stderr
