"""Tables of objects as files: CSV and XLSX."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from engine.datasets.calibration import PixelSize
from webapp.tabular.tables_out import as_csv, as_xlsx

Row = dict[str, Any]
CHANNELS = ("channel_0", "channel_1", "channel_2")
SHAPES = ("diameter", "eccentricity", "solidity", "feret")
MOST_LINES = 1_048_576  # lines of an XLSX sheet, including its header


def object_lines(
    rows: Iterable[tuple[str, Row]], *, unit: str, factor: float = 1.0
) -> Iterator[list[Any]]:
    """Yield the header and one line per object; ``rows`` are pairs of image and object.

    Centroids are in pixels of the image; a pixel of the mask spans ``factor`` of them.
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
        "pixel_width_um",
        "pixel_height_um",
        f"equivalent_diameter_{unit}",
        "eccentricity",
        "solidity",
        f"feret_diameter_{unit}",
        *[f"mean_intensity_{name}" for name in ("channel_1", "channel_2", "channel_3")],
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
            "" if row["mean"] is None else _short(row["mean"]),
            "" if row["sureness"] is None else _short(row["sureness"]),
            *_sides(row.get("pixel_size")),
            *[_blank(row.get(name)) for name in (*SHAPES, *CHANNELS)],
        ]


def _blank(value: float | None) -> float | str:
    return "" if value is None else _short(value)


def _sides(size: PixelSize | None) -> list[float | str]:
    return [_short(size.x), _short(size.y)] if size else ["", ""]


def _short(value: float) -> float:
    """Return a number with six significant digits, more than any image resolves."""
    return float(f"{value:.6g}")


def objects_csv(rows: Iterable[tuple[str, Row]], *, unit: str, factor: float = 1.0) -> bytes:
    """Return the table of objects as CSV."""
    return as_csv(object_lines(rows, unit=unit, factor=factor))


def objects_xlsx(rows: Iterable[tuple[str, Row]], *, unit: str, factor: float = 1.0) -> bytes:
    """Return the table of objects as XLSX, cut at the length of a sheet."""
    lines = islice(object_lines(rows, unit=unit, factor=factor), MOST_LINES)
    return as_xlsx({"Objects": lines})
