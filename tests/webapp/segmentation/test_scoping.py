"""Nobody gets a byte of another organisation by any address, and nobody unsigned gets anything."""

from urllib.parse import urlencode

import pytest
from django.urls import resolve

from tests.webapp.roles import Page
from tests.webapp.test_addresses import CLIMBING, answers, is_address, with_nonsense, written_tables
from tests.webapp.test_plurals import check, double
from webapp.audit.models import AuditLine
from webapp.segmentation.models import PredictedImage

CHANGING = {
    "image-set-purge",
    "image-file-upload",
    "image-file-remove",
    "image-file-role",
    "image-file-pair",
    "segmenter-delete",
    "prediction-delete",
    "prediction-go-on",
    "predicted-image-correct",
    "paint-strokes",
    "paint-undo",
    "paint-clear",
    "paint-answer",
    "paint-classes",
    "paint-learn",
    "prediction-objects-measure",
    "predicted-image-objects-correct",
    "predicted-image-objects-undo",
}
CONFIRMED = {"image-file-remove", "image-set-view"}  # a GET asks what the POST changes
FIELDS = (
    "action", "back", "bytes", "confirm", "download", "foreground", "holdout_percent", "image",
    "class", "colour", "digest", "format", "high", "image_set", "image_sets", "least", "low",
    "max_seconds", "max_side", "model", "name", "order", "page", "q", "restraint", "role",
    "segmenter", "set", "show", "solver", "with", "splits", "min_pixels", "background",
)  # fmt: skip
LISTS = {
    "image-sets",
    "image-set-new",
    "segmenters",
    "segmenter-new",
    "segmenter-import",
    "predictions",
    "prediction-new",
}


def ask(client, name: str, url: str):
    return client.post(url) if name in CHANGING else client.get(url)


def test_another_organisation_finds_nothing(client_of, mallory, addresses) -> None:
    client = client_of(mallory)
    for name, url in addresses.items():
        if name not in LISTS:
            assert ask(client, name, url).status_code == 404, name


def test_no_stored_file_has_an_address_of_its_own(client_of, bob, addresses, media_root) -> None:
    """Files are reached through views that check the owner, never by where they lie."""
    client = client_of(bob)
    paths = [path for path in media_root.rglob("*") if path.is_file()]
    assert len(paths) > 10
    for path in paths:
        for folder in ("", "/media", "/static", "/static/../media"):
            url = f"{folder}/{path.relative_to(media_root)}"
            assert client.get(url).status_code == 404, url


def test_lists_of_another_organisation_are_empty(client_of, mallory, addresses) -> None:
    client = client_of(mallory)
    for name in LISTS:
        page = Page(client.get(addresses[name]))
        assert "Leaves" not in page.source, name
        assert "Leaf model" not in page.source, name


def test_visitors_are_sent_to_sign_in(client, addresses) -> None:
    for name, url in addresses.items():
        answer = ask(client, name, url)
        assert answer.status_code == 302, name
        assert "/accounts/sign-in/" in answer["Location"], name


def test_viewers_look_but_change_nothing(client_of, alice, addresses) -> None:
    client = client_of(alice)
    makes_new = {"image-set-new", "image-set-view", "segmenter-new", "prediction-new"}
    makes_new |= {"segmenter-import", "paint-set", "paint", "paint-objects", "paint-picture"}
    makes_new |= {"paint-painted"}
    for name, url in addresses.items():
        expected = 403 if name in CHANGING | makes_new else 200
        assert ask(client, name, url).status_code == expected, name


def test_reading_addresses_refuse_to_change_and_the_other_way_round(
    client_of, bob, addresses
) -> None:
    client = client_of(bob)
    for name, url in addresses.items():
        if name in LISTS | CONFIRMED:
            continue
        answer = client.get(url) if name in CHANGING else client.post(url)
        assert answer.status_code == 405, name


def test_no_get_writes_a_row(client_of, carol, addresses) -> None:
    client = client_of(carol)
    for name, url in addresses.items():
        with written_tables() as found:
            client.get(url)
        assert not found, name


@pytest.mark.any_database
def test_no_parameter_climbs_out_of_its_folder(carol, addresses) -> None:
    for name, url in addresses.items():
        for value in resolve(url).kwargs.values():
            for climb in CLIMBING:
                climbed = url.replace(str(value), climb)
                if is_address(climbed):
                    assert set(answers(carol, climbed)) <= {404}, name


def test_objects_of_one_parent_are_not_found_under_another(
    client_of, bob, make_set, image, batch
) -> None:
    other = make_set(bob, name="Other")
    client = client_of(bob)
    row = batch.images.first()
    assert client.get(f"/image-sets/{other.pk}/files/{image.pk}/").status_code == 404
    assert client.get(f"/predictions/{other.pk}/{row.pk}/mask.png").status_code == 404


def test_the_search_stays_within_the_organisation(client_of, bob, mallory, image_set) -> None:
    assert Page(client_of(bob).get("/search/?q=leaf_")).has("link", "leaf_0.jpg")
    assert "leaf_0.jpg" not in Page(client_of(mallory).get("/search/?q=leaf_")).source


def test_the_home_page_shows_the_organisation_s_sets(client_of, bob, mallory, image_set) -> None:
    assert Page(client_of(bob).get("/")).has("listitem", "3 images, 2 with masks")
    assert "3 images, 2 with masks" not in Page(client_of(mallory).get("/")).source


@pytest.mark.every_database
@with_nonsense
def test_nonsense_in_every_field_never_fails(carol, addresses, text) -> None:
    fields = urlencode(dict.fromkeys(FIELDS, text))
    for name, url in addresses.items():
        codes = answers(carol, url, fields)
        late = {503} if name == "paint-answer" else set()  # its process may still be starting
        assert all(code < 500 or code in late for code in codes), f"{name} {codes}"


def test_senseless_keys_in_the_query_are_not_found(client_of, bob, batch) -> None:
    client = client_of(bob)
    for url in (
        "/image-models/new/?set=abc",
        "/predictions/new/?set=abc",
        f"/predictions/{batch.pk}/compare/?with=abc",
    ):
        assert client.get(url).status_code == 404, url


def test_senseless_queries_show_the_usual_page(client_of, bob, image_set, batch) -> None:
    client = client_of(bob)
    for url in (
        f"/image-sets/{image_set.pk}/?show=x&page=zero&q=%27",
        f"/predictions/{batch.pk}/?order=x&page=-1",
        f"/predictions/{batch.pk}/live/?order=%27",
    ):
        assert client.get(url).status_code == 200, url


def test_head_answers_as_get_and_leaves_no_line(client_of, bob, addresses) -> None:
    """A file that nobody reads leaves no audit line."""
    client = client_of(bob)
    files = 0
    for name, url in addresses.items():
        if client.get(url).status_code != 200:
            continue
        before = AuditLine.objects.count()
        head = client.head(url)
        assert head.status_code == 200, name
        assert not head.getvalue(), name
        assert AuditLine.objects.count() == before, name
        files += not head["Content-Type"].startswith("text/html")
    assert files > 5


def test_counts_agree_with_their_nouns(client_of, bob, addresses) -> None:
    client = client_of(bob)
    assert check(client, addresses) > 10
    assert double(PredictedImage) > 5  # whose files are named by their keys
    assert check(client, addresses) > 10
