"""The viewer's page, its files, and corrections."""

import errno
import gzip
import io
import json
from unittest.mock import Mock

import numpy as np
import pytest
from django.utils import timezone
from PIL import Image

from tests.webapp.factories.images import encoded, upload
from tests.webapp.roles import Page
from tests.webapp.segmentation.test_uploads import files_in, release_after_inspection
from webapp.accounts.models import Organisation
from webapp.files.quota import stored_bytes
from webapp.segmentation import rendering
from webapp.segmentation.models import ImageFile, PredictedImage
from webapp.segmentation.rendering import read_mask_png
from webapp.segmentation.services import corrections
from webapp.segmentation.services.corrections import enlarged, mask_correct
from webapp.segmentation.views import predicted_images


@pytest.fixture
def row(batch):
    return batch.images.select_related("batch", "file").get(name="leaf_0.jpg")


def body(response) -> bytes:
    return b"".join(response.streaming_content) if response.streaming else response.content


def painted(mask: np.ndarray) -> bytes:
    return encoded(np.stack([mask.astype(np.uint8) * 255] * 3, axis=2), "PNG")


def correct(client, row, content: bytes):
    return client.post(
        f"/predictions/{row.batch_id}/{row.pk}/correct/", {"mask": upload("mask.png", content)}
    )


def test_the_page_shows_layers_and_numbers(client_of, alice, row) -> None:
    page = Page(client_of(alice).get(row.get_absolute_url()))
    for words in ("Mask outline", "Probability of leaf", "Entropy", "Errors", "Known mask"):
        assert page.says(words)
    assert f"{row.iou:.3f}" in page.said_of("Overlap (IoU)")
    assert not page.has("button", "Correct the mask")


def test_one_image_is_not_called_images(client_of, alice, batch, row) -> None:
    """The download read "All 1 images"."""
    address = row.get_absolute_url()
    count = batch.images.count()
    assert Page(client_of(alice).get(address)).has("link", f"All {count} images (ZIP)")
    batch.images.exclude(pk=row.pk).delete()
    page = Page(client_of(alice).get(address))
    assert page.has("link", "All of this image (ZIP)")
    assert "1 images" not in page.source


def test_without_a_mask_errors_are_switched_off(client_of, bob, batch) -> None:
    row = batch.images.get(name="leaf_2.jpg")
    page = Page(client_of(bob).get(row.get_absolute_url()))
    assert page.has("button", "needs a known mask")
    assert page.has("button", "Correct the mask")


def test_neighbours_follow_the_order(client_of, alice, batch) -> None:
    rows = sorted(batch.images.exclude(iou=None), key=lambda one: one.iou)
    page = Page(client_of(alice).get(f"{rows[0].get_absolute_url()}?order=worst"))
    assert page.has("link", "Next image")
    assert not page.has("link", "Previous image")
    assert page.says("Image 1 of 3")


def test_links_to_neighbours_keep_the_order(client_of, alice, batch) -> None:
    """They led on in the usual order, whatever the list had been sorted by."""
    row = batch.images.get(name="leaf_1.jpg")
    page = Page(client_of(alice).get(f"{row.get_absolute_url()}?order=name"))
    for name, direction in (("leaf_0.jpg", "Previous image"), ("leaf_2.jpg", "Next image")):
        neighbour = batch.images.get(name=name)
        wanted = f"{neighbour.get_absolute_url()}?order=name"
        assert page.one("link", direction).address == wanted
        picture = page.one("navigation", "Images of this prediction").one("img", name)
        assert picture.element.getparent().get("href") == wanted


def test_an_image_that_waits_says_so_and_has_no_place(client_of, alice, batch) -> None:
    batch.images.filter(name="leaf_1.jpg").update(state=PredictedImage.State.WAITING)
    row = batch.images.get(name="leaf_1.jpg")
    page = Page(client_of(alice).get(row.get_absolute_url()))
    assert page.says("This image is not predicted yet.")
    assert page.says("Not predicted yet by “Leaf model”.")
    assert "Image 1 of" not in page.source
    assert not page.has("link", "Next image")


@pytest.mark.parametrize(
    ("kind", "media_type", "attached"),
    [
        ("mask.png", "image/png", True),
        ("marginals.npy", "application/octet-stream", True),
        ("overlay.png", "image/png", True),
        ("layers.bin", "application/octet-stream", False),
        ("thumbnail.jpg", "image/jpeg", False),
        ("preview.jpg", "image/jpeg", False),
        ("view.jpg", "image/jpeg", False),
    ],
)
def test_files_have_their_type_and_are_never_sniffed(
    client_of, alice, row, kind, media_type, attached
) -> None:
    answer = client_of(alice).get(f"/predictions/{row.batch_id}/{row.pk}/{kind}")
    assert answer.status_code == 200
    assert answer["Content-Type"] == media_type
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert ("attachment" in answer.get("Content-Disposition", "")) == attached
    assert body(answer)


def test_the_mask_is_two_valued_and_of_the_image_s_size(client_of, alice, row) -> None:
    content = body(client_of(alice).get(f"/predictions/{row.batch_id}/{row.pk}/mask.png"))
    mask = np.asarray(Image.open(io.BytesIO(content)))
    assert mask.shape == (24, 36)
    assert set(np.unique(mask)) <= {0, 255}
    assert (mask > 0).mean() == pytest.approx(row.foreground_share)


def test_layers_come_packed(client_of, alice, row) -> None:
    answer = client_of(alice).get(f"/predictions/{row.batch_id}/{row.pk}/layers.bin")
    assert answer["Content-Encoding"] == "gzip"
    raw = gzip.decompress(body(answer))
    assert len(raw) == 20 + 3 * 24 * 36


def test_unknown_files_are_not_found(client_of, alice, row) -> None:
    url = f"/predictions/{row.batch_id}/{row.pk}/"
    for kind in ("secret.txt", "..%2f..%2fdb.sqlite3", "layers"):
        assert client_of(alice).get(url + kind).status_code == 404


def test_an_image_that_waits_has_no_files_yet(client_of, alice, row) -> None:
    row.state = "waiting"
    row.save()
    url = f"/predictions/{row.batch_id}/{row.pk}/"
    assert client_of(alice).get(url + "mask.png").status_code == 404
    assert client_of(alice).get(url + "thumbnail.jpg").status_code == 200


# -- Corrections -----------------------------------------------------------------------------------


def test_a_correction_becomes_the_mask_and_keeps_the_old_one(client_of, bob, row) -> None:
    drawn = read_mask_png(row.mask_path)
    drawn[:5] = ~drawn[:5]
    answer = correct(client_of(bob), row, painted(drawn))
    assert answer.status_code == 201
    file = ImageFile.objects.get(name="leaf_0.corrected-1.mask.png")
    assert (file.origin, file.mask_of) == ("corrected", row.file)
    assert np.array_equal(read_mask_png(file.store.path(file.digest)), drawn)
    old = ImageFile.objects.get(name="leaf_0.mask.png")
    assert (old.mask_of, old.version_of) == (None, row.file)  # kept and named, not to be paired
    assert old.store.path(old.digest).exists()


def test_the_next_correction_gets_the_next_name(client_of, bob, row) -> None:
    drawn = read_mask_png(row.mask_path)
    for k in range(2):
        drawn[k] = ~drawn[k]
        assert correct(client_of(bob), row, painted(drawn)).status_code == 201
    masks = ImageFile.objects.filter(origin="corrected")
    assert {mask.name for mask in masks} == {
        "leaf_0.corrected-1.mask.png",
        "leaf_0.corrected-2.mask.png",
    }
    assert masks.filter(mask_of__isnull=False).get().name == "leaf_0.corrected-2.mask.png"


def test_corrected_masks_are_learned_from(bob, row) -> None:
    from webapp.segmentation.selectors.image_sets import masked_images

    drawn = ~read_mask_png(row.mask_path)
    mask_correct(user=bob, row=row, painted=painted(drawn))
    used = {file.name: file.mask.name for file in masked_images([row.batch.image_set])}
    assert used["leaf_0.jpg"] == "leaf_0.corrected-1.mask.png"


def test_a_reduced_correction_changes_only_what_was_painted(bob, row, monkeypatch) -> None:
    """A large image is painted at a fraction of its size; elsewhere borders stay sharp."""
    monkeypatch.setattr(rendering, "MAX_VIEW_PIXELS", 24 * 36 // 4)
    full = np.random.default_rng(1).random((24, 36)) < 0.5
    row.mask_path.write_bytes(rendering.mask_png(full))
    shown = rendering.reduced(full, 2)
    drawn = shown.copy()
    drawn[:3, :4] = ~drawn[:3, :4]
    file = mask_correct(user=bob, row=row, painted=painted(drawn))
    result = read_mask_png(file.store.path(file.digest))
    assert np.array_equal(result[6:], full[6:])
    assert np.array_equal(result[:6, :8], enlarged(drawn[:3, :4], 2))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not a png", "not a picture"),
        (painted(np.ones((3, 3), dtype=bool)), "another size"),
    ],
)
def test_a_bad_correction_is_refused_in_words(client_of, bob, row, content, words) -> None:
    answer = correct(client_of(bob), row, content)
    assert answer.status_code == 422
    assert words in json.loads(answer.content)["sentence"]
    assert not ImageFile.objects.filter(origin="corrected").exists()


def test_a_correction_without_a_file_is_refused(client_of, bob, row) -> None:
    answer = client_of(bob).post(f"/predictions/{row.batch_id}/{row.pk}/correct/")
    assert answer.status_code == 400


def test_a_correction_beyond_the_limit_is_refused(client_of, bob, row, monkeypatch) -> None:
    assert predicted_images.MAX_PAINTED_BYTES == 32 * 1024**2
    content = painted(np.ones((row.file.height, row.file.width), dtype=bool))
    monkeypatch.setattr(predicted_images, "MAX_PAINTED_BYTES", len(content) - 1)
    assert correct(client_of(bob), row, content).status_code == 400
    assert not ImageFile.objects.filter(origin="corrected").exists()
    monkeypatch.setattr(predicted_images, "MAX_PAINTED_BYTES", len(content))
    assert correct(client_of(bob), row, content).status_code == 201


def test_a_full_disk_saves_no_half_correction(client_of, bob, row, monkeypatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    drawn = ~read_mask_png(row.mask_path)
    monkeypatch.setattr("engine.core.whole_file.os.fsync", full)
    answer = correct(client_of(bob), row, painted(drawn))
    assert answer.status_code == 507
    assert not ImageFile.objects.filter(origin="corrected").exists()
    assert ImageFile.objects.get(name="leaf_0.mask.png").mask_of == row.file


def test_without_room_no_correction_is_saved(client_of, bob, row, settings) -> None:
    settings.ORGANISATION_QUOTA_GB = 0
    before = stored_bytes(bob.organisation)
    answer = correct(client_of(bob), row, painted(~read_mask_png(row.mask_path)))
    assert answer.status_code == 422
    assert "your organisation would take" in json.loads(answer.content)["sentence"]
    assert not ImageFile.objects.filter(origin="corrected").exists()
    after = stored_bytes(bob.organisation)
    assert after == before  # the painted file is gone again


def test_a_correction_whose_bytes_were_just_released_is_asked_for_again(
    client_of, bob, row, monkeypatch
) -> None:
    release_after_inspection(monkeypatch, corrections, bob.organisation_id)
    answer = correct(client_of(bob), row, painted(~read_mask_png(row.mask_path)))
    assert answer.status_code == 422
    assert "Send it again" in json.loads(answer.content)["sentence"]
    assert not ImageFile.objects.filter(origin="corrected").exists()


def test_a_disk_that_fills_at_the_thumbnail_leaves_no_mask(
    client_of, bob, row, media_root, monkeypatch
) -> None:
    before = files_in(media_root)
    monkeypatch.setattr(
        "engine.core.whole_file.os.fsync",
        Mock(side_effect=[None, OSError(errno.ENOSPC, "No space left on device")]),
    )
    answer = correct(client_of(bob), row, painted(~read_mask_png(row.mask_path)))
    assert answer.status_code == 507
    assert files_in(media_root) == before


def test_a_correction_counts_with_its_thumbnail(bob, row) -> None:
    before = stored_bytes(bob.organisation)
    Organisation.objects.update(stored_bytes=before, stored_at=timezone.now())
    mask_correct(user=bob, row=row, painted=painted(~read_mask_png(row.mask_path)))
    bob.organisation.refresh_from_db()
    assert bob.organisation.stored_bytes == stored_bytes(bob.organisation)


def test_viewers_may_not_correct(client_of, alice, row) -> None:
    assert correct(client_of(alice), row, b"x").status_code == 403
