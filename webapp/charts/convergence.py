"""Convergence plot: two bounds that meet in the optimum, and below the gap on a log axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.charts.picture import Chart, Picture
from webapp.charts.scales import (
    LinearScale,
    LogScale,
    nice_step,
    padded_range,
    powers_around,
    tick_text,
)
from webapp.common import formats
from webapp.translation.lazy import gettext_lazy

MAX_TABLE_ROWS = 200
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ConvergenceSeries:
    """Trace of an iterative method; None for unknown values."""

    iterations: Sequence[int]
    seconds: Sequence[float]
    upper: Sequence[float | None]
    lower: Sequence[float | None]
    gap: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class ConvergenceWords:
    """Texts of the plot beside its lines."""

    upper: str = gettext_lazy("Objective: nothing can be better than this")
    lower: str = gettext_lazy("Best found so far")
    axis: str = gettext_lazy("Objective (nats)")
    gap: str = gettext_lazy(
        "Relative duality gap (no unit, log axis): how far from the best, at most"
    )


@dataclass(frozen=True, slots=True)
class _Frame:
    """Layout of a picture; one frame for desks, one for phones."""

    width: float
    left: float
    right: float  # of the panels; the current numbers are beside them
    bounds: tuple[float, float]
    gap: tuple[float, float]
    ticks: int
    columns: int  # of the legends


_DESK = _Frame(760.0, 66.0, 652.0, (52.0, 268.0), (342.0, 568.0), 6, 2)
_PHONE = _Frame(320.0, 58.0, 244.0, (66.0, 226.0), (312.0, 468.0), 3, 1)

LATE = 0.3  # share of the axis that may stay empty before the first bound
LINE = 18.0  # distance between the lines of a legend
LABEL = 16.0  # height of a number
_Key = tuple[str, str, str]  # classes of the line, its name, class of the words


def convergence_chart(
    series: ConvergenceSeries,
    *,
    by: str,
    target: float | None,
    is_live: bool,
    words: ConvergenceWords,
    seconds_left: float | None = None,
) -> Chart:
    """Draw upper and lower bound, the region of the optimum between them, the gap and its target.

    ``seconds_left`` draws the expected path of a live run from now to the target. The chart holds
    two pictures, for desks and for phones; CSS shows one.
    """
    horizontal = [float(x) for x in (series.iterations if by == "step" else series.seconds)]
    expected_end = None
    if is_live and seconds_left and target:
        rate = horizontal[-1] / max(series.seconds[-1], 1e-9) if by == "step" else 1.0
        expected_end = horizontal[-1] + seconds_left * rate
    x_label = _("Steps") if by == "step" else _("Time computing (seconds)")
    pictures = [
        _Drawing(frame, horizontal, series, target, expected_end, words).finish(x_label)
        for frame in (_DESK, _PHONE)
    ]
    svg = mark_safe(  # noqa: S308 - two finished pictures
        f'<div class="not-phone">{pictures[0]}</div><div class="phone-only">{pictures[1]}</div>'
    )
    return Chart(_("Convergence"), svg, *_table(series))


class _Drawing:
    """Picture of a trace in one frame."""

    def __init__(
        self,
        frame: _Frame,
        horizontal: list[float],
        series: ConvergenceSeries,
        target: float | None,
        expected_end: float | None,
        words: ConvergenceWords,
    ) -> None:
        self._frame = frame
        self._words = words
        self._target = target
        self._upper = _held(_known(horizontal, series.upper), horizontal[-1])
        self._lower = _held(_known(horizontal, series.lower), horizontal[-1])
        gaps = [(t, gap) for t, gap in _known(horizontal, series.gap) if gap > 0]
        self._gap = _held(gaps, horizontal[-1])
        # A gap that has reached its target has no expected path.
        is_ahead = bool(target and self._gap and self._gap[-1][1] > target)
        self._expected_end = expected_end if is_ahead else None
        self._keys = self._gap_keys()
        # Without bounds, the gap's panel moves up into their place.
        has_bounds = bool(self._upper or self._lower)
        self._shift = 0.0 if has_bounds else self._gap_title_y() - 14.0
        end = max(self._expected_end or 0.0, horizontal[-1]) or 1.0
        self._x = LinearScale(self._start(end), end, frame.left, frame.right)
        self._picture = Picture(
            frame.width,
            frame.gap[1] + 44.0 - self._shift,
            title=_("Convergence"),
            description=_describe(series, target),
        )

    def _start(self, end: float) -> float:
        """Return the start of the axis: zero, or the first bound if that took long."""
        known = [line[0][0] for line in (self._upper, self._lower, self._gap) if line]
        first = min(known, default=0.0)
        return first if LATE * end < first < end else 0.0

    def finish(self, x_label: str) -> SafeString:
        """Draw both panels and the axis; return the picture."""
        if self._upper or self._lower:
            self._draw_bounds()
        self._picture.open_group(transform=f"translate(0 {-self._shift:g})")
        self._draw_gap()
        self._draw_horizontal_axis(x_label)
        self._picture.close_group()
        return self._picture.finish()

    def _draw_bounds(self) -> None:
        """Draw the upper panel. Early bounds are far off: the axis fits the later two thirds."""
        picture, frame = self._picture, self._frame
        top, bottom = frame.bounds
        low, high = _focused_range([v for _, v in self._upper], [v for _, v in self._lower])
        y = LinearScale(low, high, bottom, top)
        picture.text(0, 14, self._words.axis, "chart-title")
        step = nice_step((high - low) / 6)
        for tick in y.ticks(6):
            picture.line(frame.left, y(tick), frame.right, y(tick), "chart-grid")
            picture.text(frame.left - 8, y(tick) + 4, tick_text(tick, step), anchor="end")
        # A little wider than the panel: the last step of a staircase runs along its edge.
        clip = picture.clip(frame.left, top, frame.right - frame.left + 2.0, bottom - top)
        upper = _staircase([(self._x(t), y(v)) for t, v in self._upper])
        lower = _staircase([(self._x(t), y(v)) for t, v in self._lower])
        picture.open_group(clip_path=clip)
        if upper and lower:
            picture.path([*upper, *reversed(lower)], "band", close=True)
        picture.path(upper, "chart-line tone-for")
        picture.path(lower, "chart-line tone-against dashed")
        picture.close_group()
        keys = [
            (f"tone-{tone} {dashes}", words, f"label-{tone}")
            for line, words, tone, dashes in (
                (upper, self._words.upper, "for", ""),
                (lower, self._words.lower, "against", "dashed"),
            )
            if line
        ]
        self._draw_legend(frame.bounds[0] - 16.0, keys)
        self._label_ends(upper, lower)

    def _draw_legend(self, y: float, keys: Sequence[_Key]) -> None:
        """Draw the names of the lines above a panel, where no line runs; y is the last row."""
        columns = self._frame.columns
        first = y - LINE * (-(-len(keys) // columns) - 1)
        for k, (line, words, cls) in enumerate(keys):
            left = self._frame.width / columns * (k % columns)
            baseline = first + LINE * (k // columns)
            self._picture.line(left, baseline - 4, left + 18, baseline - 4, f"chart-line {line}")
            self._picture.text(left + 24, baseline, words, cls)

    def _label_ends(self, upper: list[Point], lower: list[Point]) -> None:
        """Draw a dot with its number at the current end of each bound, where all lines end."""
        ends = [
            (line[-1], values[-1][1], dot)
            for line, values, dot in (
                (upper, self._upper, "point--filled fill-for"),
                (lower, self._lower, "point tone-against"),
            )
            if line
        ]
        heights = [point[1] for point, _, _ in ends]
        if len(ends) == 2 and heights[1] - heights[0] < LABEL:
            middle = 0.5 * (heights[0] + heights[1])
            heights = [middle - 0.5 * LABEL, middle + 0.5 * LABEL]
        for ((px, py), value, dot), height in zip(ends, heights, strict=True):
            self._picture.add("circle", cx=px, cy=py, r=4.0, cls=dot)
            self._picture.text(px + 9, height + 4, formats.number(value, 1), "chart-strong")

    def _draw_gap(self) -> None:
        """Draw the lower panel, on a log axis, with the target as a band."""
        picture, frame, target = self._picture, self._frame, self._target
        top, bottom = frame.gap
        title = self._words.gap if frame.columns > 1 else _("Relative duality gap (log axis)")
        picture.text(0, self._gap_title_y(), title, "chart-title")
        self._draw_legend(top - 22.0, self._keys)
        values = [gap for _, gap in self._gap] + ([target, target / 3] if target else [])
        y = LogScale(*powers_around(values or [1e-4, 1.0]), bottom, top)
        exponents = y.exponents()
        every = math.ceil(LABEL * (len(exponents) - 1) / (bottom - top))
        for exponent in exponents[::every]:
            height = y(10.0**exponent)
            picture.line(frame.left, height, frame.right, height, "chart-grid")
            picture.power(frame.left - 8, height + 4, exponent)
        if target:
            self._draw_target(y, target)
        pixels = _staircase([(self._x(t), y(gap)) for t, gap in self._gap])
        picture.path(pixels, "chart-line tone-text")
        if pixels:
            self._draw_now(y, pixels[-1])

    def _gap_keys(self) -> list[_Key]:
        """Return the other entries of the gap's legend: the target and the expected path."""
        keys = []
        if self._target:
            words = _("Certified at %(target)s %% or below") % {"target": f"{100 * self._target:g}"}
            keys.append(("tone-accent dotted", words, "label-accent"))
        if self._expected_end:
            keys.append(("tone-muted dotted", _("Expected from now on"), "label-muted"))
        return keys

    def _gap_title_y(self) -> float:
        lines = -(-len(self._keys) // self._frame.columns)
        return self._frame.gap[0] - 22.0 - LINE * lines

    def _draw_target(self, y: LogScale, target: float) -> None:
        picture, frame = self._picture, self._frame
        top, bottom = y(target), frame.gap[1]
        picture.add(
            "rect",
            x=frame.left,
            y=top,
            width=frame.right - frame.left,
            height=bottom - top,
            cls="band",
        )
        picture.line(frame.left, top, frame.right, top, "chart-line tone-accent dotted")

    def _draw_now(self, y: LogScale, now: Point) -> None:
        """Draw the current end with its number, above the expected path, which falls."""
        picture, (px, py), gap = self._picture, now, self._gap[-1][1]
        if self._expected_end and self._target:
            end = (self._x(self._expected_end), y(self._target))
            picture.path([now, end], "chart-line tone-muted dotted")
        picture.add("circle", cx=px, cy=py, r=4.0, cls="point tone-text")
        before = _("now") + " " if self._expected_end and self._frame.columns > 1 else ""
        picture.scientific(px + 9, py - 6 if self._expected_end else py + 4, gap, before=before)

    def _draw_horizontal_axis(self, label: str) -> None:
        picture, frame, x = self._picture, self._frame, self._x
        bottom = frame.gap[1]
        step = nice_step((x.high - x.low) / frame.ticks)
        for tick in x.ticks(frame.ticks):
            picture.line(x(tick), bottom, x(tick), bottom + 4, "chart-axis")
            picture.text(x(tick), bottom + 18, tick_text(tick, step), anchor="middle")
        picture.text(0.5 * (frame.left + frame.right), bottom + 38, label, anchor="middle")


def _known(xs: list[float], values: Sequence[float | None]) -> list[Point]:
    return [
        (x, float(v)) for x, v in zip(xs, values, strict=True) if v is not None and math.isfinite(v)
    ]


def _held(points: list[Point], end: float) -> list[Point]:
    """Return the points extended to the last report, so that all lines end there."""
    return [*points, (end, points[-1][1])] if points and points[-1][0] < end else points


def _focused_range(upper: list[float], lower: list[float]) -> Point:
    """Return the range of the later two thirds of the bounds, with a margin."""
    tails = [values[len(values) // 3 :] for values in (upper, lower) if values]
    return padded_range([value for tail in tails for value in tail], share=0.15)


def _staircase(points: list[Point]) -> list[Point]:
    """Return a staircase: a bound holds until the next one is known, without slanted lines."""
    steps: list[Point] = points[:1]
    for (_x, y_before), (x_now, y_now) in pairwise(points):
        steps += [(x_now, y_before), (x_now, y_now)]
    return steps


def _describe(series: ConvergenceSeries, target: float | None) -> str:
    gap = next((g for g in reversed(series.gap) if g is not None), None)
    count = len(series.iterations)
    sentences = [
        ngettext(
            "%(count)s report over %(seconds)s seconds.",
            "%(count)s reports over %(seconds)s seconds.",
            count,
        )
        % {"count": count, "seconds": f"{series.seconds[-1]:.0f}"}
    ]
    if gap is not None:
        sentences.append(_("The relative gap is now %(gap)s.") % {"gap": f"{gap:.2g}"})
    if target is not None:
        sentences.append(_("The target is %(target)s.") % {"target": f"{target:.2g}"})
    return " ".join(sentences)


def _table(series: ConvergenceSeries) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    stride = max(1, -(-len(series.iterations) // MAX_TABLE_ROWS))
    last = len(series.iterations) - 1
    chosen = [k for k in range(last + 1) if k % stride == 0 or k == last]
    rows = tuple(
        (
            formats.number(series.iterations[k]),
            formats.number(series.seconds[k], 1),
            formats.number(series.upper[k], 2),
            formats.number(series.lower[k], 2),
            "" if (gap := series.gap[k]) is None else f"{gap:.2e}".replace("-", formats.MINUS),
        )
        for k in chosen
    )
    columns = (_("Step"), _("Seconds"), _("Upper bound"), _("Lower bound"), _("Relative gap"))
    return columns, rows
