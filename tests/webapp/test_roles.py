"""The reader of pages by role and name."""

import re
from pathlib import Path

import pytest
from django.http import HttpResponse
from django.test import Client

from tests.webapp.reader import Reader
from tests.webapp.roles import Page

PAGE = """<!doctype html><html><head><title>Rooms</title></head><body><main>
<h1>Rooms of <em>Ash Hall</em></h1><h2 hidden>Not yet</h2>
<script>let words = "never shown";</script>
<form action="/rooms/"><label for="n">Name</label><input id="n" name="n" value="A 1"
  aria-describedby="n-error"><p id="n-error">Taken.</p>
<label><input type="checkbox" name="q" checked> Quiet</label>
<fieldset disabled><legend>Kind</legend>
  <label>Beds <select name="b"><option>1</option><option selected>2</option></select></label>
</fieldset><textarea aria-label="Note" name="t">
two lines</textarea><input type="hidden" name="v" value="3">
<button formaction="/rooms/keep/">Keep</button>
<button aria-label="Remove Ash Hall">x</button></form>
<table><caption>Beds</caption><tr><th scope="row">Free</th><td>3</td></tr>
<tr><th scope="row">Taken</th><td>9</td></tr></table>
<dl><dt>Learned in</dt><dd>2 s</dd></dl>
<aside aria-label="Room">201</aside>
<section aria-labelledby="m"><h3 id="m">Moves</h3><p>None yet.</p></section><section>Aside</section>
<section aria-labelledby="free"><h2 id="free">Free beds</h2><p>In Oak Hall: 2</p></section>
<a href="/halls/2/"><svg role="img" aria-label="Next hall"><use href="#x"></use></svg></a>
<p role="alert">One room is full.</p><p>Read <a href="/help/">Help</a><br>first.</p>
</main></body></html>"""


def test_it_finds_elements_by_role_and_name() -> None:
    page = Page(PAGE)
    assert page.one("heading", "Rooms").text == "Rooms of Ash Hall"
    assert page.one("complementary", "Room").text == "201"
    assert [one.name for one in page.every("region")] == ["Moves", "Free beds"]
    assert page.one("region", "Moves").says("None yet.")
    assert page.one("link", "Help").address == "/help/"
    assert page.one("button", "Keep").address == "/rooms/keep/"
    assert page.one("button", "Remove Ash Hall").text == "x"
    assert page.one("alert").says("full")
    assert page.one("link", "Next hall").address == "/halls/2/"
    assert [row.text for row in page.one("table", "Beds").every("row")] == ["Free 3", "Taken 9"]
    assert not page.has("heading", "Not yet")
    assert page.has("group", "Kind", exactly=True)
    assert not page.has("group", "Kin", exactly=True)


def test_it_finds_fields_by_their_labels() -> None:
    page = Page(PAGE)
    assert page.field("Name").value == "A 1"
    assert page.field("Name").description == "Taken."
    assert page.field("Quiet").is_checked
    assert page.field("Beds").value == "2"
    assert page.field("Beds").is_disabled
    assert page.field("Note").value == "two lines"


def test_it_finds_cells_by_their_columns() -> None:
    table = Page("""<table><thead><tr><th>Hall</th><th>Free</th></tr></thead>
        <tr><th scope="row">Ash</th><td>3</td></tr><tr><td>Oak</td><td>2</td></tr></table>""")
    assert table.one("row", "Ash").cell("Free") == "3"
    assert table.one("row", "Oak").cell("Free") == "2"
    with pytest.raises(AssertionError, match="no column 'Taken' among"):
        table.one("row", "Ash").cell("Taken")


def test_it_finds_sections_by_their_headings() -> None:
    page = Page(PAGE)
    assert page.section("Free beds").says("In Oak Hall: 2")
    assert not page.section("Free beds").says("Learned in")
    assert page.one("region", "Free beds").says("In Oak Hall: 2")
    with pytest.raises(AssertionError, match="stands in no section"):
        page.section("Rooms of Ash Hall")


def test_it_reads_only_what_is_shown() -> None:
    page = Page(PAGE)
    assert not page.says("never shown")
    assert not page.says("Not yet")
    assert page.says("Read Help first.")
    assert page.said_of("Learned in") == "2 s"
    assert page.said_of("Taken") == "9"


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (lambda page: page.one("button", "Publish"), "no button 'Publish' among"),
        (lambda page: page.one("row"), "2 of row"),
        (lambda page: page.field("E-mail"), "no field 'E-mail' among"),
        (lambda page: page.said_of("Colour"), "no term 'Colour' among"),
    ],
)
def test_an_error_lists_what_there_is(question: object, words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        question(Page(PAGE))  # type: ignore[operator]


def test_a_part_of_a_page_keeps_its_rows() -> None:
    rows = Page('<tr><td>Anna</td></tr><tr><td>Ben</td></tr><div hx-swap-oob="true">3</div>')
    assert [row.text for row in rows.every("row")] == ["Anna", "Ben"]


def test_it_keeps_the_spaces_that_the_client_of_tests_drops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent = HttpResponse("<a href='/a/'>Decide<span> about Anna </span></a>")
    monkeypatch.setattr(Client, "request", lambda self, **request: sent)
    page = Page(Reader().get("/"))
    assert page.has("link", "Decide about Anna", exactly=True)
    assert "about Anna</span>" in page.source


def test_no_test_looks_for_words_anywhere_in_the_html_of_a_page() -> None:
    """Such a test passes for words in an attribute, a hidden part or a script."""
    found = [
        f"{path.name}:{number}"
        for path in Path(__file__).parent.rglob("test_*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(r"""assert [fb]?["'].*["'] in page(?:\.content\.decode\(\))?(?:,|$)""", line)
    ]
    assert not found
