"""An organisation that stores too much is told so before it stores more."""

from collections.abc import Callable

import pytest
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile

from webapp.accounts.models import User
from webapp.cohorts.models import Draft
from webapp.common.quota import QuotaError, check_quota, stored_bytes
from webapp.common.storage import organisation_folder

SURVEY = b"id,Tidy,Smokes\n" + b"".join(
    f"N{k},{1 + k % 5},{'Yes' if k % 2 else 'No'}\n".encode() for k in range(12)
)


@pytest.fixture
def full(bob: User, settings: object) -> User:
    """Bob's organisation stores 3,000 bytes and may store 2,000."""
    cache.clear()
    folder = organisation_folder(bob.organisation) / "files" / "deep"
    folder.mkdir(parents=True)
    for name in ("one", "two"):
        (folder / name).write_bytes(b"x" * 1500)
    settings.ORGANISATION_QUOTA_GB = 2e-6
    yield bob
    cache.clear()


def test_it_adds_up_every_file_of_the_organisation_and_no_other(full: User, mallory: User) -> None:
    assert stored_bytes(full.organisation) == 3000
    assert stored_bytes(mallory.organisation) == 0
    check_quota(mallory.organisation)
    with pytest.raises(QuotaError, match="stores 3e-06 GB of the 2e-06 GB that it may use"):
        check_quota(full.organisation)


def test_an_upload_over_the_quota_saves_nothing(full: User, client_of: Callable) -> None:
    file = SimpleUploadedFile("survey.csv", SURVEY)
    page = client_of(full).post("/cohorts/import/", {"file": file})
    assert page.status_code == 422
    assert "Remove images, predictions or cohorts" in page.content.decode()
    assert not Draft.objects.exists()


def test_other_organisations_go_on(full: User, mallory: User, client_of: Callable) -> None:
    file = SimpleUploadedFile("survey.csv", SURVEY)
    assert client_of(mallory).post("/cohorts/import/", {"file": file}).status_code == 302
