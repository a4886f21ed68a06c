"""Damaged uploads get a sentence, never an error of ours; the long form is in benchmarks/."""

import io
import zipfile
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from django.test import Client

from benchmarks.hunts.mutated_uploads import Target, make_target, mutate, send, try_uploads, whole
from benchmarks.hunts.upload_kinds import kind_named, kinds
from webapp.accounts.models import User
from webapp.cohorts.models import Student


@pytest.fixture
def target(bob: User) -> Target:
    return make_target(bob)


def test_every_whole_file_is_taken(target: Target) -> None:
    """So that what is damaged below would be taken if it were not."""
    refused = {}
    for number, kind in enumerate(kinds()):
        for is_program in (False, True)[: 1 + bool(kind.api)]:
            late = [one.pk for one in Student.objects.all() if one.original_id.startswith("L")]
            Student.objects.filter(pk__in=late).delete()  # nobody comes twice
            status, _ = send(
                target, whole(target, kind, 2 * number + is_program, is_program=is_program)
            )
            if status not in (200, 201, 302):
                refused[kind.name, is_program] = status
    assert refused == {}


@pytest.mark.every_database
@pytest.mark.parametrize("seed", [1, 100_001])
def test_no_mutated_upload_is_answered_with_an_error_of_ours(target: Target, seed: int) -> None:
    findings, statuses, _ = try_uploads(target, 60, seed)
    assert findings == []
    assert len({status for _, status in statuses}) >= 3  # taken, refused, unreadable


@pytest.mark.parametrize("is_program", [False, True])
def test_a_stack_that_only_one_reader_knows_is_answered(target: Target, is_program: bool) -> None:
    """Seen as UnidentifiedImageError after all planes were read, answered with 500."""
    rng = np.random.default_rng(1360)
    rng.random(2)
    stack = kind_named("stack")
    damaged = replace(stack, content=mutate(stack.content, rng))
    status, _ = send(target, whole(target, damaged, 1, is_program=is_program))
    assert status in (200, 302)


def damaged_zip(place_of: Callable[[bytes], int], number: int, size: int) -> bytes:
    """A ZIP of one picture with one number of its directory overwritten."""
    content = bytearray(kind_named("stored ZIP").content)
    place = place_of(bytes(content))
    content[place : place + size] = number.to_bytes(size, "little")
    return bytes(content)


DAMAGES = {
    # Seen as ValueError("negative seek value") and OSError 22, answered with 500.
    "begins before the file": damaged_zip(lambda z: z.rfind(b"PK\x05\x06") + 16, 9_000, 4),
    "entry before the file": damaged_zip(lambda z: z.rfind(b"PK\x01\x02") + 42, 0xFFFFFFF0, 4),
    "entry beyond the file": damaged_zip(lambda z: z.rfind(b"PK\x01\x02") + 42, 0x7FFFFFFF, 4),
}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("way", ["page", "api"])
def test_a_zip_with_a_wrong_directory_is_said_to_be_damaged(
    target: Target, name: str, way: str
) -> None:
    page, api = (target.address(kind_named("ZIP"), is_program=flag) for flag in (False, True))
    file = io.BytesIO(DAMAGES[name])
    file.name = "a.zip"
    if way == "page":
        headers = {"accept": "application/x-ndjson"}
        answer = target.person.post(page, {"file": file}, headers=headers)
        content = b"".join(answer.streaming_content)
    else:
        answer = target.program.post(api, {"file": file})
        content = answer.content
    assert answer.status_code == 200
    assert b"damaged" in content
    assert zipfile.is_zipfile(io.BytesIO(DAMAGES[name])) or b"Nothing was saved" in content


@pytest.mark.parametrize("way", ["page", "api"])
@pytest.mark.parametrize("kind", ["PNG", "survey CSV", "pairs CSV"])
@pytest.mark.parametrize(
    "content_type", ["multipart/form-data", "multipart/form-data; boundary=", "multipart/x; b=ü"]
)
def test_a_form_without_a_boundary_cannot_be_read(
    target: Target, way: str, kind: str, content_type: str
) -> None:
    address = target.address(kind_named(kind), is_program=way == "api")
    client: Client = target.program if way == "api" else target.person
    answer = client.generic("POST", address, b"--x\r\n\r\n", content_type=content_type)
    assert answer.status_code in {400, 422} or (way == "page" and answer.status_code == 302)
