"""Two bounds on one axis that meet in the optimum, and below them the gap on a log axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.utils.safestring import SafeString, mark_safe

from webapp.common import formats
from webapp.common.charts.picture import Chart, Picture
from webapp.common.charts.scales import (
    LinearScale,
    LogScale,
    nice_step,
    padded_range,
    powers_around,
    tick_text,
)

MAX_TABLE_ROWS = 200
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ConvergenceSeries:
    """The trace of an iterative method; None where a value is unknown."""

    iterations: Sequence[int]
    seconds: Sequence[float]
    upper: Sequence[float | None]
    lower: Sequence[float | None]
    gap: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class ConvergenceWords:
    """What the plot says beside its lines."""

    upper: str = "Objective: nothing can be better than this"
    lower: str = "Best found so far"
    axis: str = "Objective (nats)"
    gap: str = "Relative duality gap (no unit, log axis): how far from the best, at most"


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where things stand; one frame for desks, one for phones."""

    width: float
    left: float
    right: float
    bounds: tuple[float, float]
    gap: tuple[float, float]
    ticks: int
    is_narrow: bool


_DESK = _Frame(760.0, 66.0, 750.0, (30.0, 246.0), (292.0, 520.0), 6, False)
_PHONE = _Frame(320.0, 58.0, 318.0, (66.0, 226.0), (274.0, 430.0), 3, True)


def convergence_chart(
    series: ConvergenceSeries,
    *,
    by: str,
    target: float | None,
    is_live: bool,
    words: ConvergenceWords,
    seconds_left: float | None = None,
) -> Chart:
    """Draw upper and lower bound, the region in which the optimum lies, the gap and its target.

    ``seconds_left`` draws the expected path of a live run from now to the target. The chart holds
    two pictures, for desks and for phones, of which CSS shows one.
    """
    horizontal = [float(x) for x in (series.iterations if by == "step" else series.seconds)]
    expected_end = None
    if is_live and seconds_left and target:
        rate = horizontal[-1] / max(series.seconds[-1], 1e-9) if by == "step" else 1.0
        expected_end = horizontal[-1] + seconds_left * rate
    x_label = "Steps" if by == "step" else "Time computing (seconds)"
    pictures = [
        _Drawing(frame, horizontal, series, target, expected_end, words).finish(x_label)
        for frame in (_DESK, _PHONE)
    ]
    svg = mark_safe(  # noqa: S308 - two finished pictures
        f'<div class="not-phone">{pictures[0]}</div><div class="phone-only">{pictures[1]}</div>'
    )
    return Chart("Convergence", svg, *_table(series))


class _Drawing:
    """One picture of a trace in one frame."""

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
        self._expected_end = expected_end
        self._upper = _known(horizontal, series.upper)
        self._lower = _known(horizontal, series.lower)
        self._gap = [(t, gap) for t, gap in _known(horizontal, series.gap) if gap > 0]
        has_bounds = bool(self._upper or self._lower)
        # Without bounds the panel of the gap moves up into their place.
        self._shift = 0.0 if has_bounds else frame.gap[0] - 36.0
        end = max(expected_end or 0.0, horizontal[-1]) * 1.08 or 1.0
        self._x = LinearScale(0.0, end, frame.left, frame.right)
        self._picture = Picture(
            frame.width,
            frame.gap[1] + 44.0 - self._shift,
            title="Convergence",
            description=_describe(series, target),
        )

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
        """The upper panel. Early bounds are far off: the axis fits the later two thirds."""
        picture, frame = self._picture, self._frame
        top, bottom = frame.bounds
        low, high = _focused_range([v for _, v in self._upper], [v for _, v in self._lower])
        y = LinearScale(low, high, bottom, top)
        picture.text(0, 14, self._words.axis, "chart-title")
        step = nice_step((high - low) / 6)
        for tick in y.ticks(6):
            picture.line(frame.left, y(tick), frame.right, y(tick), "chart-grid")
            picture.text(frame.left - 8, y(tick) + 4, tick_text(tick, step), anchor="end")
        clip = picture.clip(frame.left, top, frame.right - frame.left, bottom - top)
        upper = _staircase([(self._x(t), y(v)) for t, v in self._upper])
        lower = _staircase([(self._x(t), y(v)) for t, v in self._lower])
        picture.open_group(clip_path=clip)
        if upper and lower:
            picture.path([*upper, *reversed(lower)], "band", close=True)
        picture.path(upper, "chart-line tone-for")
        picture.path(lower, "chart-line tone-against dashed")
        picture.close_group()
        self._label_lines()
        self._label_ends(upper, lower)

    def _label_lines(self) -> None:
        """Beside the lines on a desk; as a legend above them on a phone."""
        picture, frame = self._picture, self._frame
        for k, (line, text, tone, dashes) in enumerate(
            (
                (self._upper, self._words.upper, "for", ""),
                (self._lower, self._words.lower, "against", "dashed"),
            )
        ):
            if not line:
                continue
            if frame.is_narrow:
                picture.line(0, 28 + 18 * k, 18, 28 + 18 * k, f"chart-line tone-{tone} {dashes}")
                picture.text(24, 32 + 18 * k, text, f"label-{tone}")
            else:
                y = frame.bounds[0] + 40 if k == 0 else frame.bounds[1] - 26
                x = frame.left + 0.36 * (frame.right - frame.left)
                picture.text(x, y, text, f"label-{tone}")

    def _label_ends(self, upper: list[Point], lower: list[Point]) -> None:
        """A dot and the number at the present end of each bound."""
        for pixels, values, dot, below in (
            (upper, self._upper, "point--filled fill-for", -7.0),
            (lower, self._lower, "point tone-against", 16.0),
        ):
            if pixels:
                px, py = pixels[-1]
                anchor, offset = self._side(px)
                self._picture.add("circle", cx=px, cy=py, r=4.0, cls=dot)
                shown = formats.number(values[-1][1], 1)
                self._picture.text(px + offset, py + below, shown, "chart-strong", anchor)

    def _draw_gap(self) -> None:
        """The lower panel, on a log axis, with the target as a band."""
        picture, frame, target = self._picture, self._frame, self._target
        top, bottom = frame.gap
        title = "Relative duality gap (log axis)" if frame.is_narrow else self._words.gap
        picture.text(0, top - 20, title, "chart-title")
        values = [gap for _, gap in self._gap] + ([target, target / 3] if target else [])
        y = LogScale(*powers_around(values or [1e-4, 1.0]), bottom, top)
        for exponent in y.exponents():
            height = y(10.0**exponent)
            picture.line(frame.left, height, frame.right, height, "chart-grid")
            picture.power(frame.left - 8, height + 4, exponent)
        if target:
            self._draw_target(y, target)
        pixels = [(self._x(t), y(gap)) for t, gap in self._gap]
        picture.path(_staircase(pixels), "chart-line tone-text")
        if pixels:
            self._draw_now(y, pixels[-1])

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
        shown = f"Certified at {100 * target:g} % or below"
        picture.text(frame.left + 8, min(top + 17, bottom - 4), shown, "label-accent")

    def _draw_now(self, y: LogScale, now: Point) -> None:
        """The present end, and the expected path from it to the target."""
        picture, (px, py), gap = self._picture, now, self._gap[-1][1]
        if self._target and self._expected_end and gap > self._target:
            end = (self._x(self._expected_end), y(self._target))
            picture.path([now, end], "chart-line tone-muted dotted")
            if end[0] - px > 60:
                middle = (0.5 * (px + end[0]), 0.5 * (py + end[1]))
                picture.text(middle[0] + 8, middle[1] - 6, "expected")
        picture.add("circle", cx=px, cy=py, r=4.0, cls="point tone-text")
        anchor, offset = self._side(px)
        before = "now " if self._expected_end else ""
        picture.scientific(px + offset, py - 8, gap, before=before, anchor=anchor)

    def _draw_horizontal_axis(self, label: str) -> None:
        picture, frame, x = self._picture, self._frame, self._x
        bottom = frame.gap[1]
        step = nice_step((x.high - x.low) / frame.ticks)
        for tick in x.ticks(frame.ticks):
            picture.line(x(tick), bottom, x(tick), bottom + 4, "chart-axis")
            picture.text(x(tick), bottom + 18, tick_text(tick, step), anchor="middle")
        picture.text(0.5 * (frame.left + frame.right), bottom + 38, label, anchor="middle")

    def _side(self, px: float) -> tuple[str, float]:
        """On which side of a point its label has room."""
        return ("end", -9.0) if px > self._frame.right - 110 else ("start", 9.0)


def _known(xs: list[float], values: Sequence[float | None]) -> list[Point]:
    return [
        (x, float(v)) for x, v in zip(xs, values, strict=True) if v is not None and math.isfinite(v)
    ]


def _focused_range(upper: list[float], lower: list[float]) -> Point:
    """The range of the later two thirds of the bounds, with a margin."""
    tails = [values[len(values) // 3 :] for values in (upper, lower) if values]
    return padded_range([value for tail in tails for value in tail], share=0.15)


def _staircase(points: list[Point]) -> list[Point]:
    """A bound holds until the next one is known: no slanted lines between two reports."""
    steps: list[Point] = points[:1]
    for (_, y_before), (x_now, y_now) in pairwise(points):
        steps += [(x_now, y_before), (x_now, y_now)]
    return steps


def _describe(series: ConvergenceSeries, target: float | None) -> str:
    gap = next((g for g in reversed(series.gap) if g is not None), None)
    told = "" if gap is None else f"The relative gap is now {gap:.2g}. "
    aim = "" if target is None else f"The target is {target:.2g}. "
    return f"{len(series.iterations)} reports over {series.seconds[-1]:.0f} seconds. {told}{aim}"


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
    return ("Step", "Seconds", "Upper bound", "Lower bound", "Relative gap"), rows
