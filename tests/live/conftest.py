"""The running product for tests that kill its parts."""

from collections.abc import Iterator

import pytest

from tests.live.product import Product, new_product


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """An installation whose worker also knows the counting jobs."""
    made = new_product(
        tmp_path_factory.mktemp("product"), DJANGO_SETTINGS_MODULE="tests.webapp.live_settings"
    )
    yield made
    made.stop()


@pytest.fixture
def product(installation: Product) -> Product:
    """The installation, running: started again when the test before ended it."""
    if installation.process is None or installation.process.poll() is not None:
        installation.start()
    return installation
