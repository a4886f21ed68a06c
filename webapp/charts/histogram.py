"""Histogram of two collections beside each other."""

from collections.abc import Sequence

from django.utils.translation import ngettext

from webapp.charts.picture import Chart, Picture
from webapp.charts.scales import LinearScale, nice_step, tick_text
from webapp.common import formats

WIDTH, HEIGHT = 400.0, 272.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 394.0, 30.0, 226.0
_LEGEND_SECOND = 190.0  # left end of the legend's second name


def histogram(
    first: tuple[str, Sequence[int]],
    second: tuple[str, Sequence[int]],
    edges: Sequence[float],
    *,
    title: str,
    x_label: str,
    y_label: str,
    digits: int = 2,
) -> Chart:
    """Draw two named counts between the same edges (one edge more than counts).

    The collections may differ in size: heights are shares of each in per cent, the first as bars,
    the second as a dashed line of steps.
    """
    for name, counts in (first, second):
        if len(edges) != len(counts) + 1:
            raise ValueError(f"{name}: expected {len(counts) + 1} edges, received {len(edges)}.")
    shares = [_shares(first[1]), _shares(second[1])]
    x = LinearScale(float(edges[0]), float(edges[-1]), LEFT, RIGHT)
    y = LinearScale(0.0, max([*shares[0], *shares[1], 1.0]) * 1.05, BOTTOM, TOP)
    picture = Picture(
        WIDTH,
        HEIGHT,
        title=title,
        description=f"{_described(*first)} {_described(*second)}",
    )
    _axes(picture, x, y, x_label, y_label)
    steps: list[tuple[float, float]] = []
    for k, (bar, step) in enumerate(zip(*shares, strict=True)):
        start, end = x(float(edges[k])), x(float(edges[k + 1]))
        picture.add("rect", x=start + 0.5, y=y(bar), width=max(end - start - 1.0, 0.5),
                    height=BOTTOM - y(bar), cls="bar-for")  # fmt: skip
        steps += [(start, y(step)), (end, y(step))]
    picture.path(steps, "chart-line tone-against dashed")
    picture.add("rect", x=LEFT, y=5.0, width=10.0, height=10.0, cls="bar-for")
    picture.text(LEFT + 16, 14, first[0])
    picture.line(_LEGEND_SECOND - 22, 10, _LEGEND_SECOND - 6, 10, "chart-line tone-against dashed")
    picture.text(_LEGEND_SECOND, 14, second[0])
    rows = tuple(
        (
            formats.span(formats.number(edges[k], digits), formats.number(edges[k + 1], digits)),
            *(formats.number(share[k], 1) for share in shares),
        )
        for k in range(len(edges) - 1)
    )
    columns = (x_label, f"{first[0]} (%)", f"{second[0]} (%)")
    return Chart(title, picture.finish(), columns, rows)


def _described(name: str, counts: Sequence[int]) -> str:
    words = ngettext("%(name)s: %(count)s value.", "%(name)s: %(count)s values.", sum(counts))
    return words % {"name": name, "count": sum(counts)}


def _shares(counts: Sequence[int]) -> list[float]:
    """Return the counts as per cent of their sum."""
    total = max(sum(counts), 1)
    return [100 * count / total for count in counts]


def _axes(picture: Picture, x: LinearScale, y: LinearScale, x_label: str, y_label: str) -> None:
    y_step = nice_step(y.high / 4)
    for tick in y.ticks(4):
        picture.line(LEFT, y(tick), RIGHT, y(tick), "chart-grid")
        picture.text(LEFT - 8, y(tick) + 4, tick_text(tick, y_step), anchor="end")
    x_step = nice_step((x.high - x.low) / 5)
    for tick in x.ticks(5):
        picture.text(x(tick), BOTTOM + 18, tick_text(tick, x_step), anchor="middle")
    picture.text(0.5 * (LEFT + RIGHT), BOTTOM + 38, x_label, anchor="middle")
    middle = 0.5 * (TOP + BOTTOM)
    picture.add("text", y_label, x=10.0, y=middle, text_anchor="middle",
                transform=f"rotate(-90 10 {middle:.1f})")  # fmt: skip
