"""Tables of objects as files: CSV and XLSX."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from defusedcsv import csv as safe_csv
from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
Row = dict[str, Any]
MOST_CELLS_ROWS = 1_048_575  # rows of an XLSX sheet below its header


def object_lines(
    rows: Iterable[tuple[str, Row]], *, unit: str, factor: float = 1.0
) -> Iterator[list[Any]]:
    """Yield the header and one line an object; ``rows`` are pairs of image and object.

    Centroids are in pixels of the image, ``factor`` of which a pixel of the mask spans.
    """
    yield [
        "image",
        "class",
        "object",
        f"area_{unit}2",
        f"perimeter_{unit}",
        "centroid_x_px",
        "centroid_y_px",
        "mean_intensity",
        "mean_probability",
    ]
    for name, row in rows:
        yield [
            name,
            row.get("class", ""),
            int(row["number"]),
            _short(row["area"]),
            _short(row["perimeter"]),
            _short((row["column"] + 0.5) * factor - 0.5),
            _short((row["row"] + 0.5) * factor - 0.5),
            _short(row["mean"]),
            "" if row["sureness"] is None else _short(row["sureness"]),
        ]


def _short(value: float) -> float:
    """Six digits are more than any picture tells."""
    return float(f"{value:.6g}")


def objects_csv(rows: Iterable[tuple[str, Row]], *, unit: str, factor: float = 1.0) -> bytes:
    """Return the table as CSV, safe to open in a spreadsheet."""
    buffer = io.StringIO(newline="")
    lines = object_lines(rows, unit=unit, factor=factor)
    safe_csv.writer(buffer, quoting=csv.QUOTE_MINIMAL).writerows(lines)
    return buffer.getvalue().encode("utf-8-sig")


def objects_xlsx(rows: Iterable[tuple[str, Row]], *, unit: str, factor: float = 1.0) -> bytes:
    """Return the table as XLSX; text stays text, whatever it begins with."""
    book = Workbook(write_only=True)
    sheet = book.create_sheet("Objects")
    for number, line in enumerate(object_lines(rows, unit=unit, factor=factor)):
        if number > MOST_CELLS_ROWS:
            break
        cells = []
        for value in line:
            cell = WriteOnlyCell(sheet, value=value)
            if isinstance(value, str):
                cell.data_type = "s"
            cells.append(cell)
        sheet.append(cells)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()
