"""Line charts: any series, ROC curves, reliability."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from webapp.charts.picture import Chart, Picture
from webapp.charts.scales import LinearScale, LogScale, nice_step, padded_range, tick_text
from webapp.common import formats

WIDTH, HEIGHT = 400.0, 290.0
LEFT, RIGHT, TOP, BOTTOM = 50.0, 390.0, 12.0, 240.0
MAX_PATH_POINTS = 400
MAX_TABLE_ROWS = 100


@dataclass(frozen=True, slots=True)
class Series:
    """Chart line. Tones: for, against, accent, text, muted; dashes: '', dashed or dotted."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    tone: str = "for"
    dashes: str = ""


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
    description: str = "",
) -> Chart:
    """Draw series on common linear axes, with a legend."""
    xs = [float(v) for s in series for v in s.x]
    ys = [float(v) for s in series for v in s.y]
    x = LinearScale(*(x_range or padded_range(xs, share=0.02)), LEFT, RIGHT)
    y = LinearScale(*(y_range or padded_range(ys)), BOTTOM, TOP)
    height = HEIGHT + 20.0 * len(series)
    picture = Picture(WIDTH, height, title=title, description=description)
    _axes(picture, x, y, x_label, y_label)
    for k, line in enumerate(series):
        points = _thin([(x(a), y(b)) for a, b in zip(line.x, line.y, strict=True)])
        picture.path(points, f"chart-line tone-{line.tone} {line.dashes}")
        _legend(picture, LEFT, HEIGHT + 8 + 20.0 * k, line)
    return Chart(title, picture.finish(), *_long_table(series, x_label, y_label))


def roc_chart(
    curves: Sequence[tuple[str, Sequence[float], Sequence[float], float]],
    *,
    title: str = "ROC",
    x_label: str,
    y_label: str,
) -> Chart:
    """Draw ROC curves.

    ``curves``: (label, false positive rates, true positive rates, AUC), the model first, then its
    competitors; the diagonal is added as chance.
    """
    styles = (("for", ""), ("against", "dashed"), ("accent", "dashed"), ("text", ""))
    x = LinearScale(0.0, 100.0, LEFT, RIGHT)
    y = LinearScale(0.0, 100.0, BOTTOM, TOP)
    curves_in_words = ", ".join(f"{label}: AUC {auc:.2f}" for label, *_points, auc in curves)
    description = _("%(curves)s; chance 0.50.") % {"curves": curves_in_words}
    picture = Picture(WIDTH, HEIGHT, title=title, description=description)
    _axes(picture, x, y, x_label, y_label)
    picture.line(x(0), y(0), x(100), y(100), "chart-line tone-muted dotted")
    legend = [Series(_("Chance, 0.50"), (), (), "muted", "dotted")]
    for (label, fpr, tpr, auc), (tone, dashes) in reversed(list(zip(curves, styles, strict=False))):
        points = _thin([(x(100 * a), y(100 * b)) for a, b in zip(fpr, tpr, strict=True)])
        picture.path(points, f"chart-line tone-{tone} {dashes}")
        legend.insert(0, Series(f"{label}, {auc:.2f}", (), (), tone, dashes))
    # Text is larger on phones: room for 8.6 units a character.
    legend_x = RIGHT - 36.0 - 8.6 * max(len(line.label) for line in legend)
    for k, line in enumerate(legend):
        _legend(picture, legend_x, BOTTOM - 14 - 20.0 * (len(legend) - 1 - k), line)
    grid = [k / 20 for k in range(21)]
    rows = tuple(
        (
            formats.number(100 * f),
            *(formats.number(100 * _interpolate(f, x, y), 1) for _label, x, y, _auc in curves),
        )
        for f in grid
    )
    return Chart(title, picture.finish(), (x_label, *(label for label, *_ in curves)), rows)


def reliability_chart(
    bins: Sequence[tuple[float, float, float, float, int]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    log: bool = True,
) -> Chart:
    """Draw predicted against observed frequency.

    ``bins``: (mean predicted, observed, low, high of the 95 % range, count), as fractions. On log
    axes, bins without an observation are at the foot of the axis with their range.
    """
    values = [100 * v for row in bins for v in row[:4] if v > 0]
    if log and values:
        low, high = min(values) / 1.4, max(values) * 1.4
        x: LinearScale | LogScale = LogScale(low, high, LEFT, RIGHT)
        y: LinearScale | LogScale = LogScale(low, high, BOTTOM, TOP)
    else:
        low, high = 0.0, 100.0
        x, y = LinearScale(low, high, LEFT, RIGHT), LinearScale(low, high, BOTTOM, TOP)
    sentences = (_("Dotted line: predicted = observed."), _("Bars: 95 % range."))
    description = " ".join(sentences)
    picture = Picture(WIDTH, HEIGHT + 42, title=title, description=description)
    _reliability_axes(picture, x, y, x_label, y_label)
    picture.line(x(low), y(low), x(high), y(high), "chart-line tone-muted dotted")
    for predicted, observed, lower, upper, _count in bins:
        px = x(100 * predicted)
        picture.line(px, y(100 * lower), px, y(100 * upper), "chart-line tone-for")
        picture.add("circle", cx=px, cy=y(100 * observed), r=4.0, cls="point--filled fill-for")
    for number, sentence in enumerate(sentences):  # one line would make the panel too narrow
        picture.text(0.5 * (LEFT + RIGHT), HEIGHT + 12 + 18 * number, sentence, anchor="middle")
    rows = tuple(
        (
            formats.per_cent(p, 3),
            formats.per_cent(o, 3),
            formats.span(formats.per_cent(lo, 3), formats.per_cent(hi, 3)),
            formats.number(n),
        )
        for p, o, lo, hi, n in bins
    )
    columns = (_("Predicted"), _("Observed"), _("95 % range"), _("Count"))
    return Chart(title, picture.finish(), columns, rows)


def _axes(picture: Picture, x: LinearScale, y: LinearScale, x_label: str, y_label: str) -> None:
    y_step, x_step = nice_step((y.high - y.low) / 4), nice_step((x.high - x.low) / 4)
    for tick in y.ticks(4):
        picture.line(LEFT, y(tick), RIGHT, y(tick), "chart-grid")
        picture.text(LEFT - 8, y(tick) + 4, tick_text(tick, y_step), anchor="end")
    for tick in x.ticks(4):
        picture.text(x(tick), BOTTOM + 18, tick_text(tick, x_step), anchor="middle")
    _axis_labels(picture, x_label, y_label)


def _reliability_axes(
    picture: Picture,
    x: LinearScale | LogScale,
    y: LinearScale | LogScale,
    x_label: str,
    y_label: str,
) -> None:
    if isinstance(x, LinearScale) or isinstance(y, LinearScale):
        _axes(picture, x, y, x_label, y_label)  # type: ignore[arg-type]
        return
    for exponent in y.exponents():
        value = 10.0**exponent
        shown = formats.number(value, max(0, -exponent))
        picture.line(LEFT, y(value), RIGHT, y(value), "chart-grid")
        picture.text(LEFT - 8, y(value) + 4, shown, anchor="end")
        picture.text(x(value), BOTTOM + 18, shown, anchor="middle")
    _axis_labels(picture, x_label, y_label)


def _axis_labels(picture: Picture, x_label: str, y_label: str) -> None:
    middle = 0.5 * (TOP + BOTTOM)
    picture.text(0.5 * (LEFT + RIGHT), BOTTOM + 38, x_label, anchor="middle")
    picture.add("text", y_label, x=11.0, y=middle, text_anchor="middle",
                transform=f"rotate(-90 11 {middle:g})")  # fmt: skip


def _legend(picture: Picture, x: float, y: float, line: Series) -> None:
    picture.line(x, y - 4, x + 22, y - 4, f"chart-line tone-{line.tone} {line.dashes}")
    picture.text(x + 30, y, line.label, "chart-strong")


def _thin(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    stride = max(1, len(points) // MAX_PATH_POINTS)
    return points if stride == 1 else [*points[::stride], points[-1]]


def _interpolate(x: float, xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return the line's value at x, with xs ascending; at a jump, the upper value."""
    best = 0.0
    for k in range(len(xs)):
        if xs[k] <= x:
            best = ys[k]
        elif k and xs[k] > xs[k - 1]:
            share = (x - xs[k - 1]) / (xs[k] - xs[k - 1])
            return float(ys[k - 1] + share * (ys[k] - ys[k - 1]))
    return float(best)


def _long_table(
    series: Sequence[Series], x_label: str, y_label: str
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    rows = []
    for line in series:
        stride = max(1, -(-len(line.x) // MAX_TABLE_ROWS))
        rows += [
            (line.label, _plain(a), _plain(b))
            for a, b in list(zip(line.x, line.y, strict=True))[::stride]
        ]
    return (_("Line"), x_label, y_label), tuple(rows)


def _plain(value: float) -> str:
    if not math.isfinite(value):
        return ""
    return formats.number(value, 0 if float(value).is_integer() else 4)
