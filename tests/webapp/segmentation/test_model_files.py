"""Models go from one installation to another; what is no model is refused."""

import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image

from engine.cli.main import main
from webapp.segmentation.models import Segmenter

STRANGERS = Path(__file__).parents[2] / "datasets/strangers/arrays"

URL = "/image-models/import/"


def form(content: bytes, **fields: str) -> dict:
    file = SimpleUploadedFile("leaf.npz", content)
    return {"file": file, "name": "Leaf, from afar", "foreground": "leaf", "digest": "", **fields}


@pytest.fixture
def exported(client_of, bob, segmenter) -> bytes:
    return client_of(bob).get(f"{segmenter.get_absolute_url()}model.npz").getvalue()


def test_another_organisation_takes_a_model_and_predicts(client_of, mallory, exported) -> None:
    client = client_of(mallory)
    digest = hashlib.sha256(exported).hexdigest()
    answer = client.post(URL, form(exported, digest=digest.upper()))
    assert answer.status_code == 302
    imported = Segmenter.objects.get(organisation=mallory.organisation)
    assert imported.is_ready
    assert imported.path.read_bytes() == exported
    page = client.get(imported.get_absolute_url()).content.decode()
    assert "Imported from leaf.npz" in page
    assert digest in page
    assert client.get(f"/predictions/new/?model={imported.pk}").status_code == 200


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, format=np.array([{"a": 1}], dtype=object))
    return buffer.getvalue()


def changed(content: bytes) -> bytes:
    """The same archive with one array of another length."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            kept = io.BytesIO()
            np.save(kept, np.zeros(3))
            new.writestr(name, kept.getvalue() if name == "theta.npy" else old.read(name))
    return buffer.getvalue()


@pytest.mark.parametrize("damage", ["text", "empty zip", "cut off", "pickled", "changed"])
def test_what_is_no_model_is_refused_in_words(client_of, bob, exported, segmenter, damage) -> None:
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()
    content = {
        "text": b"not a model",
        "empty zip": empty.getvalue(),
        "cut off": exported[: len(exported) // 2],
        "pickled": pickled(),
        "changed": changed(exported),
    }[damage]
    answer = client_of(bob).post(URL, form(content))
    assert answer.status_code == 422
    assert "Nothing was imported." in answer.content.decode()
    assert Segmenter.objects.count() == 1


@pytest.mark.parametrize("name", ["npz_4.npz", "npz_10.npz"])
def test_a_model_file_whose_bytes_are_damaged_is_named_so(
    client_of, bob, name, tmp_path, capsys
) -> None:
    """The import page answered with 500, the command line with a traceback."""
    content = (STRANGERS / name).read_bytes()
    answer = client_of(bob).post(URL, form(content))
    assert answer.status_code == 422
    assert "not a whole model file" in answer.content.decode()
    assert not Segmenter.objects.exists()
    picture = tmp_path / "a.png"
    Image.new("RGB", (9, 9)).save(picture)
    words = ["segment", "predict", "--model", STRANGERS / name, "--images", tmp_path]
    assert main([*map(str, words), "--out", str(tmp_path / "out")]) == 2
    assert "not a whole model file" in capsys.readouterr().err


def test_another_file_than_the_one_that_was_meant_is_refused(client_of, bob, exported) -> None:
    answer = client_of(bob).post(URL, form(exported, digest="0" * 64))
    assert answer.status_code == 422
    assert "This is another file" in answer.content.decode()
    assert client_of(bob).post(URL, form(exported, digest="12")).status_code == 422


def test_viewers_import_nothing(client_of, alice) -> None:
    assert client_of(alice).post(URL, form(b"x")).status_code == 403
    assert client_of(alice).get(URL).status_code == 403
