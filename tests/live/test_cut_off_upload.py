"""An upload that breaks off half-way, on the real web server."""

import json
import socket
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.live.product import Product

_PREPARE = """
import json
from webapp.accounts.models import User
from webapp.api.services import token_create
from webapp.segmentation.services.image_sets import image_set_create
bob = User.objects.get(username="bob")
image_set = image_set_create(user=bob, name="Cut off", foreground="leaf")
_, secret = token_create(user=bob, name="live", may_change=True, days=1)
print(json.dumps(dict(key=str(image_set.pk), secret=secret)))
"""


def multipart(name: str, content: bytes) -> bytes:
    return (
        b'--cut\r\nContent-Disposition: form-data; name="file"; filename="'
        + name.encode()
        + b'"\r\nContent-Type: application/octet-stream\r\n\r\n'
        + content
        + b"\r\n--cut--\r\n"
    )


def send(product: Product, prepared: dict[str, str], body: bytes, share: float) -> bytes:
    """Promise the whole body, send a share of it, hang up, and return what came back."""
    head = (
        f"POST /api/v1/image-sets/{prepared['key']}/files HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{product.port}\r\n"
        f"Authorization: Bearer {prepared['secret']}\r\n"
        "Content-Type: multipart/form-data; boundary=cut\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", product.port), timeout=60) as connection:
        connection.sendall(head.encode() + body[: int(len(body) * share)])
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    return answer


def stored(product: Product) -> list[Path]:
    folder = product.instance / "media"
    found = [path for path in folder.rglob("*") if path.is_file() and "files" in path.parts]
    return sorted(found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["picture.png", "pictures.zip"])
def test_nothing_half_stored_stays_behind(product: Product, tmp_path: Path, kind: str) -> None:
    prepared = json.loads(product.run(_PREPARE).splitlines()[-1])
    pixels = np.random.default_rng(0).integers(0, 255, (900, 1200, 3), dtype=np.uint8)
    picture = tmp_path / "picture.png"
    Image.fromarray(pixels).save(picture)
    if kind.endswith("zip"):
        with zipfile.ZipFile(tmp_path / kind, "w") as archive:
            archive.write(picture, "picture.png")
    body = multipart(kind, (tmp_path / kind).read_bytes())
    before = stored(product)
    answer = send(product, prepared, body, 0.6)
    time.sleep(0.5)
    assert b" 200 " not in answer.split(b"\r\n")[0] or b'"refused"' in answer
    assert stored(product) == before
    key = prepared["key"].replace("-", "")
    rows = product.rows("select * from segmentation_imagefile where image_set_id = ?", key)
    assert rows == []
    whole = send(product, prepared, body, 1.0)
    assert b'"added"' in whole
