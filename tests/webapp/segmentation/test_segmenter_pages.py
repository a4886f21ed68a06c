"""What the page of a model offers when learning has not come to its end."""

import pytest

from tests.webapp.roles import Page
from webapp.jobs.models import Job, JobState
from webapp.segmentation.models import Segmenter
from webapp.segmentation.services.segmenters import LearningChoices, segmenter_learn


def test_learning_again_starts_from_all_the_sets(client_of, bob, make_set) -> None:
    """Only the first was chosen, so that the second try learned from less."""
    sets = [make_set(bob, name=name) for name in ("First", "Second")]
    model = segmenter_learn(user=bob, name="Both", image_sets=sets, choices=LearningChoices())
    Job.objects.filter(pk=model.job_id).update(state=JobState.CANCELLED)
    client = client_of(bob)
    page = Page(client.get(model.get_absolute_url()))
    form = Page(client.get(page.one("link", "Learn again").address))
    boxes = form.every("checkbox", "images with masks")
    assert [box.is_checked for box in boxes] == [True, True]


def test_a_model_that_failed_waits_for_no_picture(client_of, bob, make_set) -> None:
    image_set = make_set(bob, images=4, masks=4)
    model = segmenter_learn(
        user=bob, name="Four", image_sets=[image_set], choices=LearningChoices()
    )
    client = client_of(bob)
    page = Page(client.get(model.get_absolute_url()))
    assert page.section("On images held out").says("After the first steps")
    Job.objects.filter(pk=model.job_id).update(state=JobState.FAILED)
    page = Page(client.get(model.get_absolute_url()))
    assert not page.says("After the first steps")
    assert not page.says("its final prediction")


@pytest.mark.parametrize("status", ["time limit", "converged"])
def test_why_a_class_was_not_judged_is_said(client_of, bob, make_set, status) -> None:
    """Where time was short the page said that it was painted in one place only, which was wrong."""
    row = {"iou": None, "found": None, "right": None, "pixels": 0}
    model = Segmenter.objects.create(
        organisation=bob.organisation,
        name="Painted",
        foreground="cell",
        solver=Segmenter.Solver.PAINTED,
        classes=[{"value": 1, "name": "Cell", "colour": "#ff0000"}],
        outcome={
            "status": status, "loss": "univariate", "converged": status != "time limit",
            "is_certified": False, "seconds": 300.0, "checked": {"n_images": 1, "classes": [row]},
        },
    )  # fmt: skip
    page = Page(client_of(bob).get(model.get_absolute_url()))
    is_short = status == "time limit"
    assert page.says("There was no time to judge Cell: the limit of 5 min came first.") == is_short
    assert page.says("over the painted pixels that there was time to judge") == is_short
    assert page.says("painted in one place only") != is_short
    assert page.said_of("Weights by") == "Univariate loss"
