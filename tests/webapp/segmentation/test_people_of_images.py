"""Pages for people who use images: home, search, removal of a set that jobs need, words."""

from tests.webapp.factories.images import make_batch, make_segmenter
from tests.webapp.roles import Page
from webapp.audit.services import audit
from webapp.jobs.models import Job, JobState
from webapp.segmentation.models import Segmenter
from webapp.segmentation.selectors.image_sets import jobs_that_need
from webapp.segmentation.shared_pages import uses_images


def test_home_begins_with_images_for_people_who_use_images(
    client_of, bob, carol, image_set
) -> None:
    assert uses_images(bob)
    page = Page(client_of(bob).get("/"))
    assert page.text.index("All image sets") < page.text.index("What to do next")
    for _ in range(3):
        audit(carol, "imported", "A cohort of people")
    assert not uses_images(carol)
    page = Page(client_of(carol).get("/"))
    assert page.text.index("All image sets") > page.text.index("What to do next")


def test_the_search_finds_sets_models_predictions_and_pictures(
    client_of, bob, mallory, image_set
) -> None:
    make_batch(bob, make_segmenter(bob, "Leaves by night"), image_set)
    found = Page(client_of(bob).get("/search/?q=leaves&stay=1"))
    for kind in ("Image set", "Image model", "Prediction"):
        assert found.has("listitem", kind)
    assert Page(client_of(bob).get("/search/?q=leaf_0&stay=1")).has("link", "leaf_0.jpg")
    assert "Leaves by night" not in Page(client_of(mallory).get("/search/?q=leaves")).source


def test_removing_a_set_warns_of_jobs_that_need_it(client_of, bob, alice, image_set) -> None:
    segmenter = make_segmenter(bob)
    segmenter.image_sets.add(image_set)
    batch = make_batch(bob, segmenter, image_set)
    address = image_set.get_absolute_url()
    assert jobs_that_need(image_set) == []
    assert not Page(client_of(bob).get(address)).says("need this set")
    Job.objects.filter(pk=batch.job_id).update(state=JobState.QUEUED)
    page = Page(client_of(bob).get(address))
    assert page.has("alert", "One job that waits or runs needs this set")
    Job.objects.filter(pk=segmenter.job_id).update(state=JobState.RUNNING)
    page = Page(client_of(bob).get(address))
    assert page.has("alert", "2 jobs that wait or run need this set")


def test_the_form_promises_a_certificate_only_where_there_is_one(client_of, bob, image_set) -> None:
    page = Page(client_of(bob).get("/image-models/new/"))
    assert "as well as any could, with a certificate" not in page.source
    sentence = "only the methods “weights with a certificate” and “Linear” prove that"
    assert page.has("listitem", sentence)
    assert page.has("option", "Smoothed trees")


def test_learning_that_a_prediction_follows_says_so(client_of, bob, image_set) -> None:
    segmenter = make_segmenter(bob)
    segmenter.image_sets.add(image_set)
    job = segmenter.job
    Job.objects.filter(pk=job.pk).update(
        state=JobState.QUEUED, parameters={"predict": True, "segmenter": str(segmenter.pk)}
    )
    page = Page(client_of(bob).get(segmenter.get_absolute_url()))
    assert page.has("status", "Prediction follows learning")
    Job.objects.filter(pk=job.pk).update(state=JobState.SUCCEEDED)
    batch = make_batch(bob, Segmenter.objects.get(pk=segmenter.pk), image_set)
    page = Page(client_of(bob).get(segmenter.get_absolute_url()))
    assert page.one("link", "open the prediction").address == batch.get_absolute_url()
