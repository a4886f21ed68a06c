"""Reader of a workbook as people see it, without trusting its size, its XML or its formulas.

The reader parses the parts itself, because libraries do not give what people see: hidden rows
and columns, merged cells, number formats, the value that a formula had when the file was saved.
Names of elements are compared without their namespace, so that both kinds of OOXML are read.
"""

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse, parse

from engine.tabular.number_formats import BUILT_IN, GENERAL, plain_number, shown_number
from engine.tabular.source import Limits, Line, Sheet, Source, TableError, check_width, trimmed
from engine.tabular.text import clean_text

_MAX_MEMBERS = 2_000
_MAX_RATIO = 200
_MAX_SHEETS = 40
_MAX_CELLS = 4_000_000  # of all sheets together
_MAX_MERGED_ROWS = 200_000  # cells that downward merges may fill
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")  # a character that XML cannot hold
_REFERENCE = re.compile(r"\$?([A-Za-z]{1,3})\$?(\d{1,7})")
_WORKBOOK = "xl/workbook.xml"
_DAMAGED = (
    DefusedXmlException,
    ParseError,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    IndexError,
    SyntaxError,
    OSError,
    OverflowError,
    EOFError,
    RuntimeError,  # an encrypted part, or an unknown compression
    zipfile.BadZipFile,
    zlib.error,
)


def read_xlsx(data: bytes, limits: Limits) -> Source:
    """Read the visible sheets as text; raise TableError naming the problem.

    Hidden sheets hold lists for menus, or discarded data; they are read only if no other sheet
    has cells.
    """
    _check_unzipped_size(data, limits)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _read_sheets(_Workbook(archive), limits)
    except _DAMAGED as error:
        if isinstance(error, TableError):
            raise
        raise TableError("The XLSX file is damaged and cannot be read.") from error


def _check_unzipped_size(data: bytes, limits: Limits) -> None:
    """Refuse a zip bomb by the sizes in its directory; zipfile enforces these sizes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise TableError("The file is a damaged ZIP or XLSX file. Nothing was saved.") from error
    total = sum(member.file_size for member in members)
    is_bomb = total > limits.unzipped_bytes or (
        total > 10_000_000 and total > _MAX_RATIO * len(data)
    )
    if is_bomb or len(members) > _MAX_MEMBERS:
        raise TableError(
            f"The XLSX file unpacks to {total / 1e6:,.0f} MB, far more than a survey needs. "
            "Nothing was read."
        )


@dataclass(frozen=True, slots=True)
class _SheetPart:
    """A sheet of the workbook: its name, its visibility, and the part with its cells."""

    name: str
    is_shown: bool
    path: str


class _Workbook:
    """Parts that cells refer to: shared texts, formats, the first day of its calendar."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._names = {name.replace("\\", "/").lower(): name for name in archive.namelist()}
        book = self._root(_WORKBOOK)
        self.is_1904 = any(
            _is_true(_attribute(one, "date1904")) for one in _all(book, "workbookPr")
        )
        targets = self._targets()
        self.sheets = [
            _SheetPart(
                _attribute(one, "name"),
                _attribute(one, "state") in ("", "visible"),
                targets[_attribute(one, "id")],
            )
            for one in _all(book, "sheet")
            if _attribute(one, "id") in targets
        ]
        self.texts = list(self._shared_texts())
        self.formats = self._formats()

    def open(self, path: str) -> IO[bytes]:
        """Open a part, whatever the capitals and slashes of its name."""
        return self._archive.open(self._names[path.lower()])

    def _root(self, path: str) -> Element:
        with self.open(path) as part:
            root: Element | None = parse(part).getroot()
        if root is None:
            raise ValueError(f"{path} has no root")
        return root

    def _targets(self) -> dict[str, str]:
        """Return {relation: path} of the sheets with cells; charts and macros have none."""
        found = {}
        for one in _all(self._root("xl/_rels/workbook.xml.rels"), "relationship"):
            if _attribute(one, "type").endswith("/worksheet"):
                target = _attribute(one, "target").replace("\\", "/")
                path = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
                found[_attribute(one, "id")] = posixpath.normpath(path)
        return found

    def _shared_texts(self) -> Iterator[str]:
        if "xl/sharedstrings.xml" not in self._names:
            return
        with self.open("xl/sharedStrings.xml") as part:
            for _, element in iterparse(part, events=("end",)):
                if _name(element) == "si":
                    yield _text_of(element)
                    element.clear()

    def _formats(self) -> list[str]:
        """Return the number format code of every cell style."""
        if "xl/styles.xml" not in self._names:
            return []
        root = self._root("xl/styles.xml")
        codes = {
            int(_attribute(one, "numfmtid")): _attribute(one, "formatcode")
            for one in _all(root, "numFmt")
        }
        styles = next(_all(root, "cellXfs"), None)
        numbers = [int(_attribute(one, "numfmtid") or 0) for one in styles or ()]
        return [codes.get(number) or BUILT_IN.get(number, GENERAL) for number in numbers]


def _read_sheets(book: _Workbook, limits: Limits) -> Source:
    for is_shown in (True, False):
        some = [sheet for sheet in book.sheets if sheet.is_shown == is_shown]
        if len(some) > _MAX_SHEETS:
            raise TableError(f"The file has {len(some)} sheets; at most {_MAX_SHEETS} are read.")
        sheets, n_cells = [], 0
        for part in some:
            where = f"The sheet “{part.name[:40]}”" if len(some) > 1 else "The sheet"
            sheet = _SheetReader(book, limits, where).read(part)
            n_cells += sum(len(line.cells) for line in sheet.lines)
            if n_cells > _MAX_CELLS:
                raise TableError(f"The file has more than {_MAX_CELLS:,} cells, the most read.")
            sheets.append(sheet)
        if any(sheet.lines for sheet in sheets):
            return Source(tuple(sheets), "XLSX")
    raise TableError("The XLSX file has no sheet with cells.")


class _SheetReader:
    """Reader of the rows of one sheet, and of its hidden and merged cells."""

    def __init__(self, book: _Workbook, limits: Limits, where: str) -> None:
        self._book, self._limits, self._where = book, limits, where
        self._rows: dict[int, tuple[list[str], bool]] = {}
        self._hidden_columns: set[int] = set()
        self._merges: list[tuple[int, int, int, int]] = []

    def read(self, part: _SheetPart) -> Sheet:
        """Return the sheet; raise TableError if it is larger than the limit."""
        number, n_seen, data = 0, 0, None
        with self._book.open(part.path) as file:
            for event, element in iterparse(file, events=("start", "end")):
                name = _name(element)
                if event == "start":
                    data = element if name == "sheetData" else data
                elif name == "row":
                    number = int(_attribute(element, "r") or number + 1)
                    self._take_row(number, element)
                    element.clear()
                    n_seen += 1
                    if data is not None and n_seen % 1_000 == 0:
                        data.clear()  # a sheet may declare a million empty rows
                elif name == "col":
                    self._take_column(element)
                elif name == "mergeCell":
                    self._take_merge(_attribute(element, "ref"))
        self._fill_down()
        lines = tuple(
            Line(number, trimmed(cells), is_hidden)
            for number, (cells, is_hidden) in sorted(self._rows.items())
            if any(cells)
        )
        across = [(top, left, right) for top, left, _, right in self._merges if right > left]
        return Sheet(part.name, lines, tuple(sorted(self._hidden_columns)), tuple(across))

    def _take_row(self, number: int, row: Element) -> None:
        cells: list[str] = []
        column = -1
        for cell in row:
            if _name(cell) != "c":
                continue
            reference = _REFERENCE.fullmatch(_attribute(cell, "r"))
            column = _column(reference[1]) if reference else column + 1
            text = self._text(cell)
            if not text:
                continue
            check_width(column + 1, self._limits, self._where)
            cells += [""] * (column + 1 - len(cells))
            cells[column] = text
        if any(cells):
            if len(self._rows) > self._limits.rows:
                raise TableError(
                    f"{self._where} has more than {self._limits.rows:,} rows, "
                    "the most that is read."
                )
            height = _attribute(row, "ht")
            is_hidden = _is_true(_attribute(row, "hidden")) or (bool(height) and not float(height))
            self._rows[number] = (cells, is_hidden)

    def _text(self, cell: Element) -> str:
        kind, value, formula = _attribute(cell, "t") or "n", None, None
        for child in cell:
            name = _name(child)
            if name == "v":
                value = child.text or ""
            elif name == "f":
                formula = child.text or "table"
            elif name == "is":
                return clean_text(_text_of(child))
        if value is None or (value == "" and kind != "str"):
            # The formula was never computed: no program has opened the file since.
            return "" if formula is None else f"={formula.lstrip('=')}"
        if kind == "s":
            return clean_text(self._book.texts[int(value)])
        if kind == "b":
            return "TRUE" if _is_true(value) else "FALSE"
        if kind == "n":
            return clean_text(self._number(value, _attribute(cell, "s")))
        if kind == "d":
            return _iso(value)
        return clean_text(_unescaped(value))  # the text of a formula, or an error such as #REF!

    def _number(self, text: str, style: str) -> str:
        value = float(text)
        formats = self._book.formats
        code = formats[int(style)] if style and int(style) < len(formats) else GENERAL
        if code == GENERAL:
            return plain_number(value)
        return shown_number(value, code, is_1904=self._book.is_1904)

    def _take_column(self, element: Element) -> None:
        width = _attribute(element, "width")
        if _is_true(_attribute(element, "hidden")) or (width and not float(width)):
            first = int(_attribute(element, "min"))
            last = min(int(_attribute(element, "max")), first + self._limits.columns)
            self._hidden_columns |= set(range(first - 1, min(last, self._limits.columns)))

    def _take_merge(self, reference: str) -> None:
        ends = [_REFERENCE.fullmatch(end) for end in reference.split(":")]
        if len(ends) == 2 and ends[0] and ends[1]:
            (left, top), (right, bottom) = (ends[0].groups(), ends[1].groups())
            self._merges.append((int(top), _column(left), int(bottom), _column(right)))

    def _fill_down(self) -> None:
        """Give cells that are merged with the one above them its text, as people read them."""
        filled = 0
        for top, left, bottom, right in self._merges:
            cells, _ = self._rows.get(top, ([], False))
            if left != right or left >= len(cells) or not cells[left]:
                continue
            for number in range(top + 1, bottom + 1):
                below = self._rows.get(number)
                if below is not None:  # a row with only this cell filled counts as empty
                    below[0].extend([""] * (left + 1 - len(below[0])))
                    below[0][left] = cells[left]
                filled += 1
                if filled > _MAX_MERGED_ROWS:
                    raise TableError(f"{self._where} has too many merged cells to be read.")


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _all(root: Element, name: str) -> Iterator[Element]:
    wanted = name.lower()
    return (one for one in root.iter() if _name(one).lower() == wanted)


def _attribute(element: Element, name: str) -> str:
    """Return an attribute by its name without namespace and capitals; empty if absent."""
    found = element.attrib.get(name)
    if found is not None:
        return found
    items: Iterable[tuple[str, Any]] = element.attrib.items()
    return next((str(v) for key, v in items if key.rpartition("}")[2].lower() == name), "")


def _is_true(text: str) -> bool:
    return text.strip().lower() in ("1", "true", "on")


def _column(letters: str) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + ord(letter) - 64
    return number - 1


def _text_of(element: Element) -> str:
    """Return the text of a cell with all its runs, without the reading aids of East Asian text."""
    found = []
    for child in element:
        if _name(child) == "t":
            found.append(child.text or "")
        elif _name(child) == "r":
            found += [one.text or "" for one in child if _name(one) == "t"]
    return _unescaped("".join(found))


def _unescaped(text: str) -> str:
    if "_x" not in text:
        return text
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _iso(text: str) -> str:
    """Return a date of a strict workbook in the form of other dates."""
    day, _, clock = text.strip().rstrip("Z").partition("T")
    clock = clock.partition(".")[0]
    if clock in ("", "00:00:00"):
        return clean_text(day)
    return clean_text(f"{day} {clock.removesuffix(':00')}")
