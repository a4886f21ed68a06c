"""What segmentation adds to the home page, and the demonstration."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.webapp.roles import Page
from webapp.segmentation import demonstration
from webapp.segmentation.demonstration import LEARN_SET, PREDICT_SET, load_demonstration
from webapp.segmentation.models import ImageSet
from webapp.segmentation.shared_pages import home_panel, next_steps, search


def test_the_demonstration_is_loaded_once(bob) -> None:
    first = load_demonstration(bob.organisation, bob)
    second = load_demonstration(bob.organisation, bob)
    assert first == "18 generated leaf images, 12 of them with masks."
    assert "already" in second
    learn = ImageSet.objects.get(name=LEARN_SET)
    assert learn.files.filter(role="image", mask__isnull=False).count() == 12
    assert ImageSet.objects.get(name=PREDICT_SET).files.count() == 6


def test_a_demonstration_that_fails_half_way_leaves_nothing(bob, monkeypatch) -> None:
    calls = []

    def fails_at_the_second(*_: object, **__: object) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise OSError("stopped")
        ImageSet.objects.create(organisation=bob.organisation, name=LEARN_SET)

    monkeypatch.setattr(demonstration, "_make_set", fails_at_the_second)
    with pytest.raises(OSError, match="stopped"):
        load_demonstration(bob.organisation, bob)
    assert not ImageSet.objects.exists()


def test_masks_that_nobody_learned_from_are_a_next_step(bob, alice, image_set, segmenter) -> None:
    (step,) = next_steps(bob)
    assert step.title == "Learn from Leaves"
    assert str(image_set.pk) in step.url
    assert list(next_steps(alice)) == []
    segmenter.image_sets.add(image_set)
    assert list(next_steps(bob)) == []


def test_many_sets_cost_no_more_questions_of_the_database(bob, image_set, make_set) -> None:
    for name in ("Two", "Three"):
        make_set(bob, name=name)
    with CaptureQueriesContext(connection) as queries:
        assert len(list(next_steps(bob))) == 3
    assert len(queries) == 2  # the sets, and the files of all of them


@pytest.mark.parametrize("name", ["a&b.jpg", "#3.jpg", "50 %.jpg", "a+b.jpg"])
def test_a_found_image_is_found_in_its_set_too(client_of, bob, image_set, image, name) -> None:
    image_set.files.filter(pk=image.pk).update(name=name)
    (hit,) = search(bob, name)
    page = Page(client_of(bob).get(hit.url))
    assert len([item for item in page.every("listitem") if item.has("img", name)]) == 1
    assert page.one("link", "Clear").address == "?"
    assert page.one("navigation", "Which files").one("link", "All").says("1")
    assert page.field("Find a student, room or picture").value == ""


def test_the_home_panel_appears_with_the_first_set(bob, mallory, image_set) -> None:
    assert [one.name for one in home_panel(bob)["image_sets"]] == ["Leaves"]
    assert home_panel(mallory) is None
