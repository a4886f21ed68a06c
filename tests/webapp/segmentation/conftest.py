"""Images to paint on, addresses of image pages, and an end for painting processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import LazySettings

from tests.webapp.factories.image_addresses import addresses_of_images
from tests.webapp.factories.images import serve_plain_files
from tests.webapp.factories.painting import make_plain_set
from webapp.accounts.models import User
from webapp.segmentation.models import ImageFile, ImageSet, PredictionBatch, Segmenter
from webapp.segmentation.painting import client as warm_client


@pytest.fixture(autouse=True)
def quick_pages(settings: LazySettings) -> None:
    serve_plain_files(settings)


@pytest.fixture(autouse=True)
def painting_processes_end(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Sockets in a folder of the test's own; whatever process it started ends with it."""
    made: list[Path] = []

    def folder() -> Path:
        if not made:
            made.append(tmp_path_factory.mktemp("painting"))
        return made[0]

    monkeypatch.setattr(warm_client, "painting_folder", folder)
    yield
    monkeypatch.setattr(warm_client, "painting_folder", folder)  # a test may have had another
    for path in made[0].glob("*.sock") if made else ():
        warm_client.end(path.stem)


@pytest.fixture
def plain_set(bob: User) -> ImageSet:
    """Two images without masks, dark with a bright block."""
    return make_plain_set(bob)


@pytest.fixture
def file(plain_set: ImageSet) -> ImageFile:
    return plain_set.files.get(name="well_0.png")


@pytest.fixture
def addresses(
    image_set: ImageSet, image: ImageFile, segmenter: Segmenter, batch: PredictionBatch
) -> dict[str, str]:
    """Every address of the application with real objects of Northfield."""
    return addresses_of_images(image_set, image, segmenter, batch)
