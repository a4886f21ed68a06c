"""What leaves by a download is on record; what a page shows is not."""

import pytest
from django.http import HttpResponse

from webapp.audit.models import AuditLine
from webapp.files.file_headers import as_attachment
from webapp.segmentation.models import PredictedImage
from webapp.segmentation.views.predicted_images import FILES


@pytest.fixture
def row(batch):
    return batch.images.select_related("batch", "file").get(name="leaf_0.jpg")


@pytest.mark.parametrize("kind", FILES)
def test_files_of_a_predicted_image(client_of, alice, row, kind) -> None:
    answer = client_of(alice).get(f"/predictions/{row.batch_id}/{row.pk}/{kind}")
    assert answer.status_code == 200
    lines = AuditLine.objects.filter(verb="exported", username="alice")
    if "attachment" in answer.get("Content-Disposition", ""):
        line = lines.get()
        assert (line.target_id, line.details) == (str(row.pk), {"file": kind})
    else:
        assert not lines.exists()


def test_an_image_that_waits_leaves_no_line(client_of, alice, row) -> None:
    PredictedImage.objects.filter(pk=row.pk).update(state=PredictedImage.State.WAITING)
    answer = client_of(alice).get(f"/predictions/{row.batch_id}/{row.pk}/mask.png")
    assert answer.status_code == 404
    assert not AuditLine.objects.filter(verb="exported").exists()


def test_a_model_file(client_of, alice, segmenter) -> None:
    client_of(alice).get(f"/image-models/{segmenter.pk}/model.npz")
    line = AuditLine.objects.get(verb="exported")
    assert (line.username, line.target_id) == ("alice", str(segmenter.pk))
    assert line.details == {"format": "NPZ"}


def test_an_uploaded_image(client_of, alice, image_set, image) -> None:
    client = client_of(alice)
    url = f"/image-sets/{image_set.pk}/files/{image.pk}/"
    client.get(url)
    assert not AuditLine.objects.filter(verb="exported").exists()
    answer = client.get(f"{url}?download")
    assert answer["Content-Disposition"].startswith("attachment")
    line = AuditLine.objects.get(verb="exported")
    assert (line.target_id, line.details) == (str(image.pk), {"image_set": image_set.name})


def test_without_a_byte_of_the_file_there_is_no_line(client_of, alice, segmenter) -> None:
    client, url = client_of(alice), f"/image-models/{segmenter.pk}/model.npz"
    tag = {"If-None-Match": f'"{segmenter.pk}"'}
    assert client.get(url, headers=tag).status_code == 304
    assert client.get(url, headers={"Range": "bytes=9999999-"}).status_code == 416
    assert not AuditLine.objects.filter(verb="exported").exists()


def test_whoever_leaves_out_the_first_byte_leaves_a_line(client_of, alice, segmenter) -> None:
    size = segmenter.path.stat().st_size
    url = f"/image-models/{segmenter.pk}/model.npz"
    assert client_of(alice).get(url, headers={"Range": "bytes=1-"}).status_code == 206
    line = AuditLine.objects.get(verb="exported")
    assert line.details == {"format": "NPZ", "range": f"bytes 1-{size - 1}/{size}"}


def test_an_overlay_keeps_the_name_of_its_image(client_of, alice, row) -> None:
    PredictedImage.objects.filter(pk=row.pk).update(name="Bäume.jpg")
    answer = client_of(alice).get(f"/predictions/{row.batch_id}/{row.pk}/overlay.png")
    assert answer["Content-Disposition"].endswith("''B%C3%A4ume.overlay.png")


def test_what_is_made_for_one_request_is_not_kept() -> None:
    answer = as_attachment(HttpResponse(b"a,b"), "numbers.csv")
    assert answer["Cache-Control"] == "private, no-store"
    assert answer["Content-Disposition"] == 'attachment; filename="numbers.csv"'
