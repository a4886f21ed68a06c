"""Pages and downloads of predictions: start, one batch, the list, two models compared."""

import csv
import io
import zipfile

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.webapp.factories.images import make_batch, make_segmenter
from tests.webapp.roles import Page
from webapp.audit.models import AuditLine
from webapp.jobs.models import Job, JobState
from webapp.segmentation.models import ImageFile, PredictedImage, PredictionBatch
from webapp.segmentation.selectors.predictions import batch_numbers, compare_batches
from webapp.segmentation.services.image_sets import image_file_remove
from webapp.segmentation.templatetags.segmentation import points
from webapp.segmentation.views import predictions as views


def test_the_form_starts_a_prediction(client_of, bob, segmenter, image_set) -> None:
    client = client_of(bob)
    assert Page(client.get(f"/predictions/new/?set={image_set.pk}")).has("option", "Leaf model")
    answer = client.post(
        "/predictions/new/",
        {"image_set": str(image_set.pk), "segmenter": str(segmenter.pk), "readout": "map"},
    )
    batch = PredictionBatch.objects.get()
    assert batch.readout == "map"
    assert answer["Location"] == batch.get_absolute_url()
    page = Page(client.get(answer["Location"]))
    assert page.section("Images").says("0 of 3 so far")


def test_nothing_of_another_organisation_can_be_predicted(
    client_of, bob, mallory, segmenter, image_set, make_set
) -> None:
    foreign_set, foreign_model = make_set(mallory), make_segmenter(mallory)
    client = client_of(bob)
    assert client.get(f"/predictions/new/?model={foreign_model.pk}").status_code == 404
    for chosen in (
        {"image_set": str(foreign_set.pk), "segmenter": str(segmenter.pk)},
        {"image_set": str(image_set.pk), "segmenter": str(foreign_model.pk)},
    ):
        assert client.post("/predictions/new/", chosen).status_code == 422
    assert not PredictionBatch.objects.exists()


@pytest.mark.parametrize("order", ["worst", "best", "entropy", "name", "nonsense"])
def test_the_page_sorts(client_of, alice, batch, order) -> None:
    page = Page(client_of(alice).get(f"{batch.get_absolute_url()}?order={order}"))
    names = [link.name for link in page.one("table", "Images of this prediction").every("link")]
    assert len(names) == 3
    if order == "best":
        best = max(batch.images.exclude(iou=None), key=lambda row: row.iou)
        assert names.index(best.name) < names.index("leaf_2.jpg")


def test_the_archive_holds_masks_probabilities_and_numbers(client_of, alice, batch) -> None:
    answer = client_of(alice).get(f"/predictions/{batch.pk}/archive.zip")
    content = b"".join(answer.streaming_content)
    assert answer["Content-Type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        marginals = np.load(io.BytesIO(archive.read("marginals/leaf_0.marginals.npy")))
    assert "masks/leaf_2.mask.png" in names
    assert "numbers.csv" in names
    assert len(names) == 15
    row = batch.images.get(name="leaf_0.jpg")
    assert np.array_equal(marginals, np.load(row.marginals_path))
    assert AuditLine.objects.filter(verb="exported", target_id=str(batch.pk)).exists()


def test_the_numbers_are_safe_in_a_spreadsheet(client_of, alice, batch) -> None:
    batch.images.filter(name="leaf_0.jpg").update(name='=HYPERLINK("http://evil")')
    answer = client_of(alice).get(f"/predictions/{batch.pk}/numbers.csv")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert len(rows) == 3
    assert not any(row["name"].startswith("=") for row in rows)
    assert float(next(row for row in rows if row["name"] == "leaf_1.jpg")["iou"]) >= 0


def test_two_models_are_compared_on_shared_images(client_of, alice, bob, batch, image_set) -> None:
    other = make_batch(bob, make_segmenter(bob, "Second", seed=4), image_set)
    comparison = compare_batches(batch, other)
    assert len(comparison.rows) == 2
    expected = np.mean([row["first"].iou - row["second"].iou for row in comparison.rows])
    assert comparison.difference["iou"].mean == pytest.approx(expected)
    client = client_of(alice)
    url = f"/predictions/{batch.pk}/compare/"
    assert Page(client.get(url)).has("option", "Second")
    page = Page(client.get(f"{url}?with={other.pk}"))
    assert page.has("columnheader", "Mean over 2 images")
    pictures = page.section("Image by image").every("img")
    assert [one.name.partition(" by ")[2] for one in pictures] == ["Leaf model", "Second"] * 2


def test_a_comparison_counts_only_what_neither_model_learned_from(
    client_of, bob, batch, image_set, image
) -> None:
    second = make_segmenter(bob, "Second", seed=4)
    second.learned_digests = [image.digest]
    second.save()
    other = make_batch(bob, second, image_set)
    comparison = compare_batches(batch, other)
    assert (len(comparison.rows), comparison.n_images) == (2, 1)
    (counted,) = [row for row in comparison.rows if not row["second"].learned_from]
    assert comparison.difference["iou"].mean == pytest.approx(counted["difference"])
    url = f"/predictions/{batch.pk}/compare/?with={other.pk}"
    page = Page(client_of(bob).get(url))
    assert page.has("columnheader", "Mean over 1 image", exactly=True)
    assert page.says("images that neither model learned from")
    batch.images.update(learned_from=True)
    assert compare_batches(batch, other).includes_learned


def test_a_foreign_batch_cannot_be_compared_with(client_of, bob, mallory, batch, make_set) -> None:
    foreign = make_batch(mallory, make_segmenter(mallory), make_set(mallory))
    url = f"/predictions/{batch.pk}/compare/"
    assert client_of(bob).get(f"{url}?with={foreign.pk}").status_code == 404
    assert str(foreign.pk) not in Page(client_of(bob).get(url)).source


def test_an_image_removed_from_its_set_can_still_be_looked_at(
    client_of, bob, batch, image_set, image
) -> None:
    image_file_remove(user=bob, file=image)
    row = batch.images.get(name="leaf_0.jpg")
    client = client_of(bob)
    assert client.get(f"/predictions/{batch.pk}/{row.pk}/view.jpg").status_code == 200
    page = Page(client.get(row.get_absolute_url()))
    assert not page.has("button", "Correct the mask")


def test_a_long_list_is_paged(client_of, alice, batch) -> None:
    rows = [
        PredictedImage(batch=batch, name=f"x{k:03d}.jpg", image_digest="0" * 64, width=1, height=1)
        for k in range(60)
    ]
    PredictedImage.objects.bulk_create(rows)
    page = Page(client_of(alice).get(f"{batch.get_absolute_url()}?order=name"))
    assert len(page.one("table", "Images of this prediction").every("link")) == 30
    assert page.one("navigation", "Pages").says("1–30 of 63")
    assert ImageFile.objects.count() == 5


def test_the_list_shows_progress_and_means_newest_first(
    client_of, alice, bob, batch, segmenter, make_set
) -> None:
    newer = make_batch(bob, segmenter, make_set(bob, name="Newer"))
    page = Page(client_of(alice).get("/predictions/"))
    assert page.text.index("Newer") < page.text.index("Leaves")
    assert page.one("row", "Leaves").cell("Predicted") == "3 of 3"
    mean = batch_numbers(newer).iou.mean
    assert page.one("row", "Newer").cell("Mean IoU") == f"{mean:.3f}"
    assert not page.says("learned from all")


def test_the_list_marks_a_mean_over_images_learned_from(
    client_of, alice, bob, segmenter, image_set
) -> None:
    segmenter.learned_digests = list(image_set.files.values_list("digest", flat=True))
    segmenter.save()
    mean = batch_numbers(make_batch(bob, segmenter, image_set)).iou.mean
    page = Page(client_of(alice).get("/predictions/"))
    assert page.one("row", "Leaves").cell("Mean IoU") == f"{mean:.3f}learned from all"


def test_what_is_asked_for_while_predicting_reads_no_numbers(
    client_of, alice, batch, monkeypatch
) -> None:
    """Every image's reliability and a chart were made every two seconds, and not shown."""
    Job.objects.filter(pk=batch.job_id).update(state=JobState.RUNNING)
    monkeypatch.setattr(views, "batch_numbers", None)
    client = client_of(alice)
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(f"/predictions/{batch.pk}/live/", headers={"HX-Request": "true"})
    fragment = Page(answer)
    assert fragment.says("3 of 3 so far")
    assert fragment.element.xpath("//*[starts-with(@hx-get, '/predictions/')]")
    assert not any('"reliability"' in query["sql"] for query in queries)


def test_a_difference_of_shares_is_in_points() -> None:
    assert [points(0.116), points(0.0101, 0), points(0.02, 0)] == [
        "11.6 points", "1 point", "2 points"
    ]  # fmt: skip
