"""Exports: original ids for the housing system, harmless in a spreadsheet, written down."""

import csv
import io
from collections.abc import Callable

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from openpyxl import load_workbook

from tests.webapp.factories.programs import Program
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.api.openapi import PREFIX
from webapp.api.services import token_create
from webapp.audit.models import AuditLine
from webapp.housing.models import Placement
from webapp.housing.pairs.decisions import Decision, pairs_decide
from webapp.housing.pairs.exports import pair_export_rows


def test_csv_has_every_pair_and_defused_ids(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    address = reverse("housing:pairs-export", args=[placement.pk, "csv"])
    response = client_of(bob).get(address)
    assert response.headers["Content-Disposition"] == 'attachment; filename="First-years.csv"'
    assert "sandbox" in response.headers["Content-Security-Policy"]
    assert response.headers["Cache-Control"] == "private, no-store"
    rows = list(csv.DictReader(io.StringIO(response.content.decode("utf-8-sig"))))
    assert len(rows) == 16
    ids = {row["student_a"] for row in rows} | {row["student_b"] for row in rows}
    assert ids == {f"'=N{k:03d}" for k in range(32)}
    line = AuditLine.objects.get(verb="exported")
    assert (line.details["pairs"], line.details["original_ids"]) == (16, True)


def test_xlsx_keeps_text_as_text(bob: User, client_of: Callable, placement: Placement) -> None:
    address = reverse("housing:pairs-export", args=[placement.pk, "xlsx"])
    sheet = load_workbook(io.BytesIO(client_of(bob).get(address).content)).active
    cells = [sheet.cell(row=row, column=1) for row in range(2, 18)]
    assert all(
        cell.value.startswith("=N") and cell.data_type in ("s", "inlineStr") for cell in cells
    )


def test_only_decided_and_no_rejected_pairs(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    accepted, rejected = placement.pairs.all()[:2]
    for pair, decision in ((accepted, Decision.ACCEPT), (rejected, Decision.REJECT)):
        versions = {pair.pk: pair.version}
        pairs_decide(user=bob, placement=placement, decision=decision, versions=versions)
    address = reverse("housing:pairs-export", args=[placement.pk, "csv"])
    client = client_of(bob)
    page = Page(client.get(reverse("housing:placement", args=[placement.pk])))
    assert page.one("group", "Export").says("2 students without a roommate are in no file.")
    assert client.get(address).content.count(b"\r\n") == 16  # the header and 15 pairs
    decided = client.get(address + "?only=decided").content.decode("utf-8-sig")
    assert accepted.first.label in decided
    assert decided.count("\r\n") == 2


def test_a_pair_that_another_proposal_forbids_is_marked_and_left_out(
    bob: User, client_of: Callable, placement: Placement, make_pairs: Callable
) -> None:
    """It used to be called the certified best, without a way to propose anew, and was exported."""
    other = make_pairs()
    pair = placement.pairs.first()
    versions = {pair.pk: pair.version}
    pairs_decide(user=bob, placement=placement, decision=Decision.NEVER, versions=versions)
    page = client_of(bob).get(reverse("housing:placement", args=[other.pk]) + "?sort=pair")
    assert page.context["n_forbidden"] == 1
    words = Page(page)
    assert words.says("1 never pair since")
    assert not words.says("Certified best")
    assert words.has("button", "Pair again", exactly=True)
    first = next(row for row in words.every("row") if row.has("cell"))
    assert first.says("Never pair")
    assert len(list(pair_export_rows(other))) == 15


def test_rights_and_walls(
    alice: User, mallory: User, client_of: Callable, placement: Placement
) -> None:
    address = reverse("housing:pairs-export", args=[placement.pk, "csv"])
    assert client_of(alice).get(address).status_code == 403
    assert client_of(mallory).get(address).status_code == 404
    assert not AuditLine.objects.filter(verb="exported").exists()


def test_a_program_asking_for_headers_alone_takes_nothing(bob: User, placement: Placement) -> None:
    """It used to leave an audit line of an export."""
    _, secret = token_create(user=bob, name="sync", may_change=True, days=30)
    address = f"/proposals/{placement.pk}/export/csv"
    headers = {"authorization": f"Bearer {secret}"}
    assert Client().head(PREFIX + address, headers=headers).status_code == 200
    assert not AuditLine.objects.filter(verb="exported").exists()
    assert Program(secret).get(address).status_code == 200
    assert AuditLine.objects.filter(verb="exported").count() == 1


def test_a_program_is_told_how_many_pairs_are_forbidden_by_now(
    bob: User, placement: Placement, make_pairs: Callable
) -> None:
    """The other placement has no change of its own, and is not the best any more all the same."""
    other = make_pairs()
    pair = placement.pairs.first()
    versions = {pair.pk: pair.version}
    pairs_decide(user=bob, placement=placement, decision=Decision.NEVER, versions=versions)
    _, secret = token_create(user=bob, name="sync", may_change=False, days=30)
    program = Program(secret)
    one = program.get(f"/proposals/{other.pk}").data
    assert (one["changes"], one["forbidden"]) == (0, 1)
    with CaptureQueriesContext(connection) as queries:
        listed = program.get("/proposals").data["items"]
    assert {item["id"]: item["forbidden"] for item in listed} == {
        str(placement.pk): 1,
        str(other.pk): 1,
    }
    assert sum('FROM "housing_placedpair"' in q["sql"] for q in queries) == 1
