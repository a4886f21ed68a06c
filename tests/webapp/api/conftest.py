"""Objects of the tests of the API."""

import pytest
from django.conf import LazySettings

from tests.webapp.factories.images import serve_plain_files


@pytest.fixture(autouse=True)
def quick_pages(settings: LazySettings) -> None:
    serve_plain_files(settings)
