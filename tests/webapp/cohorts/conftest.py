"""A small survey file, and cohorts made from it by the services."""

from collections.abc import Callable

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile


@pytest.fixture
def as_upload() -> Callable[..., SimpleUploadedFile]:
    """A function from bytes to an uploaded file."""
    return lambda data, name="survey.csv": SimpleUploadedFile(name, data)
