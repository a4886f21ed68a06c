"""Forms of images keep what was typed: refused beside a field, and after a session that ended."""

import io
from collections.abc import Callable

import numpy as np
import pytest
import tifffile
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from tests.webapp.roles import Page
from tests.webapp.typed_forms import check_outlives_a_session, check_refused
from webapp.accounts.models import User
from webapp.segmentation.models import ImageSet, PredictionBatch, Segmenter
from webapp.segmentation.services.image_sets import image_set_create
from webapp.segmentation.services.uploads import image_file_add

ClientOf = Callable[[User], Client]
LEARN = {
    "restraint": "10", "max_side": "300", "max_seconds": "60", "holdout_percent": "15",
    "solver": "auto",
}  # fmt: skip


def test_a_new_image_set(bob: User, client_of: ClientOf) -> None:
    url, typed = reverse("segmentation:image-set-new"), {"name": "Leaves", "foreground": "leaf"}
    long = typed | {"foreground": "l" * 41}
    page = client_of(bob).post(url, long)
    check_refused(page, long, field="foreground", error="at most 40 characters")
    client = check_outlives_a_session(client_of, bob, url, typed)
    assert not ImageSet.objects.exists()
    assert client.post(url, typed).status_code == 302
    assert ImageSet.objects.get().foreground == "leaf"


def test_a_new_prediction(
    bob: User, client_of: ClientOf, image_set: ImageSet, segmenter: Segmenter
) -> None:
    url = reverse("segmentation:prediction-new")
    typed = {"image_set": str(image_set.pk), "segmenter": str(segmenter.pk), "readout": "map"}
    half = {"image_set": str(image_set.pk), "segmenter": ""}
    page = client_of(bob).post(url, half)
    check_refused(page, half, field="segmenter", error="This field is required.")
    client = check_outlives_a_session(client_of, bob, url, typed)
    assert not PredictionBatch.objects.exists()
    assert client.post(url, typed).status_code == 302
    assert PredictionBatch.objects.get().readout == "map"


def test_a_new_model(bob: User, client_of: ClientOf, image_set: ImageSet) -> None:
    url = reverse("segmentation:segmenter-new")
    typed = {"name": "Leaf model", "image_sets": [str(image_set.pk)], **LEARN}
    wrong = typed | {"holdout_percent": "80"}
    page = client_of(bob).post(url, wrong)
    check_refused(page, wrong, field="holdout_percent", error="less than or equal to 50")
    none = {"name": "Leaf model", **LEARN}
    page = client_of(bob).post(url, none)
    check_refused(page, none, field="image_sets", error="Choose at least one set.")
    client = check_outlives_a_session(client_of, bob, url, typed)
    assert not Segmenter.objects.exists()
    assert client.post(url, typed).status_code == 302
    assert Segmenter.objects.get().name == "Leaf model"


def test_an_imported_model(bob: User, client_of: ClientOf) -> None:
    url = reverse("segmentation:segmenter-import")
    typed = {"name": "Theirs", "foreground": "cell", "digest": "a" * 64}
    page = client_of(bob).post(url, typed)
    check_refused(page, typed, field="file", error="This field is required.")
    file = SimpleUploadedFile("model.npz", b"no model")
    page = client_of(bob).post(url, {**typed, "digest": "", "file": file})
    check_refused(page, typed | {"digest": ""}, field="file", error="model")
    check_outlives_a_session(client_of, bob, url, typed)
    assert not Segmenter.objects.exists()


@pytest.fixture
def plate(bob: User) -> ImageSet:
    """A deep picture, whose display can be chosen."""
    image_set = image_set_create(user=bob, name="Plate", foreground="cell")
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, np.linspace(200, 3200, 2400).reshape(40, 60).astype(np.uint16))
    image_file_add(user=bob, image_set=image_set, name="a.tif", chunks=[buffer.getvalue()])
    image_set.refresh_from_db()
    return image_set


def test_the_display_of_a_set(bob: User, client_of: ClientOf, plate: ImageSet) -> None:
    url = f"/image-sets/{plate.pk}/display/"
    typed = {"low": "5", "high": "40", "channel_0": "green", "pixel_size": "0.5"}
    wrong = typed | {"low": "60"}
    page = client_of(bob).post(url, wrong)
    check_refused(page, wrong, field="high", error="above the percentile of black")
    client = check_outlives_a_session(client_of, bob, url, typed)
    assert ImageSet.objects.get(pk=plate.pk).view == plate.view
    assert client.post(url, typed).status_code == 302
    plate.refresh_from_db()
    assert plate.view["percentiles"] == [5.0, 40.0]


def test_refused_acts_of_objects_and_strokes_are_one_sentence(
    bob: User, client_of: ClientOf, discs: PredictionBatch
) -> None:
    client, before = client_of(bob), discs.object_options
    url = reverse("segmentation:prediction-objects-measure", args=[discs.pk])
    splits = "Choose splits from -1 to 1 and a smallest object of at least 1 pixel."
    for sent in ({}, {"splits": "2", "min_pixels": "5"}, {"splits": "0", "min_pixels": "0"}):
        page = Page(client.post(url, sent, follow=True))
        assert page.says(f"{splits} Nothing was changed.")
    discs.refresh_from_db()
    assert discs.object_options == before
    paint = reverse("segmentation:paint-learn", args=[discs.image_set_id])
    for sent, why in (
        ({"max_seconds": "61"}, "Choose how long it may learn."),
        ({}, "two classes"),
    ):
        page = Page(client.post(paint, sent, follow=True))
        assert page.says(why)
        assert page.says("Nothing was started.")
    assert Segmenter.objects.count() == 1
