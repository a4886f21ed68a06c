"""A workbook is read as a person sees it: formats, hidden parts, merged cells, times, formulas."""

import io
import re
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from openpyxl import Workbook

from engine.tabular.choices import Role
from engine.tabular.number_formats import shown_number
from engine.tabular.reading import read_source, read_table
from engine.tabular.source import TableError
from tests.tabular.reviews import cells_of, levels_of, reviewed, settled, titles_of

HEADER = ["Student ID", "Bedtime", "Smoke"]


def book(change: Callable[[Any], None], rows: int = 24) -> bytes:
    """A small survey, changed by a function of its sheet."""
    workbook = Workbook()
    sheet = workbook.active
    sheet.append(HEADER)
    for k in range(rows):
        sheet.append([f"N{k:03d}", ("Early", "Late")[k % 2], ("No", "No", "Yes")[k % 3]])
    change(sheet)
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def edited(data: bytes, part: str, change: Callable[[str], str]) -> bytes:
    """Return a workbook with the XML of one part changed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            new.writestr(name, change(text.decode()) if name == part else text)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        (123, "00000", "00123"),
        (12, '"S-"0000', "S-0012"),
        (123456789, "000-00-0000", "123-45-6789"),
        (0.5, "0%", "50%"),
        (7.5, '0.0" h"', "7.5 h"),
        (1234.5, "#,##0.00", "1234.50"),
        (-5, '"$"#,##0_);("$"#,##0)', "-5"),
        (0.5, "# ?/?", "1/2"),
        (46024, "d-mmm", "2-Jan"),
        (18264, "mmm-yy", "Jan-50"),
        (25.5 / 24, "[h]:mm", "25:30"),
        (25.5 / 24, "h:mm", "01:30"),
        (23.5 / 24, "h:mm AM/PM", "11:30 PM"),
        (46143.25, "m/d/yy h:mm", "2026-05-01 06:00"),
        (123456789012, "General", "123456789012"),
        (1e17, "General", "1.00000E+17"),
    ],
)
def test_a_number_is_read_as_its_format_shows_it(value: float, code: str, shown: str) -> None:
    assert shown_number(value, code) == shown


def test_dates_of_1904_are_four_years_later() -> None:
    assert shown_number(44681, "yyyy-mm-dd", is_1904=True) == "2026-05-01"


def test_hidden_columns_are_offered_to_be_left_out() -> None:
    def hide(sheet: Any) -> None:
        sheet.column_dimensions["C"].hidden = True

    data = book(hide)
    assert "1 column is hidden in the file" in titles_of(reviewed(data))
    assert [c.name for c in settled(data).preview.columns_as(Role.QUESTION)] == ["Bedtime"]


def test_cells_merged_downwards_are_read_in_every_row() -> None:
    def merge(sheet: Any) -> None:
        sheet.merge_cells("B2:B4")

    assert cells_of(reviewed(book(merge)), "Bedtime")[:4] == ["Early", "Early", "Early", "Late"]


def test_a_title_merged_across_everything_is_no_header() -> None:
    def title(sheet: Any) -> None:
        sheet.insert_rows(1)
        sheet["A1"] = "Housing survey 2026"
        sheet.merge_cells("A1:C1")

    table = read_table(book(title))
    assert (table.header, table.n_above) == (tuple(HEADER), 1)


def test_the_value_that_a_formula_had_is_read() -> None:
    data = edited(
        book(lambda sheet: None),
        "xl/worksheets/sheet1.xml",
        lambda xml: re.sub(
            r'<c r="C2"[^>]*>.*?</c>',
            '<c r="C2" t="str"><f t="shared" si="0">IF(1,"Yes","No")</f><v>Yes</v></c>',
            xml,
        ),
    )
    assert cells_of(reviewed(data), "Smoke")[0] == "Yes"


def test_a_formula_that_no_program_worked_out_is_refused_by_its_row() -> None:
    def formula(sheet: Any) -> None:
        sheet["C3"] = "=A1"

    with pytest.raises(TableError, match="Row 3, Smoke: the cell holds a formula"):
        read_table(book(formula))


def test_errors_of_a_spreadsheet_are_no_answers() -> None:
    def break_some(sheet: Any) -> None:
        for row in (2, 5, 8, 11):
            sheet.cell(row, 2).value = "#REF!"

    data = book(break_some)
    assert levels_of(reviewed(data), "Bedtime") == ("Early", "Late")
    assert cells_of(settled(data), "Bedtime").count("") == 4


def test_characters_that_xml_cannot_hold_are_unescaped() -> None:
    def escape(sheet: Any) -> None:
        sheet["B2"], sheet["B3"] = "Early_x000D_", "Late_x200B_"
        sheet["B4"] = "Late_x005F_x000D_"

    cells = cells_of(reviewed(book(escape)), "Bedtime")
    assert cells[:3] == ["Early", "Late", "Late_x000D_"]


def test_rich_text_and_reading_aids() -> None:
    data = edited(
        book(lambda sheet: None),
        "xl/worksheets/sheet1.xml",
        lambda xml: re.sub(
            r'<c r="B2"[^>]*>.*?</c>',
            '<c r="B2" t="inlineStr"><is><r><t>Ear</t></r><r><t>ly</t></r>'
            "<rPh sb='0' eb='1'><t>aid</t></rPh></is></c>",
            xml,
        ),
    )
    assert cells_of(reviewed(data), "Bedtime")[0] == "Early"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "old or password-protected Excel"),
        (b"<html><table></table></html>", "web page"),
    ],
)
def test_what_is_only_called_xlsx_is_named(data: bytes, what: str) -> None:
    with pytest.raises(TableError, match=what):
        read_source(data)
