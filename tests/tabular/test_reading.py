"""Every kind of file that is not a survey gets one sentence naming row, column or kind."""

import datetime
import io
import zipfile
from collections.abc import Callable

import pytest
from openpyxl import Workbook
from openpyxl.worksheet.formula import ArrayFormula, DataTableFormula

from engine.tabular.reading import read_table
from engine.tabular.source import MAX_FILE_BYTES, TableError
from tests.shared_data import shared_data


def xlsx_of(rows: list[list[object]]) -> bytes:
    workbook = Workbook()
    for row in rows:
        workbook.active.append(row)
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def zip_of(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


BAD_FILES = {
    "empty": (b"", "The file is empty"),
    "only a mark": (b"\xef\xbb\xbf\r\n", "The file is empty"),
    "header only": (b"id,Tidy\n", "a header but no rows"),
    "one column": (b"id:Tidy\n1:2\n", "Row 1 has only one column"),
    "a PDF": (b"%PDF-1.7\n\x00\x01", "The file is a PDF, not CSV or XLSX. Nothing was saved."),
    "old Excel": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 99,
        "an old or password-protected Excel",
    ),
    "an image": (b"\x89PNG\r\n\x1a\n" + b"\x00" * 50, "a PNG image"),
    "a web page": (b"<!DOCTYPE html><html></html>", "a web page"),
    "a control character": (b"id,Tidy\na\x01,1\nb,2\n", "Row 2, id: the cell holds a control"),
    "binary": (b"abc\x00\x01,def\n1,2\n", "a binary file"),
    "code page 1250": (
        "id,Město\n1,2\n".encode("cp1250"),
        "Row 1, column 2: the text is not UTF-8",
    ),
    "code page 1251": ("id,Пол\n1,2\n".encode("cp1251"), "Row 1, column 2: the text is not UTF-8"),
    "repeated header": (b"id,Tidy,tidy\n1,2,3\n", "Columns 2 and 3 are both called"),
    "unnamed column": (b"id,,Tidy\n1,2,3\n", "Column 2 has no name"),
    "long row": (b"id,Tidy\n1,2\n2,3,4\n", "Row 3 has 3 cells, but the header has 2 columns"),
    "short row": (b"id,a,b,c\n1,2\n", "Row 2 has 2 cells"),
    "open quote": (b'id,Tidy\n1,"2\n', "a quotation mark is not closed"),
    "huge cell": (
        b"id,Tidy\n1," + b"x" * 10_000_000 + b"\n",
        "Row 2, Tidy: the cell holds 10,",
    ),
    "a million columns": (b",".join(b"c%d" % k for k in range(1_000_000)), "1,000,000 columns"),
    "formula": (b'id,Tidy\n1,"=1+1"\n', "Row 2, Tidy: the cell holds a formula (=1+1)"),
    "too many rows": (b"id,a\n" + b"1,2\n" * 20_001, "more than 20,000 rows"),
    "damaged zip": (b"PK\x03\x04 nothing more", "a damaged ZIP or XLSX"),
    "other zip": (zip_of({"notes.txt": b"hello"}), "a ZIP archive"),
    "Word": (zip_of({"word/document.xml": b"<x/>"}), "a Word document"),
    "xlsx formula": (
        xlsx_of([["id", "Tidy"], ["a", "=1+1"]]),
        "Row 2, Tidy: the cell holds a formula",
    ),
    "xlsx array formula": (
        xlsx_of([["id", "Tidy"], ["a", ArrayFormula("B2", "=SUM(A1:A2)")]]),
        "Row 2, Tidy: the cell holds a formula (=SUM(A1:A2))",
    ),
    "xlsx data table": (
        xlsx_of([["id", "Tidy"], ["a", DataTableFormula("B2", r1="A1")]]),
        "Row 2, Tidy: the cell holds a formula (=table)",
    ),
    "xlsx header only": (xlsx_of([["id", "Tidy"]]), "a header but no rows"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_it_names_what_is_wrong(name: str) -> None:
    data, expected = BAD_FILES[name]
    with pytest.raises(TableError) as caught:
        read_table(data)
    message = str(caught.value)
    assert expected.lower() in message.lower()
    assert "\n" not in message
    assert "Traceback" not in message


def test_it_refuses_a_file_that_is_too_large() -> None:
    with pytest.raises(TableError, match="at most 20 MB"):
        read_table(b"x" * (MAX_FILE_BYTES + 1))


def test_it_refuses_a_zip_bomb_before_unpacking() -> None:
    bomb = zip_of({"xl/workbook.xml": b"<x/>", "xl/worksheets/sheet1.xml": b" " * 300_000_000})
    assert len(bomb) < 1_000_000
    with pytest.raises(TableError, match="unpacks to 300 MB"):
        read_table(bomb)


def test_it_refuses_entities_in_the_xml_of_a_workbook() -> None:
    good = xlsx_of([["id", "Tidy"], ["a", "1"], ["b", "2"]])
    entity = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>'
    with zipfile.ZipFile(io.BytesIO(good)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["xl/worksheets/sheet1.xml"] = entity
    with pytest.raises(TableError, match="damaged"):
        read_table(zip_of(members))


def changed_zip(
    data: bytes, part: str, change: Callable[[bytearray, zipfile.ZipInfo], None]
) -> bytes:
    """Change the bytes of a ZIP in place; ``change`` is told where the part begins."""
    changed = bytearray(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        change(changed, archive.getinfo(part))
    return bytes(changed)


def spoil(data: bytearray, part: zipfile.ZipInfo) -> None:
    start = part.header_offset + 30 + len(part.filename)
    data[start : start + 4] = b"\xff\xff\xff\xff"


def mark_encrypted(data: bytearray, part: zipfile.ZipInfo) -> None:
    data[part.header_offset + 6] |= 1
    entry = data.rindex(b"PK\x01\x02", 0, data.rindex(part.filename.encode()))
    data[entry + 8] |= 1


def mark_unknown_packing(data: bytearray, part: zipfile.ZipInfo) -> None:
    data[part.header_offset + 8] = 99
    entry = data.rindex(b"PK\x01\x02", 0, data.rindex(part.filename.encode()))
    data[entry + 10] = 99


@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/worksheets/sheet1.xml"])
@pytest.mark.parametrize("change", [spoil, mark_encrypted, mark_unknown_packing])
def test_it_refuses_parts_that_cannot_be_unpacked(part: str, change: Callable) -> None:
    data = changed_zip(xlsx_of([["id", "Tidy"], ["a", "1"], ["b", "2"]]), part, change)
    with pytest.raises(TableError, match="damaged"):
        read_table(data)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_it_reads_the_usual_spellings(encoding: str, delimiter: str) -> None:
    text = f'id{delimiter}Tidy\r\nä1{delimiter}"a,b"\r\n\r\nä2{delimiter}\r\n'
    table = read_table(text.encode(encoding))
    assert table.header == ("id", "Tidy")
    assert table.rows == (("ä1", "a,b"), ("ä2", ""))
    assert table.row_numbers == (2, 4)


@pytest.mark.parametrize(("line", "ending"), [("sep=;", "\r\n"), ("SEP=;", "\n"), ("sep=,", "\n")])
def test_it_skips_the_separator_line_of_excel(line: str, ending: str) -> None:
    """It used to be read as the header."""
    lines = [line, "id;Tidy", "a;1", "b;2", ""]
    table = read_table(ending.join(lines).encode())
    assert table.header == ("id", "Tidy")
    assert table.rows == (("a", "1"), ("b", "2"))
    assert table.row_numbers == (2, 3)


def test_it_believes_the_separator_line_where_it_fits() -> None:
    table = read_table(b"sep=;\nid;Tidy, at home, on most days\na;1\n")
    assert table.header == ("id", "Tidy, at home, on most days")


def test_it_reads_xlsx_values_as_people_see_them() -> None:
    table = read_table(xlsx_of([["id", "Score", "Ok"], [1, 2.0, True], [2, 2.5, None]]))
    assert table.rows == (("1", "2", "TRUE"), ("2", "2.5", ""))


def test_it_reads_the_young_people_survey_as_it_is() -> None:
    data = (shared_data("young_people_survey") / "responses.csv").read_bytes()
    table = read_table(data)
    assert (table.n_rows, table.n_columns) == (1010, 150)


def test_times_are_written_as_in_a_csv_file() -> None:
    table = read_table(xlsx_of([["id", "Bedtime"], ["a", datetime.time(22)], ["b", "23:30"]]))
    assert table.column(1) == ("22:00", "23:30")
