"""Stored files go out with the right headers, in ranges, and only when changed."""

import pytest

from webapp.files.file_responses import parse_range


@pytest.fixture
def url(image_set, image) -> str:
    return f"/image-sets/{image_set.pk}/files/{image.pk}/"


def body(response) -> bytes:
    return b"".join(response.streaming_content)


def test_the_bytes_are_those_that_came(client_of, alice, url, image) -> None:
    answer = client_of(alice).get(url)
    assert body(answer) == image.store.path(image.digest).read_bytes()
    assert answer["Content-Length"] == str(image.size)


def test_the_headers_let_nothing_run(client_of, alice, url) -> None:
    answer = client_of(alice).get(url)
    assert answer["Content-Type"] == "image/jpeg"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in answer["Content-Security-Policy"]
    assert "default-src 'none'" in answer["Content-Security-Policy"]
    assert answer["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer["Cache-Control"] == "private, no-cache"


def test_a_range_is_answered_with_those_bytes(client_of, alice, url, image) -> None:
    whole = image.store.path(image.digest).read_bytes()
    answer = client_of(alice).get(url, headers={"range": "bytes=10-19"})
    assert answer.status_code == 206
    assert body(answer) == whole[10:20]
    assert answer["Content-Range"] == f"bytes 10-19/{len(whole)}"


def test_a_range_beyond_the_end_is_refused(client_of, alice, url, image) -> None:
    answer = client_of(alice).get(url, headers={"range": "bytes=9999999-"})
    assert answer.status_code == 416
    assert answer["Content-Range"] == f"bytes */{image.size}"


def test_what_the_browser_has_is_not_sent_again(client_of, alice, url) -> None:
    client = client_of(alice)
    tag = client.get(url)["ETag"]
    assert client.get(url, headers={"if-none-match": tag}).status_code == 304


def test_a_stale_range_gets_the_whole_file(client_of, alice, url) -> None:
    answer = client_of(alice).get(url, headers={"range": "bytes=0-1", "if-range": '"old"'})
    assert answer.status_code == 200


def test_the_etag_helps_nobody_without_rights(client_of, alice, mallory, url) -> None:
    tag = client_of(alice).get(url)["ETag"]
    answer = client_of(mallory).get(url, headers={"if-none-match": tag})
    assert answer.status_code == 404


def test_an_odd_name_cannot_break_the_header(client_of, bob, image_set, image, url) -> None:
    image.name = 'a"\r\nSet-Cookie: x=1;é.jpg'
    image.save()
    answer = client_of(bob).get(url)
    assert "\n" not in answer["Content-Disposition"]
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-0", (0, 0)),
        ("bytes=5-", (5, 99)),
        ("bytes=-10", (90, 99)),
        ("bytes=-1000", (0, 99)),
        ("bytes=50-1000", (50, 99)),
        ("bytes=100-", "unsatisfiable"),
        ("bytes=-0", "unsatisfiable"),
        ("bytes=9-5", None),
        ("bytes=0-1,5-6", None),
        ("lines=0-1", None),
        ("bytes=-", None),
    ],
)
def test_ranges(header, expected) -> None:
    assert parse_range(header, 100) == expected
