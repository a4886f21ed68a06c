"""Models go from one installation to another; what is no model is refused."""

import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image

from engine import load_segmentation_model
from engine.cli.main import main
from tests.webapp.roles import Page
from webapp.segmentation.model_origin import Checked, Origin, origin_write
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
    page = Page(client.get(imported.get_absolute_url()))
    assert page.says("Imported from leaf.npz")
    assert page.said_of("SHA-256 of the file") == digest
    assert client.get(f"/predictions/new/?model={imported.pk}").status_code == 200


DIGEST = "a" * 64
CHECKED = {
    "n_images": 4,
    "error": {"mean": 0.031, "low": 0.02, "high": 0.04, "n_images": 4},
    "iou": {"mean": 0.912, "low": 0.9, "high": 0.93, "n_images": 4},
}


def with_part(content: bytes, tmp_path: Path, part: np.ndarray | Origin) -> bytes:
    """The model with an origin, or with something else in its place."""
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    if isinstance(part, Origin):
        origin_write(path, part)
    else:
        kept = io.BytesIO()
        np.save(kept, part, allow_pickle=part.dtype == object)
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("origin.npy", kept.getvalue())
    return path.read_bytes()


def test_an_imported_model_keeps_what_it_learned_from_and_how_good_it_was(
    client_of, mallory, exported, tmp_path, image
) -> None:
    origin = Origin(
        image_sets=["Leaves of spring"],
        learned_digests=[image.digest, DIGEST],
        checked=Checked.model_validate(CHECKED),
    )
    content = with_part(exported, tmp_path, origin)
    client = client_of(mallory)
    assert client.post(URL, form(content)).status_code == 302
    imported = Segmenter.objects.get(organisation=mallory.organisation)
    assert imported.learned_digests == [image.digest, DIGEST]
    page = Page(client.get(imported.get_absolute_url()))
    assert page.said_of("Mean overlap (IoU)") == "0.912"
    assert page.said_of("Pixels right") == "96.9 %"
    assert page.has("term", "Leaves of spring")
    assert load_segmentation_model(imported.path) is not None


@pytest.mark.parametrize(
    ("outcome", "imported", "method"),
    [
        ({"loss": "trees"}, "afar.npz", "Trees alone chosen where it was learned"),
        ({"loss": "network"}, "afar.npz", "Network alone chosen where it was learned"),
        (
            {"loss": "trees", "errors": {"trees alone": 0.1, "univariate": 0.2}},
            *("", "Trees alone edges were not clearly better"),
        ),
        (
            {"loss": "trees", "errors": {"trees alone": 0.1, "network alone": 0.2}},
            *("", "Trees alone"),
        ),
        ({"loss": "trees"}, "", "Trees alone"),
        # Of masks, the time ended before any edges were compared.
        ({"loss": "trees", "errors": {"trees": 0.1, "network alone": 0.2}}, "", "Trees alone"),
        (
            {"loss": "network", "errors": {"trees": 0.2, "network alone": 0.1}},
            *("", "Network alone trees made more mistakes"),
        ),
        ({"loss": "mean"}, "afar.npz", "Mean of trees and network chosen where it was learned"),
        (
            {"loss": "mean", "errors": {"trees": 0.2, "network alone": 0.1, "likelihood": 0.1}},
            *(
                "",
                "Mean of trees and network trees alone, network alone and edges were not clearly",
            ),
        ),
        ({"loss": "network", "errors": {}}, "", "Network alone"),
        (
            {"loss": "network", "errors": {"trees alone": 0.2, "network alone": 0.1}},
            *("", "Network alone trees made more mistakes"),
        ),
    ],
)
def test_a_page_says_of_a_method_only_what_was_measured(
    client_of, bob, segmenter, outcome, imported, method
) -> None:
    segmenter.outcome, segmenter.imported_from = {"converged": True, **outcome}, imported
    segmenter.save()
    page = Page(client_of(bob).get(segmenter.get_absolute_url()))
    said = " ".join(page.one("region", "Result").text.split())
    assert method in said
    assert ("mistakes" in said) == ("mistakes" in method)
    assert ("not clearly" in said) == ("not clearly" in method)
    assert not page.says("made fewer mistakes")


@pytest.mark.parametrize(
    "part",
    [
        np.array("not JSON"),
        np.array('{"learned_digests": ["../../etc/passwd"]}'),
        np.array('{"checked": {"n_images": 3, "iou": {"mean": "<script>"}}}'),
        np.array('{"checked": {"n_images": -3}}'),
        np.arange(3),
        np.array(["a", "b"]),
    ],
)
def test_an_origin_that_is_not_valid_is_none(client_of, bob, exported, tmp_path, part) -> None:
    content = with_part(exported, tmp_path, part)
    assert client_of(bob).post(URL, form(content)).status_code == 302
    imported = Segmenter.objects.exclude(imported_from="").get()
    assert imported.learned_digests == []
    assert imported.outcome["checked"] == {}
    assert client_of(bob).get(imported.get_absolute_url()).status_code == 200


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
    assert "Nothing was imported." in Page(answer, status=422).field("Model file (NPZ)").description
    assert Segmenter.objects.count() == 1


@pytest.mark.parametrize("name", ["npz_4.npz", "npz_10.npz"])
def test_a_model_file_whose_bytes_are_damaged_is_named_so(
    client_of, bob, name, tmp_path, capsys
) -> None:
    """The import page answered with 500, the command line with a traceback."""
    content = (STRANGERS / name).read_bytes()
    answer = client_of(bob).post(URL, form(content))
    assert answer.status_code == 422
    file = Page(answer, status=422).field("Model file (NPZ)")
    assert "not a whole model file" in file.description
    assert not Segmenter.objects.exists()
    picture = tmp_path / "a.png"
    Image.new("RGB", (9, 9)).save(picture)
    words = ["segment", "predict", "--model", STRANGERS / name, "--images", tmp_path]
    assert main([*map(str, words), "--out", str(tmp_path / "out")]) == 2
    assert "not a whole model file" in capsys.readouterr().err


def test_another_file_than_the_one_that_was_meant_is_refused(client_of, bob, exported) -> None:
    answer = client_of(bob).post(URL, form(exported, digest="0" * 64))
    assert answer.status_code == 422
    assert "This is another file" in Page(answer, status=422).field("Model file (NPZ)").description
    assert client_of(bob).post(URL, form(exported, digest="12")).status_code == 422


def test_viewers_import_nothing(client_of, alice) -> None:
    assert client_of(alice).post(URL, form(b"x")).status_code == 403
    assert client_of(alice).get(URL).status_code == 403


def test_a_page_of_an_imported_model_states_no_settings_that_it_does_not_know(
    client_of, bob, segmenter
) -> None:
    segmenter.imported_from, segmenter.learned_digests = "afar.npz", []
    segmenter.save()
    page = Page(client_of(bob).get(segmenter.get_absolute_url()))
    unknown = ("Images learned from", "Images held out", "Detail", "Restraint (lambda)")
    assert not [word for word in unknown if page.has("term", word)]
    segmenter.learned_digests = ["a" * 64]
    segmenter.save()
    page = Page(client_of(bob).get(segmenter.get_absolute_url()))
    assert page.said_of("Images learned from") == "1"
    assert not page.has("term", "Detail")
