"""A store of files that becomes read-only or goes away: 503 in words, jobs wait and go on."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.live.product import Product, new_product
from tests.live.test_parts_away import _WRITE
from tests.live.test_silent_broker import _TOKEN
from tests.live.visitor import Visitor
from tests.patience import wait_for

pytestmark = pytest.mark.slow

PICTURE = (Path(__file__).parents[1] / "datasets/data/plain.heic").read_bytes()


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The product with its files on a mount of their own, which each test breaks and mends."""
    folder = tmp_path_factory.mktemp("mounted")
    media = folder / "media"
    media.mkdir()
    mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(media)]
    if shutil.which("unshare") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no namespace in which a store may be mounted")
    product = new_product(
        folder / "instance",
        MEDIA_ROOT=str(media),
        DJANGO_SETTINGS_MODULE="tests.webapp.live_settings",
    )
    product.launcher = (
        "unshare", "-rm", "sh", "-c", f'mount -t tmpfs none {media} && exec "$@"', "sh",
    )  # fmt: skip
    product.start()
    try:
        yield product
    finally:
        product.stop()


def inside(product: Product, command: str) -> None:
    """Run a command where the product sees its store."""
    assert product.process is not None
    space = ["nsenter", "--target", str(product.process.pid), "--user", "--mount"]
    subprocess.run([*space, "--preserve-credentials", "sh", "-c", command], check=True)


@pytest.mark.parametrize(
    ("breaks", "mends"),
    [
        ("mount -o remount,ro {media}", "mount -o remount,rw {media}"),
        ("mount -t tmpfs none {media}", "umount {media}"),  # another folder lies there
    ],
    ids=["read-only", "absent"],
)
def test_a_store_that_fails_is_said_and_waited_for(
    mounted: Product, tmp_path: Path, breaks: str, mends: str
) -> None:
    media = mounted.environment["MEDIA_ROOT"]
    program = {"Authorization": f"Bearer {mounted.run(_TOKEN).splitlines()[-1]}"}
    sets = f"{mounted.url}/api/v1/image-sets"
    made = requests.post(
        sets, json={"name": tmp_path.name, "foreground": "leaf"}, headers=program, timeout=60
    )
    files = f"{sets}/{made.json()['id']}/files"

    def upload(name: str) -> requests.Response:
        return requests.post(files, files={"file": (name, PICTURE)}, headers=program, timeout=60)

    assert upload("before.heic").status_code == 200
    wait_for(lambda: requests.get(f"{mounted.url}/readyz", timeout=60).json()["store"] == "ok")
    visitor = Visitor(mounted)
    visitor.get("/jobs/")
    code = _WRITE.format(after=tmp_path / "write-now")
    mounted.run(code.replace('{"after"', '{"is_home": True, "after"'))
    running = "SELECT * FROM jobs_job WHERE state = 'running'"
    job = wait_for(lambda: mounted.rows(running), logs=mounted.logs)[0]["uuid"]

    inside(mounted, breaks.format(media=media))
    refused = upload("during.heic")
    assert refused.status_code == 503, refused.text
    assert "store of files does not answer" in refused.text
    assert int(refused.headers["Retry-After"]) > 0
    (tmp_path / "write-now").touch()
    own = "SELECT * FROM jobs_job WHERE uuid = ?"
    waiting = f"{own} AND sentence LIKE 'The store of files does not answer%'"
    wait_for(lambda: mounted.rows(waiting, job), logs=mounted.logs)
    for path in ("/", "/jobs/", "/image-sets/", "/healthz"):
        assert visitor.get(path).status_code == 200
    wait_for(
        lambda: requests.get(f"{mounted.url}/readyz", timeout=60).json()["store"] == "not ready"
    )

    inside(mounted, mends.format(media=media))
    over = f"{own} AND finished_at IS NOT NULL"
    (ended,) = wait_for(lambda: mounted.rows(over, job), logs=mounted.logs)
    assert ended["state"] == "succeeded", dict(ended)
    assert "written whole" in ended["result"]
    assert (ended["attempt"], ended["deaths"]) == (1, 0)
    assert upload("after.heic").status_code == 200
