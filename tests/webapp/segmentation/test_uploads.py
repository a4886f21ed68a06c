"""Every kind of file that people send, good and bad."""

import errno
import io
import json
from pathlib import Path

import numpy as np
import pytest
import tifffile
from PIL import Image

from tests.webapp.factories.images import block_mask, encoded, picture, upload, zipped
from tests.webapp.roles import Page
from webapp.audit.models import AuditLine
from webapp.files.contents import FileStore
from webapp.segmentation.inspection import FileFacts, inspect_file
from webapp.segmentation.models import ImageFile
from webapp.segmentation.services import removals, uploads
from webapp.segmentation.services.image_sets import contents_release, mask_pair
from webapp.segmentation.services.uploads import UploadChoices, upload_take

HEIC = Path(__file__).resolve().parents[2] / "datasets/data"


def take(bob, image_set, name: str, content: bytes, **options):
    return list(
        upload_take(user=bob, image_set=image_set, uploaded=upload(name, content), **options)
    )


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def truncated(content: bytes) -> bytes:
    return content[: len(content) * 2 // 3]


def huge_png() -> bytes:
    """The head of a PNG that claims 20,000 x 20,000 pixels."""
    content = bytearray(encoded(picture(), "PNG"))
    content[16:24] = (20_000).to_bytes(4, "big") * 2
    import zlib

    content[29:33] = zlib.crc32(bytes(content[12:29])).to_bytes(4, "big")
    return bytes(content)


BAD_FILES = {
    "notes.txt": (b"hello", "not a picture"),
    "empty.png": (b"", "empty"),
    "cut.jpg": (truncated(encoded(picture(size=(200, 200)), quality=95)), "cut off"),
    "cut.png": (truncated(encoded(picture(size=(200, 200)), "PNG")), "cut off"),
    "page.png": (b"<html><script>alert(1)</script></html>", "a web page"),
    "drawing.svg": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "drawing of lines"),
    "plan.pdf": (b"%PDF-1.7\n", "this is a PDF"),
    "huge.png": (huge_png(), "too large"),
    "script.eps": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "this is PostScript"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_gets_one_sentence_and_leaves_nothing(bob, image_set, media_root, name) -> None:
    content, reason = BAD_FILES[name]
    before = files_in(media_root)
    (result,) = take(bob, image_set, name, content)
    assert result.outcome == "refused"
    assert reason in result.sentence
    assert name in result.sentence
    assert "\n" not in result.sentence
    assert files_in(media_root) == before
    assert not image_set.files.filter(name=name).exists()


def with_orientation(pixels: np.ndarray) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6  # turn right
    return encoded(pixels, exif=exif)


def animated() -> bytes:
    frames = [Image.fromarray(picture(k)) for k in range(3)]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    return buffer.getvalue()


GOOD_FILES = {
    "cmyk.jpg": (lambda: _saved(Image.fromarray(picture()).convert("CMYK"), "JPEG"), (36, 24)),
    "grey16.png": (
        lambda: _saved(Image.fromarray(picture()[:, :, 0].astype(np.uint16) * 257), "PNG"),
        (36, 24),
    ),
    "palette.png": (lambda: _saved(Image.fromarray(picture()).quantize(16), "PNG"), (36, 24)),
    "alpha.png": (lambda: _saved(Image.fromarray(picture()).convert("RGBA"), "PNG"), (36, 24)),
    "turned.jpg": (lambda: with_orientation(picture()), (24, 36)),
    "animated.gif": (animated, (36, 24)),
    "one_pixel.png": (lambda: encoded(picture(size=(1, 1)), "PNG"), (1, 1)),
    "renamed.png": (lambda: encoded(picture()), (36, 24)),
    "web.webp": (lambda: encoded(picture(), "WEBP"), (36, 24)),
    "scan.tif": (lambda: encoded(picture(), "TIFF"), (36, 24)),
    "phone.heic": ((HEIC / "turned.heic").read_bytes, (48, 64)),
}


def _saved(image: Image.Image, kind: str) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


@pytest.mark.parametrize("name", GOOD_FILES)
def test_an_unusual_file_is_taken_upright(bob, image_set, name) -> None:
    make, size = GOOD_FILES[name]
    (result,) = take(bob, image_set, name, make())
    assert result.outcome == "added", result.sentence
    file = image_set.files.get(name=name)
    assert (file.width, file.height) == size
    assert file.store.path(file.digest).exists()


def test_the_type_is_told_from_the_content(bob, image_set) -> None:
    take(bob, image_set, "renamed.png", encoded(picture()))
    assert image_set.files.get(name="renamed.png").media_type == "image/jpeg"


def test_every_refusal_names_its_file(bob, image_set) -> None:
    stream = io.BytesIO()
    tifffile.imwrite(stream, np.full((24, 36), np.nan, dtype=np.float32))
    (result,) = take(bob, image_set, "nan.tif", stream.getvalue())
    assert result.sentence == "nan.tif: holds no finite number."


def deep(values: np.ndarray) -> bytes:
    stream = io.BytesIO()
    tifffile.imwrite(stream, values)
    return stream.getvalue()


def test_a_deep_picture_that_its_set_shows_black_says_so(bob, image_set) -> None:
    """Floats of 0 to 1 after counts of a camera were black without a word."""
    counts = picture()[:, :, 0].astype(np.uint16) * 16
    (first,) = take(bob, image_set, "counts.tif", deep(counts))
    assert first.sentence == "36 × 24 pixels"
    (second,) = take(bob, image_set, "share.tif", deep(counts.astype(np.float32) / 4095))
    assert second.sentence.startswith("36 × 24 pixels. All black in this set’s range of values")
    (plain,) = take(bob, image_set, "plain.tif", deep(np.zeros_like(counts)))
    assert plain.sentence == "36 × 24 pixels"


def test_a_mask_of_small_numbers_is_seen(bob, image_set) -> None:
    """The picture of a map of four objects was black."""
    numbers = np.zeros((24, 36), dtype=np.uint16)
    numbers[2:8, 2:8], numbers[12:20, 20:30] = 1, 2
    take(bob, image_set, "leaf_0.cp_masks.tif", deep(numbers))
    file = image_set.files.get(name="leaf_0.cp_masks.tif")
    derived = FileStore(image_set.organisation_id, "derived")
    small = Image.open(derived.path(file.digest, ".thumb.jpg"))
    assert np.asarray(small.convert("L")).max() > 200


def test_why_a_mask_cannot_be_used_is_said(bob, image_set) -> None:
    """All reasons were one sentence about black and white."""
    take(bob, image_set, "a.jpg", encoded(picture()))
    grey = np.tile(np.linspace(0, 255, 36).astype(np.uint8), (24, 1))
    take(bob, image_set, "a_mask.png", encoded(grey, "PNG"))
    problem = image_set.files.get(name="a_mask.png").problem
    assert problem.startswith("This does not look like a mask, since")


def test_what_systems_leave_in_folders_is_passed_over(bob, image_set) -> None:
    files = {"a/new.png": encoded(picture(9), "PNG"), "a/Thumbs.db": b"x", "desktop.ini": b"x"}
    results = take(bob, image_set, "all.zip", zipped(files))
    assert [result.name for result in results] == ["new.png"]


def test_json_in_a_folder_of_annotations_keeps_its_name(bob, image_set) -> None:
    """It was called instances_default.mask.json in the list."""
    (result,) = take(bob, image_set, "all.zip", zipped({"annotations/x.json": b"{}"}))
    assert result.name == "x.json"


def test_a_zip_brings_its_pictures_and_names_the_bad_ones(bob, image_set) -> None:
    content = zipped(
        {
            "photos/new.jpg": encoded(picture(9)),
            "photos/new.mask.png": encoded(block_mask(), "PNG"),
            "notes.txt": b"hello",
            "../evil.png": encoded(picture(8)),
        }
    )
    results = {result.name: result for result in take(bob, image_set, "all.zip", content)}
    assert results["new.jpg"].outcome == "added"
    assert results["new.mask.png"].outcome == "added"
    assert "not a picture" in results["notes.txt"].sentence
    assert "points outside" in results["evil.png"].sentence
    assert image_set.files.get(name="new.mask.png").mask_of.name == "new.jpg"
    assert not image_set.files.filter(name__contains="evil").exists()


def test_the_same_file_again_changes_nothing(bob, image_set, image) -> None:
    (result,) = take(bob, image_set, image.name, encoded(picture(0)))
    assert result.outcome == "same"
    assert image_set.files.get(name=image.name).pk == image.pk


def test_another_file_of_the_same_name_replaces(bob, image_set, image, media_root) -> None:
    (result,) = take(bob, image_set, image.name, encoded(picture(77)))
    assert result.outcome == "replaced"
    image.refresh_from_db()
    assert not image.store.path("0" * 64).exists()
    digests = set(image_set.files.values_list("digest", flat=True))
    stored = {p.name for p in files_in(media_root / f"organisation-{bob.organisation_id}")}
    assert {name for name in stored if "." not in name} == digests


def test_a_replacement_of_another_size_loses_the_mask_in_words(bob, image_set, image) -> None:
    take(bob, image_set, image.name, encoded(picture(1, size=(50, 50))))
    mask = image_set.files.get(name="leaf_0.mask.png")
    assert mask.mask_of is None
    assert "36 × 24" in mask.problem


def test_a_replacement_of_another_size_ends_a_pair_made_by_hand(bob, image_set, image) -> None:
    """It used to stay paired without a word, and every learning failed on it."""
    mask = image_set.files.get(name="leaf_0.mask.png")
    mask_pair(user=bob, mask=mask, image=image)
    take(bob, image_set, image.name, encoded(picture(1, size=(50, 50))))
    mask.refresh_from_db()
    assert (mask.mask_of, mask.fixed) == (None, False)
    assert mask.problem == "The mask is 36 × 24 pixels, but leaf_0.jpg is 50 × 50."
    take(bob, image_set, image.name, encoded(picture(0)))
    mask.refresh_from_db()
    assert (mask.mask_of, mask.problem) == (image, "")


def test_as_name_replaces_under_the_old_name(bob, image_set, image) -> None:
    (result,) = take(
        bob, image_set, "other.jpg", encoded(picture(5)), choices=UploadChoices(as_name=image.name)
    )
    assert (result.name, result.outcome) == (image.name, "replaced")


def test_a_mask_before_its_image_pairs_when_the_image_comes(bob, image_set) -> None:
    take(bob, image_set, "late.png", encoded(block_mask(), "PNG"))
    assert image_set.files.get(name="late.png").role == ImageFile.Role.IMAGE
    take(bob, image_set, "late.jpg", encoded(picture(3)))
    mask = image_set.files.get(name="late.png")
    assert (mask.role, mask.mask_of.name) == ("mask", "late.jpg")


def test_a_full_disk_says_so_and_stores_nothing(bob, image_set, media_root, monkeypatch) -> None:
    before = files_in(media_root)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("engine.core.whole_file.os.fsync", full)
    (result,) = take(bob, image_set, "new.jpg", encoded(picture(5)))
    assert result.sentence == "The server's disk is full. Nothing of this file was saved."
    assert files_in(media_root) == before
    assert not image_set.files.filter(name="new.jpg").exists()


def test_a_disk_that_fills_at_the_thumbnail_leaves_no_original(
    bob, image_set, media_root, monkeypatch
) -> None:
    import os

    before = files_in(media_root)
    calls = []
    real = os.fsync

    def full_at_the_second(handle: int) -> None:
        calls.append(handle)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr("engine.core.whole_file.os.fsync", full_at_the_second)
    (result,) = take(bob, image_set, "new.jpg", encoded(picture(5)))
    assert "disk is full" in result.sentence
    assert files_in(media_root) == before


def test_a_full_disk_stops_a_zip_but_keeps_what_is_whole(bob, image_set, monkeypatch) -> None:
    import os

    real, calls = os.fsync, []

    def full_at_the_third(handle: int) -> None:
        calls.append(handle)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr("engine.core.whole_file.os.fsync", full_at_the_third)
    content = zipped({f"n{k}.jpg": encoded(picture(20 + k)) for k in range(4)})
    first, second, rest = take(bob, image_set, "all.zip", content)
    assert (first.outcome, second.outcome) == ("added", "refused")
    assert (rest.name, rest.sentence) == ("all.zip", "2 more of its files were not tried.")


def test_a_zip_ends_where_the_organisation_has_no_room_left(bob, image_set, settings) -> None:
    settings.ORGANISATION_QUOTA_GB = 0
    content = zipped({f"n{k}.jpg": encoded(picture(20 + k)) for k in range(4)})
    first, rest = take(bob, image_set, "all.zip", content)
    assert "your organisation would take" in first.sentence
    assert (rest.name, rest.sentence) == ("all.zip", "3 more of its files were not tried.")


def test_many_files_end_where_there_is_no_room_left(
    client_of, bob, image_set, settings, monkeypatch
) -> None:
    """A thousand files used to be read, decoded and walked over to be refused one by one."""
    settings.ORGANISATION_QUOTA_GB = 0
    tried = []
    monkeypatch.setattr(
        uploads,
        "inspect_file",
        lambda path, name, *rest: tried.append(name) or inspect_file(path, name, *rest),
    )
    files = [upload(f"n{k}.jpg", encoded(picture(20 + k))) for k in range(4)]
    first, *others = lines(post(client_of(bob), image_set, *files))
    assert tried == ["n0.jpg"]
    assert "Remove images" in first["sentence"]
    assert [line["name"] for line in others] == ["n1.jpg", "n2.jpg", "n3.jpg"]
    assert {line["sentence"] for line in others} == {uploads.NOT_TRIED}


def test_bytes_that_another_upload_needs_by_now_are_not_released(
    bob, image_set, monkeypatch
) -> None:
    """A refused upload used to take the bytes of an accepted one of the same content with it."""
    content = FileStore(image_set.organisation_id).put([encoded(picture(5))])

    def other_commits_meanwhile(organisation_id: int) -> None:
        image_set.files.filter(name="leaf_0.jpg").update(digest=content.digest)

    monkeypatch.setattr(removals, "lock_organisation", other_commits_meanwhile)
    contents_release(organisation_id=image_set.organisation_id, digests=[content.digest])
    assert FileStore(image_set.organisation_id).path(content.digest).exists()


def release_after_inspection(monkeypatch, module, organisation_id: int) -> None:
    """Act as if another upload of the same content were refused at that moment."""

    def inspect_and_release(path: Path, name: str, *rest: object) -> FileFacts:
        facts = inspect_file(path, name, *rest)
        contents_release(organisation_id=organisation_id, digests=[path.name])
        return facts

    monkeypatch.setattr(module, "inspect_file", inspect_and_release)


def test_a_file_whose_bytes_were_just_released_is_asked_for_again(
    bob, image_set, media_root, monkeypatch
) -> None:
    before = files_in(media_root)
    release_after_inspection(monkeypatch, uploads, image_set.organisation_id)
    (result,) = take(bob, image_set, "new.jpg", encoded(picture(5)))
    assert result.sentence == "The same file was being removed. Send it again."
    assert not image_set.files.filter(name="new.jpg").exists()
    assert files_in(media_root) == before


def test_a_zip_that_is_refused_whole_is_named_as_it_was_sent(bob, image_set) -> None:
    (cut,) = take(bob, image_set, "scans.zip", zipped({"a.png": encoded(picture())})[:200])
    (empty,) = take(bob, image_set, "nothing.zip", zipped({}))
    assert (cut.name, empty.name) == ("scans.zip", "nothing.zip")


# -- The endpoint ------------------------------------------------------------------------------


def post(client, image_set, *files, **data):
    return client.post(
        f"/image-sets/{image_set.pk}/files/",
        {"file": list(files), **data},
        headers={"accept": "application/x-ndjson"},
    )


def lines(response) -> list[dict]:
    return [json.loads(line) for line in b"".join(response.streaming_content).splitlines()]


def test_it_answers_a_line_per_file(client_of, bob, image_set) -> None:
    answer = post(client_of(bob), image_set, upload("n.jpg", encoded(picture(4))))
    (line,) = lines(answer)
    assert line["outcome"] == "added"
    assert client_of(bob).get(line["thumbnail"]).status_code == 200


def test_an_upload_that_was_cut_off_stores_nothing(client_of, bob, image_set) -> None:
    content = encoded(picture(4))
    answer = post(
        client_of(bob), image_set, upload("n.jpg", content[:-200]), bytes=str(len(content))
    )
    assert answer.status_code == 400
    assert json.loads(answer.content)["sentence"].startswith("The upload stopped before its end")
    assert not image_set.files.filter(name="n.jpg").exists()


def test_a_full_disk_while_the_upload_comes_in_is_explained(
    client_of, bob, image_set, monkeypatch
) -> None:
    """Large uploads go to a temporary file first: it may be that one that does not fit."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(
        "django.core.files.uploadhandler.TemporaryFileUploadHandler.receive_data_chunk", full
    )
    monkeypatch.setattr(
        "django.core.files.uploadhandler.MemoryFileUploadHandler.handle_raw_input",
        lambda self, *_: setattr(self, "activated", False),
    )
    answer = post(client_of(bob), image_set, upload("n.jpg", encoded(picture(4))))
    assert answer.status_code == 507
    assert "disk is full" in json.loads(answer.content)["sentence"]
    assert not image_set.files.filter(name="n.jpg").exists()


def test_without_javascript_it_goes_back_to_the_set(client_of, bob, image_set) -> None:
    answer = client_of(bob).post(
        f"/image-sets/{image_set.pk}/files/",
        {"file": [upload("n.jpg", encoded(picture(4))), upload("notes.txt", b"hello")]},
        follow=True,
    )
    assert Page(answer).one("status").says("1 of 2 files saved.")
    assert Page(answer).one("alert").says("notes.txt")


def test_it_needs_a_csrf_token(bob, image_set) -> None:
    from django.test import Client

    client = Client(enforce_csrf_checks=True)
    client.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
    answer = post(client, image_set, upload("n.jpg", encoded(picture(4))))
    assert answer.status_code == 403


def test_viewers_may_not_upload(client_of, alice, image_set) -> None:
    assert post(client_of(alice), image_set, upload("n.jpg", b"x")).status_code == 403


def test_other_organisations_find_no_such_set(client_of, mallory, image_set) -> None:
    assert post(client_of(mallory), image_set, upload("n.jpg", b"x")).status_code == 404


def test_visitors_are_sent_to_sign_in(client, image_set) -> None:
    assert post(client, image_set, upload("n.jpg", b"x")).status_code == 302


def test_it_leaves_an_audit_line(bob, image_set) -> None:
    take(bob, image_set, "n.jpg", encoded(picture(4)))
    line = AuditLine.objects.filter(verb="uploaded to").latest("pk")
    assert line.user == bob
    assert line.details["files"] == 1


def test_a_set_takes_no_file_beyond_its_limit(bob, image_set, image, monkeypatch) -> None:
    assert uploads.MAX_FILES == 250_000
    monkeypatch.setattr(uploads, "MAX_FILES", image_set.files.count())
    before = set(image_set.files.values_list("name", flat=True))
    (result,) = take(bob, image_set, "one-more.png", encoded(picture(5)))
    assert result.outcome == "refused"
    assert "files. Start another set." in result.sentence
    assert set(image_set.files.values_list("name", flat=True)) == before
