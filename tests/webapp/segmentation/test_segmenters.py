"""Learning: choices, the split, the job, the pages."""

from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from engine import Progress, StoppedError, load_segmentation_model
from engine.learning.segmentation import clock, mask_weights, tree_learning
from engine.learning.segmentation.detail_choice import DetailChoice
from engine.learning.segmentation.mask_learning import SOLVERS
from engine.learning.segmentation.mask_progress import SegmentationPreview, SegmentationProgress
from engine.learning.segmentation.model import Detail
from engine.learning.segmentation.tree_options import TreeOptions
from tests.webapp.factories.images import block_mask, encoded, make_segmenter
from tests.webapp.roles import Page
from webapp.common import formats
from webapp.common.formats import duration
from webapp.files.contents import FileStore
from webapp.jobs.context import JobContext
from webapp.jobs.models import Job, JobState, JobTracePoint
from webapp.jobs.runner import run_job
from webapp.segmentation import detail, spread_learning
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.learning_reports import LearningWatcher
from webapp.segmentation.models import HeldOutPoint, ImageFile, Segmenter
from webapp.segmentation.reading_time import ReadingTime
from webapp.segmentation.selectors.predictions import batch_numbers, batch_of
from webapp.segmentation.selectors.segmenters import segmenter_badge
from webapp.segmentation.services.predictions import prediction_start
from webapp.segmentation.services.segmenters import (
    LearningChoices,
    segmenter_delete,
    segmenter_learn,
    split_images,
)
from webapp.segmentation.templatetags.segmentation import gap as gap_in_words

QUICK = LearningChoices(
    solver="theta", max_side=40, max_seconds=200, relative_gap=0.5, holdout_percent=30
)


def learn(user, image_set, **options) -> Segmenter:
    choices = options.pop("choices", QUICK)
    return segmenter_learn(
        user=user, name="Leaf model", image_sets=[image_set], choices=choices, **options
    )


def files(count: int) -> list[ImageFile]:
    return [ImageFile(name=str(k), digest=f"{k:064x}") for k in range(count)]


def test_the_split_holds_out_the_share_and_loses_nobody() -> None:
    everything = files(20)
    learned, held_out = split_images(everything, percent=20, seed=1)
    assert (len(learned), len(held_out)) == (16, 4)
    assert sorted(learned + held_out, key=lambda f: int(f.name)) == everything


def test_the_split_is_the_same_for_the_same_seed() -> None:
    first = [file.name for file in split_images(files(30), percent=30, seed=7)[1]]
    assert first == [file.name for file in split_images(files(30), percent=30, seed=7)[1]]
    assert first != [file.name for file in split_images(files(30), percent=30, seed=8)[1]]


@pytest.mark.parametrize(("count", "percent"), [(3, 20), (20, 0), (1, 50)])
def test_too_few_images_are_all_learned_from(count: int, percent: int) -> None:
    learned, held_out = split_images(files(count), percent=percent, seed=1)
    assert (len(learned), len(held_out)) == (count, 0)


def test_at_most_half_is_held_out() -> None:
    assert len(split_images(files(5), percent=90, seed=1)[1]) == 2


def test_it_queues_a_job_with_the_very_files(
    bob, image_set, sent_job_ids, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        segmenter = learn(bob, image_set)
    job = segmenter.job
    assert sent_job_ids == [str(job.pk)]
    assert job.state == JobState.QUEUED
    assert len(job.parameters["learned"]) == 2
    assert len(segmenter.learned_digests) == 2


def test_a_copy_in_another_set_is_not_learned_from_twice(bob, make_set) -> None:
    first, second = make_set(bob, name="A"), make_set(bob, name="B")
    segmenter = segmenter_learn(user=bob, name="Both", image_sets=[first, second], choices=QUICK)
    assert len(segmenter.learned_digests) == 2


def test_without_masks_there_is_nothing_to_learn(bob, make_set) -> None:
    with pytest.raises(SegmentationError, match="None of these images has a mask"):
        learn(bob, make_set(bob, masks=0))
    assert not Job.objects.exists()


@pytest.mark.slow
def test_the_job_learns_and_the_model_predicts(bob, make_set) -> None:
    segmenter = learn(bob, make_set(bob, images=5, masks=5))
    run_job(segmenter.job_id, watched=False)
    segmenter.refresh_from_db()
    segmenter.job.refresh_from_db()
    assert segmenter.job.state == JobState.SUCCEEDED, segmenter.job.error
    assert segmenter.is_ready
    assert segmenter.outcome["n_learned"] == 3
    assert segmenter.outcome["n_held_out"] == 2
    assert segmenter.outcome["relative_gap"] <= 0.5
    assert load_segmentation_model(segmenter.path).max_side == 40
    points = list(segmenter.held_out.all())
    assert points
    assert all(0 <= point.error <= 1 for point in points)
    assert segmenter.preview_path(0).read_bytes().startswith(b"\x89PNG")
    assert segmenter.preview_path(1).exists()


def test_trees_are_the_default_and_say_that_a_marginal_loss_has_no_certificate(
    client_of, bob, make_set, monkeypatch
) -> None:
    small = TreeOptions(n_trees=5, n_leaves=4, rate=0.3)
    monkeypatch.setattr(tree_learning, "FIRST", small)
    monkeypatch.setattr(tree_learning, "SECOND", small)
    monkeypatch.setattr(mask_weights, "COMPARED", ("univariate",))
    choices = LearningChoices(max_side=24, max_seconds=5_000, holdout_percent=30)
    segmenter = learn(bob, make_set(bob, images=5, masks=5), choices=choices)
    run_job(segmenter.job_id, watched=False)
    segmenter.refresh_from_db()
    assert segmenter.outcome["loss"] == "univariate"
    assert segmenter.outcome["relative_gap"] is None
    assert not segmenter.outcome["is_certified"]
    assert "best fit" not in segmenter.outcome["sentence"]
    assert load_segmentation_model(segmenter.path).unaries is not None
    assert segmenter.held_out.count() == 1
    page = Page(client_of(bob).get(segmenter.get_absolute_url()))
    certificate = page.section("Certificate")
    assert certificate.says("the distance of its weights from the best is not known")
    assert not page.says("From the best fit")
    assert segmenter_badge(segmenter)["text"] == "Learned"
    assert gap_in_words(893.77) == "no useful bound yet"
    _check_that_both_pages_agree(client_of(bob), bob, segmenter, page)


def test_a_job_out_of_time_still_gives_a_model_that_says_so(
    client_of, bob, make_set, monkeypatch
) -> None:
    """On a clock on which half a second passes whenever it is asked, as after every tree."""
    now = [clock.wall_seconds()]

    def tick() -> float:
        now[0] += 0.5
        return now[0]

    small = TreeOptions(n_trees=40, n_leaves=4, rate=0.3)
    monkeypatch.setattr(tree_learning, "FIRST", small)
    monkeypatch.setattr(tree_learning, "SECOND", small)
    monkeypatch.setattr(mask_weights, "COMPARED", ("trees",))
    monkeypatch.setattr(clock, "wall_seconds", tick)
    choices = LearningChoices(max_side=24, max_seconds=60, holdout_percent=0)
    segmenter = learn(bob, make_set(bob, images=5, masks=5), choices=choices)
    run_job(segmenter.job_id, watched=False)
    segmenter.refresh_from_db()
    assert segmenter.job.state == JobState.SUCCEEDED, segmenter.job.error
    assert segmenter.outcome["status"] == "time limit"
    assert segmenter.outcome["sentence"].startswith("Stopped early, from 5 images")
    assert segmenter_badge(segmenter)["text"] == "Stopped early"
    page = Page(client_of(bob).get(segmenter.get_absolute_url()))
    assert page.says("Stopped early")
    model = load_segmentation_model(segmenter.path)
    assert model.unaries is not None
    assert max(len(forest.starts) for forest in model.unaries.second) < small.n_trees
    batch = prediction_start(
        user=bob, segmenter=segmenter, image_set=segmenter.image_sets.get(), readout="marginal"
    )
    run_job(batch.job_id, watched=False)
    assert batch_numbers(batch_of(bob, batch.pk)).n_images == 5


def _check_that_both_pages_agree(client, bob, segmenter, page: Page) -> None:
    """What the model's page says of images held out is what a prediction of them measures."""
    batch = prediction_start(
        user=bob, segmenter=segmenter, image_set=segmenter.image_sets.get(), readout="marginal"
    )
    run_job(batch.job_id, watched=False)
    batch = batch_of(bob, batch.pk)
    numbers, checked = batch_numbers(batch), segmenter.outcome["checked"]
    assert numbers.n_images == checked["n_images"] == segmenter.outcome["n_held_out"]
    assert numbers.iou.mean == pytest.approx(checked["iou"]["mean"])
    assert 1 - numbers.accuracy.mean == pytest.approx(checked["error"]["mean"])
    assert segmenter.held_out_error == checked["error"]["mean"]
    prediction = Page(client.get(batch.get_absolute_url()))
    figures = (formats.number(numbers.iou.mean, 3), formats.per_cent(numbers.accuracy.mean, 1))
    for text in figures:
        assert page.says(text)
        assert prediction.one("region", "Numbers").says(text)
    assert page.says("2 images held out, at full size")


def test_the_detail_that_pays_is_chosen_and_noted(client_of, bob, make_set, monkeypatch) -> None:
    choice = DetailChoice(Detail(40), (Detail(20), Detail(40)), (0.3, 0.1))
    asked = []

    def choose(images, masks, n_classes, details, **options):
        read = [image.shape for image, _ in zip(images, masks, strict=True)]
        asked.append((read, n_classes, [one.max_side for one in details]))
        return choice

    monkeypatch.setattr(detail, "choose_detail", choose)
    monkeypatch.setattr(detail, "MOST_LINEAR_SIDE", 30)  # linear weights learn from whole pictures
    choices = LearningChoices(
        solver="theta", max_side=0, max_seconds=20, relative_gap=0.5, holdout_percent=0
    )
    segmenter = learn(bob, make_set(bob, images=3, masks=3), choices=choices)
    run_job(segmenter.job_id, watched=False)
    segmenter.refresh_from_db()
    assert asked == [([(24, 36, 3)] * 3, 2, [30])]
    assert load_segmentation_model(segmenter.path).max_side == segmenter.max_side == 40
    page = Page(client_of(bob).get(segmenter.get_absolute_url()))
    assert "40 pixels a side" in page.said_of("Detail")
    assert "30.0 % at 20, 10.0 % at 40" in page.said_of("Detail")


def test_time_left_is_told_from_the_first_image_on(bob, image_set, monkeypatch) -> None:
    segmenter = learn(bob, image_set)
    context = SimpleNamespace(seconds=2.0, on_progress=None)
    reports: list[Progress] = []
    context.on_progress = reports.append
    reading = ReadingTime(context, segmenter)
    for _ in range(2):
        reading.next(2)
    assert [one.sentence for one in reports] == ["Reading image 1 of 2", "Reading image 2 of 2"]
    # Of the limit 2 s are gone; the expected reading of the other image comes on top.
    assert reports[0].seconds_left == pytest.approx(QUICK.max_seconds - 1.9, abs=0.01)
    segmenter.solver, segmenter.max_side = Segmenter.Solver.AUTO, 200
    ReadingTime(context, segmenter).next(200)
    assert reports[-1].seconds_left > 30


def test_one_image_is_one_image(client_of, bob, make_set) -> None:
    make_set(bob, images=1, masks=1)
    page = Page(client_of(bob).get(reverse("segmentation:segmenter-new")))
    assert page.one("group", "Learn from").says("Leaves: 1 image with masks")
    assert "1 images" not in page.source


def test_painted_images_are_tried_from_what_was_seen_up_to_full_size() -> None:
    small, large = ImageFile(width=900, height=700), ImageFile(width=4000, height=3000)
    assert [one.scale for one in detail.scales_to_try([small])] == [1.0]
    scales = [one.scale for one in detail.scales_to_try([small, large])]
    assert scales == [0.25, 0.5, 1.0]


@pytest.mark.slow
def test_steps_of_all_stages_are_counted(client_of, bob, make_set) -> None:
    """14 images are rehearsed on 4; the engine's own count is that of the last stage alone."""
    choices = LearningChoices(
        solver="theta", max_side=40, max_seconds=20, relative_gap=0.01, holdout_percent=0
    )
    segmenter = learn(bob, make_set(bob, images=14, masks=14), choices=choices)
    run_job(segmenter.job_id, watched=False)
    segmenter.refresh_from_db()
    steps, last = segmenter.outcome["steps"], segmenter.outcome["iterations"]
    assert steps > last > 0
    assert last < segmenter.job.trace.last().iteration <= steps
    page = Page(client_of(bob).get(segmenter.get_absolute_url()))
    assert page.said_of("Steps") == f"{steps}, of them {last} on all images"


@pytest.mark.slow
def test_a_model_deleted_while_it_is_learned_leaves_no_weights(bob, image_set, monkeypatch) -> None:
    segmenter, train = learn(bob, image_set), spread_learning.train_segmentation
    job, path = segmenter.job, segmenter.path

    def train_then_delete(*arguments, **options):
        trained = train(*arguments, **options)
        segmenter_delete(user=bob, segmenter=segmenter)
        return trained

    monkeypatch.setattr(spread_learning, "train_segmentation", train_then_delete)
    monkeypatch.setattr(JobContext, "should_stop", lambda context: False)  # it ends by itself
    run_job(job.pk, watched=False)
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert job.sentence.endswith(" s. The model “Leaf model” was removed. Nothing was changed.")
    assert not path.exists()


@pytest.mark.slow
def test_one_bad_file_stops_no_learning(client_of, bob, make_set) -> None:
    """One damaged image or one mask that does not fit used to fail the whole job."""
    image_set = make_set(bob, images=6, masks=6)
    segmenter = learn(bob, image_set)
    learned, held_out = (
        [ImageFile.objects.get(pk=key) for key in segmenter.job.parameters[purpose]]
        for purpose in ("learned", "held_out")
    )
    learned[0].store.path(learned[0].digest).write_bytes(b"damaged on the disk")
    tiny = FileStore(bob.organisation_id).put([encoded(block_mask((8, 6)), "PNG")])
    ImageFile.objects.filter(pk=held_out[0].mask.pk).update(digest=tiny.digest)
    run_job(segmenter.job_id, watched=False)
    segmenter.refresh_from_db()
    assert segmenter.job.state == JobState.SUCCEEDED, segmenter.job.error
    assert segmenter.learned_digests == [file.digest for file in learned[1:]]
    assert segmenter.held_out_digests == [file.digest for file in held_out[1:]]
    left_out = segmenter.outcome["left_out"]
    assert [one["name"] for one in left_out] == [learned[0].name, held_out[0].name]
    assert f"Left out: {learned[0].name}: this is not a picture" in segmenter.job.sentence
    page = Page(client_of(bob).get(segmenter.get_absolute_url()))
    assert page.says("2 images could not be used and were left out.")
    assert page.says(f"{held_out[0].mask.name}: the mask is 8 x 6 pixels")


def test_when_no_image_can_be_used_the_first_is_named(bob, image_set) -> None:
    segmenter = learn(bob, image_set)
    for key in segmenter.job.parameters["learned"]:
        file = ImageFile.objects.get(pk=key)
        file.store.path(file.digest).unlink()
    run_job(segmenter.job_id, watched=False)
    job = Job.objects.get(pk=segmenter.job_id)
    assert job.state == JobState.FAILED
    assert "None of the images can be used. Left out: leaf_0.jpg: cannot be opened" in job.error
    assert "And 1 more." in job.error


@pytest.mark.slow
def test_masks_that_mark_nothing_fail_in_words(bob, make_set) -> None:
    from tests.webapp.factories.images import encoded
    from webapp.segmentation.services.image_sets import pairing_refresh
    from webapp.segmentation.services.uploads import image_file_add

    image_set = make_set(bob, images=1, masks=0)
    empty = encoded(np.zeros((24, 36), dtype=np.uint8), "PNG")
    image_file_add(user=bob, image_set=image_set, name="leaf_0.mask.png", chunks=[empty])
    pairing_refresh(image_set=image_set)
    segmenter = learn(bob, image_set)
    run_job(segmenter.job_id, watched=False)
    segmenter.job.refresh_from_db()
    assert segmenter.job.state == JobState.FAILED
    assert "nothing to learn" in segmenter.job.error
    segmenter.refresh_from_db()
    assert not segmenter.is_ready


class FakeContext:
    """Takes progress, and knows the time."""

    seconds = 1.5

    def __init__(self) -> None:
        self.reports: list[Progress] = []

    def on_progress(self, progress: Progress) -> None:
        self.reports.append(progress)


def test_previews_become_points_and_pictures(bob) -> None:
    segmenter = make_segmenter(bob)
    context = FakeContext()
    watcher = LearningWatcher(context, segmenter)
    marginals = (np.full((4, 6), 0.25), np.full((5, 3), 1.0))
    preview = SegmentationPreview(0.125, marginals)
    for _ in range(2):
        watcher(SegmentationProgress(sentence="Learning", iteration=3, preview=preview))
    watcher(Progress(sentence="Learning", iteration=4))
    assert len(context.reports) == 3
    point = HeldOutPoint.objects.get()
    assert (point.iteration, point.error, point.seconds) == (3, 0.125, 1.5)
    assert segmenter.preview_path(1).exists()


@pytest.mark.django_db(transaction=True)
def test_a_model_deleted_between_two_previews_stops_its_job(bob, monkeypatch) -> None:
    """The next point of its curve used to break a foreign key: "failed on our side"."""
    segmenter = make_segmenter(bob)
    watcher = LearningWatcher(FakeContext(), segmenter)
    preview = SegmentationPreview(0.125, (np.full((4, 6), 0.25),))
    watcher(SegmentationProgress(sentence="Learning", iteration=1, preview=preview))
    Segmenter.objects.get(pk=segmenter.pk).delete()
    segmenter.preview_path(0).unlink()
    with pytest.raises(StoppedError, match="model was removed meanwhile"):
        watcher(SegmentationProgress(sentence="Learning", iteration=2, preview=preview))
    monkeypatch.setattr(QuerySet, "exists", lambda rows: True)  # it is deleted in this very moment
    with pytest.raises(StoppedError, match="model was removed meanwhile"):
        watcher(SegmentationProgress(sentence="Learning", iteration=3, preview=preview))
    assert not segmenter.preview_path(0).exists()


def test_every_solver_of_the_engine_can_be_chosen_and_no_other() -> None:
    assert set(Segmenter.Solver.values) == {*SOLVERS, "certified", "painted", "network"}


# -- Pages ---------------------------------------------------------------------------------------


def test_the_form_starts_learning(client_of, bob, image_set) -> None:
    client = client_of(bob)
    page = Page(client.get(f"/image-models/new/?set={image_set.pk}"))
    assert page.one("group", "Learn from").says("Leaves: 2 images with masks")
    answer = client.post(
        "/image-models/new/",
        {
            "name": "Leaves",
            "image_sets": [str(image_set.pk)],
            "restraint": "1",
            "max_side": "200",
            "max_seconds": "60",
            "holdout_percent": "20",
            "solver": "auto",
        },
    )
    segmenter = Segmenter.objects.get()
    assert answer["Location"] == segmenter.get_absolute_url()
    assert client.get(answer["Location"]).status_code == 200


def test_the_plot_of_a_learning_model_shows_its_target(client_of, bob, image_set) -> None:
    segmenter = learn(bob, image_set, choices=LearningChoices(relative_gap=2e-3))
    JobTracePoint.objects.create(
        job=segmenter.job, iteration=1, seconds=1.0, objective=-1.0, lower_bound=-2.0,
        relative_gap=0.5,
    )  # fmt: skip
    page = Page(client_of(bob).get(segmenter.get_absolute_url()))
    assert page.section("Convergence").says("Certified at 0.2 % or below")


def test_a_set_of_another_organisation_cannot_be_chosen(
    client_of, bob, mallory, make_set, image_set
) -> None:
    foreign = make_set(mallory, name="Foreign")
    client = client_of(bob)
    assert client.get(f"/image-models/new/?set={foreign.pk}").status_code == 404
    answer = client.post(
        "/image-models/new/",
        {"name": "x", "image_sets": [str(foreign.pk)], "max_side": "200", "max_seconds": "60"},
    )
    assert answer.status_code == 422
    assert "Foreign" not in Page(answer, status=422).source
    assert not Segmenter.objects.exists()


def test_without_masks_the_page_says_where_to_go(client_of, bob, make_set) -> None:
    make_set(bob, masks=0)
    assert Page(client_of(bob).get("/image-models/new/")).says("No image has a mask yet")


def test_waiting_between_two_attempts_is_not_learning(client_of, alice, segmenter) -> None:
    """A night with the worker switched off used to be counted."""
    now = timezone.now()
    Job.objects.filter(pk=segmenter.job_id).update(
        started_at=now - timedelta(hours=9), finished_at=now
    )
    page = Page(client_of(alice).get(segmenter.get_absolute_url()))
    assert page.said_of("Learned in") == duration(2.0)


def test_a_certified_model_says_so(client_of, alice, segmenter) -> None:
    page = Page(client_of(alice).get(segmenter.get_absolute_url()))
    assert page.says("Certified: within 0.09 % of the best fit")
    assert Page(client_of(alice).get("/image-models/")).one("row", "Leaf model").says("Certified")


@pytest.mark.parametrize(
    ("outcome", "words"),
    [({"steps": 8}, "8"), ({"steps": 1234}, "1,234, of them 8 on all images"),
     ({}, None)],
)  # fmt: skip
def test_it_says_which_steps_it_counts(client_of, alice, segmenter, outcome, words) -> None:
    segmenter.outcome |= outcome
    segmenter.save()
    page = Page(client_of(alice).get(segmenter.get_absolute_url()))
    assert page.has("term", "Steps", exactly=True) == (words is not None)
    assert words is None or page.said_of("Steps") == words


def test_one_that_stopped_early_does_not_claim_a_certificate(client_of, alice, segmenter) -> None:
    segmenter.outcome |= {"converged": False, "relative_gap": 0.03}
    segmenter.save()
    page = Page(client_of(alice).get(segmenter.get_absolute_url()))
    assert page.says("Stopped early at 3 %")
    assert not page.says("Certified: within")


def test_the_live_part_asks_again_only_while_learning(client_of, bob, image_set) -> None:
    segmenter = learn(bob, image_set)
    url = f"/image-models/{segmenter.pk}/live/"
    client = client_of(bob)
    assert "every 2s" in Page(client.get(url)).source
    Job.objects.filter(pk=segmenter.job_id).update(state=JobState.CANCELLED)
    answer = client.get(url)
    assert "every 2s" not in Page(answer).source
    assert answer["HX-Refresh"] == "true"


def test_the_model_file_comes_as_a_download(client_of, alice, segmenter) -> None:
    answer = client_of(alice).get(f"/image-models/{segmenter.pk}/model.npz")
    assert answer["Content-Disposition"] == 'attachment; filename="Leaf model.npz"'
    assert b"".join(answer.streaming_content) == segmenter.path.read_bytes()


def test_deleting_takes_predictions_and_files_but_no_images(
    bob, segmenter, batch, image_set, media_root
) -> None:
    path = segmenter.path
    segmenter_delete(user=bob, segmenter=segmenter)
    assert not path.exists()
    assert image_set.files.count() == 5
    left = {p.parent.name for p in media_root.rglob("*") if p.is_file()}
    assert left.isdisjoint({"marginals", "masks", "layers", "previews", "segmenters"})


def test_deleting_wants_the_name_and_the_role(client_of, alice, bob, segmenter) -> None:
    url = f"/image-models/{segmenter.pk}/delete/"
    assert client_of(alice).post(url, {"confirm": segmenter.name}).status_code == 403
    client_of(bob).post(url, {"confirm": "leaf"})
    assert Segmenter.objects.exists()
    client_of(bob).post(url, {"confirm": segmenter.name})
    assert not Segmenter.objects.exists()
