"""Heatmap of a matrix in cividis, which stays in order for colour-blind readers and in grey."""

import math
from collections.abc import Sequence

from django.utils.translation import gettext as _

from webapp.charts.picture import Chart, Picture
from webapp.common import formats

# Anchors of the cividis map (Nunez, Anderton & Renslow 2018), equally spaced in 0..1.
_CIVIDIS = (
    (0, 34, 78), (8, 51, 112), (53, 69, 108), (79, 87, 108), (102, 105, 112), (125, 124, 120),
    (148, 142, 119), (174, 163, 113), (200, 184, 102), (229, 207, 82), (254, 232, 56),
)  # fmt: skip
SIZE, LEFT, TOP, BAR = 300.0, 62.0, 10.0, 14.0
NAME_HEIGHT = 14.0
CHARACTER = 8.6  # units per character, on phones, where text is larger


def cividis_hex(share: float) -> str:
    """Return the colour of a share in 0..1 as #rrggbb."""
    position = min(max(share, 0.0), 1.0) * (len(_CIVIDIS) - 1)
    k = min(int(position), len(_CIVIDIS) - 2)
    part = position - k
    rgb = (round(a + part * (b - a)) for a, b in zip(_CIVIDIS[k], _CIVIDIS[k + 1], strict=True))
    return "#" + "".join(f"{value:02x}" for value in rgb)


def heatmap(
    values: Sequence[Sequence[float]],
    *,
    title: str,
    labels: Sequence[str],
    column_labels: Sequence[str] | None = None,
    unit_label: str,
    low: float | None = None,
    high: float | None = None,
    log: bool = False,
) -> Chart:
    """Draw a matrix (at most about 100 x 100) with its colour bar; NaN cells stay empty."""
    columns = list(labels if column_labels is None else column_labels)
    known = [float(v) for row in values for v in row if math.isfinite(v) and (v > 0 or not log)]
    low = min(known, default=0.0) if low is None else low
    high = max(known, default=1.0) if high is None else high
    share = _share_function(low, high, log)
    cell = SIZE / max(len(labels), len(columns), 1)
    right = LEFT + cell * len(columns)
    bottom = TOP + cell * len(labels)
    ticks = _ticks((low, high), log)
    label_x = right + 16 + BAR + 6 + CHARACTER * max(len(text) for _, text in ticks) + 16
    sizes = {"rows": len(labels), "columns": len(columns), "unit": unit_label}
    picture = Picture(
        label_x + 8,
        bottom + 58,
        title=title,
        description=_("%(rows)s by %(columns)s, %(unit)s.") % sizes,
    )
    for r, row in enumerate(values):
        for c, value in enumerate(row):
            if math.isfinite(value):
                picture.raw(
                    f'<rect x="{LEFT + c * cell:.2f}" y="{TOP + r * cell:.2f}" '
                    f'width="{cell + 0.05:.2f}" height="{cell + 0.05:.2f}" '
                    f'fill="{cividis_hex(share(value))}"/>'
                )
    _names(picture, labels, columns, cell, bottom)
    _colour_bar(picture, right + 16, bottom, ticks)
    middle = 0.5 * (TOP + bottom)
    picture.add("text", unit_label, x=label_x, y=middle, text_anchor="middle",
                transform=f"rotate(-90 {label_x:.1f} {middle:.1f})")  # fmt: skip
    rows = tuple(
        (str(labels[r]), *(formats.number(value, 4) for value in row))
        for r, row in enumerate(values)
    )
    return Chart(title, picture.finish(), ("", *(str(c) for c in columns)), rows)


def _share_function(low: float, high: float, log: bool):
    if log and 0 < low < high:
        span = math.log(high / low)
        return lambda value: math.log(max(value, low) / low) / span
    width = (high - low) or 1.0
    return lambda value: (value - low) / width


def _names(
    picture: Picture, labels: Sequence[str], columns: Sequence[str], cell: float, bottom: float
) -> None:
    """Draw the names along both sides, as many as fit."""
    for name, middle in _places(labels, cell):
        picture.text(LEFT - 6, TOP + middle + 4, name, anchor="end")
    for name, middle in _places(columns, cell):
        x = LEFT + middle
        picture.add("text", name, x=x, y=bottom + 8, text_anchor="end",
                    transform=f"rotate(-60 {x:.1f} {bottom + 8:.1f})")  # fmt: skip


def _places(names: Sequence[str], cell: float) -> list[tuple[str, float]]:
    """Return the positions of names along a side: centred on their cells, longest stretches first.

    An empty name continues the one before it. A name without room beside a longer one is left out.
    """
    starts = [k for k, name in enumerate(names) if name]
    stretches = list(zip(starts, [*starts[1:], len(names)], strict=True))
    placed: list[tuple[str, float]] = []
    for start, end in sorted(stretches, key=lambda ends: ends[0] - ends[1]):
        middle = 0.5 * (start + end) * cell
        if all(abs(middle - other) >= NAME_HEIGHT for _, other in placed):
            placed.append((names[start], middle))
    return placed


def _ticks(limits: tuple[float, float], log: bool) -> list[tuple[float, str]]:
    """Return the ticks of the colour bar: shares of its height, and their numbers."""
    low, high = limits
    ticks = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        value = low * (high / low) ** share if log and low > 0 else low + share * (high - low)
        ticks.append((share, f"{value:.3g}".replace("-", formats.MINUS)))
    return ticks


def _colour_bar(
    picture: Picture, x: float, bottom: float, ticks: Sequence[tuple[float, str]]
) -> None:
    height = bottom - TOP
    for k in range(64):
        picture.raw(
            f'<rect x="{x:.1f}" y="{bottom - (k + 1) * height / 64:.2f}" width="{BAR:g}" '
            f'height="{height / 64 + 0.3:.2f}" fill="{cividis_hex((k + 0.5) / 64)}"/>'
        )
    for share, text in ticks:
        picture.text(x + BAR + 6, bottom - share * height + 4, text)
