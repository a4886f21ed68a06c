"""Past pairs: every wrong row is named, and pairs come all or not at all."""

from collections.abc import Callable

import pytest
from django.urls import reverse

from tests.tabular.test_reading import xlsx_of
from tests.webapp.factories.cohorts import survey_csv
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Draft, PairsOrigin

GOOD = b"a,b\nN000,N001\nN002,N003\nN004,N005\n"


def send(client: object, cohort: Cohort, as_upload: Callable, data: bytes) -> Page:
    address = reverse("cohorts:pairs-upload", args=[cohort.pk])
    response = client.post(address, {"file": as_upload(data, "pairs.csv")}, follow=True)
    return Page(response, status=response.status_code)


def press_import(client: object, cohort: Cohort) -> Page:
    draft = Draft.objects.get(cohort=cohort)
    address = reverse("cohorts:pairs-confirm", args=[cohort.pk, draft.pk])
    return Page(client.post(address, {"version": draft.version}, follow=True))


def test_staff_import_pairs(
    bob: User, client_of: Callable, make_cohort: Callable, as_upload: Callable
) -> None:
    cohort, client = make_cohort(bob), client_of(bob)
    page = send(client, cohort, as_upload, GOOD)
    assert page.has("button", "Import 3 pairs")
    assert page.has("listitem", "18 students of 24 are in no pair")
    assert press_import(client, cohort).one("status").says("3 pairs imported")
    cohort.refresh_from_db()
    assert (cohort.n_pairs, cohort.pairs_origin) == (3, PairsOrigin.IMPORTED)
    assert str(cohort.past_pairs.first()) == "S-1001 + S-1002"


def test_a_first_row_of_students_is_a_pair_and_no_header(
    bob: User, client_of: Callable, make_cohort: Callable, as_upload: Callable
) -> None:
    cohort, client = make_cohort(bob), client_of(bob)
    page = send(client, cohort, as_upload, b"N000,N001,\nN002,N003,\n")
    assert page.has("button", "Import 2 pairs")
    assert press_import(client, cohort).one("status").says("2 pairs imported")


def test_rows_of_three_are_rooms_of_three(
    bob: User, client_of: Callable, make_cohort: Callable, as_upload: Callable
) -> None:
    cohort, client = make_cohort(bob), client_of(bob)
    rows = b"student_a,student_b,student_c\nN000,N001,N002\nN003,N004,N005\nN006,N007,\n"
    page = send(client, cohort, as_upload, rows)
    assert page.has("button", "Import 3 shared rooms")
    assert page.section("Which columns name the roommates").says("Third roommate")
    press_import(client, cohort)
    cohort.refresh_from_db()
    assert (cohort.n_rooms, cohort.n_pairs) == (3, 7)


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (b"N000,N999", "Row 5: N999 is not a student of this cohort."),
        (b"N007,N007", "Row 5: N007 is paired with themselves."),
        (b"N000,N008", "Row 5: N000 is paired twice, first in row 2."),
        (b"N007,", "Row 5: one of the two ids is blank."),
    ],
)
def test_a_wrong_row_is_named_and_stops_everything(
    bob: User,
    client_of: Callable,
    make_cohort: Callable,
    as_upload: Callable,
    row: bytes,
    sentence: str,
) -> None:
    cohort, client = make_cohort(bob), client_of(bob)
    assert send(client, cohort, as_upload, GOOD + row + b"\n").has("listitem", sentence)
    assert press_import(client, cohort).one("alert").says("Nothing was imported")
    cohort.refresh_from_db()
    assert cohort.n_pairs == 0


def test_ids_that_lost_their_zeros_are_matched_by_one_button(
    bob: User, client_of: Callable, make_cohort: Callable, as_upload: Callable
) -> None:
    data = survey_csv().replace(b"N0", b"00")
    cohort, client = make_cohort(bob, data=data), client_of(bob)
    page = send(client, cohort, as_upload, xlsx_of([["a", "b"], [2, 3], [4, 5]]))
    assert page.text.count("4 ids differ from those of the survey by leading zeros only") == 1
    assert "is not a student" not in page.source
    draft = Draft.objects.get(cohort=cohort)
    address = reverse("cohorts:pairs-draft", args=[cohort.pk, draft.pk])
    client.post(address, {"version": draft.version, "action": "zeros"})
    assert press_import(client, cohort).one("status").says("2 pairs imported")
    assert str(cohort.past_pairs.first()) == "S-1003 + S-1004"


def test_ids_on_screen_are_not_taken_for_those_of_the_survey(
    bob: User, client_of: Callable, make_cohort: Callable, as_upload: Callable
) -> None:
    cohort, client = make_cohort(bob), client_of(bob)
    page = send(client, cohort, as_upload, b"a,b\nS-1003,S-1004\nS-1001,S-1002\n")
    sentence = "S-1001 is an id on screen; the ids that the survey used are needed."
    assert page.text.count(sentence) == 1
    assert press_import(client, cohort).one("alert").says("Nothing was imported")


def test_where_ids_were_made_those_on_screen_are_the_ids(
    bob: User, client_of: Callable, make_cohort: Callable, as_upload: Callable
) -> None:
    lines = [line.split(b",", 1)[1] for line in survey_csv().splitlines()]
    cohort, client = make_cohort(bob, data=b"\n".join(lines)), client_of(bob)
    page = send(client, cohort, as_upload, b"a,b\nS-1003,S-1004\nS-1001,S-9999\n")
    assert page.has("listitem", "Row 3: S-9999 is not a student of this cohort.")
    assert "is an id on screen" not in page.source


def test_a_repeated_pair_counts_once(
    bob: User, client_of: Callable, make_cohort: Callable, as_upload: Callable
) -> None:
    cohort, client = make_cohort(bob), client_of(bob)
    page = send(client, cohort, as_upload, GOOD + b"N001,N000\n")
    assert page.has("listitem", "Row 5 repeats the pair of row 2; it counts once.")
    press_import(client, cohort)
    cohort.refresh_from_db()
    assert cohort.n_pairs == 3


def test_the_columns_with_ids_are_found_and_can_be_chosen(
    bob: User, client_of: Callable, make_cohort: Callable, as_upload: Callable
) -> None:
    cohort, client = make_cohort(bob), client_of(bob)
    send(client, cohort, as_upload, b"room,left,right\n12,N000,N001\n14,N002,N003\n")
    draft = Draft.objects.get(cohort=cohort)
    assert draft.choices["columns"] == [1, 2]
    address = reverse("cohorts:pairs-draft", args=[cohort.pk, draft.pk])
    page = Page(client.post(address, {"first": "0", "second": "0"}, follow=True))
    assert page.one("alert").says("Choose two different columns")


def test_a_file_of_one_column_is_refused(
    bob: User, client_of: Callable, make_cohort: Callable, as_upload: Callable
) -> None:
    cohort, client = make_cohort(bob), client_of(bob)
    page = send(client, cohort, as_upload, xlsx_of([["a"], ["N000"], ["N001"]]))
    sentence = "The file has one column; two columns of ids are expected. Nothing was saved."
    assert page.has("alert", sentence)
    assert not Draft.objects.exists()


def test_rights_and_walls(
    alice: User,
    bob: User,
    mallory: User,
    client_of: Callable,
    make_cohort: Callable,
    as_upload: Callable,
) -> None:
    cohort = make_cohort(bob)
    address = reverse("cohorts:pairs-upload", args=[cohort.pk])
    assert client_of(alice).get(address).status_code == 403
    assert client_of(mallory).get(address).status_code == 404
    send(client_of(bob), cohort, as_upload, GOOD)
    draft = Draft.objects.get(cohort=cohort)
    inside = reverse("cohorts:pairs-confirm", args=[cohort.pk, draft.pk])
    assert client_of(mallory).post(inside).status_code == 404
    assert client_of(alice).post(inside).status_code == 403
