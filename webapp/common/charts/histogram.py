"""How often which values occur."""

from collections.abc import Sequence

from webapp.common import formats
from webapp.common.charts.picture import Chart, Picture
from webapp.common.charts.scales import LinearScale, nice_step, tick_text

WIDTH, HEIGHT = 400.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 394.0, 10.0, 204.0


def histogram(
    counts: Sequence[int],
    edges: Sequence[float],
    *,
    title: str,
    x_label: str,
    y_label: str = "Count",
    digits: int = 2,
) -> Chart:
    """Draw counts between edges (one edge more than counts)."""
    if len(edges) != len(counts) + 1:
        raise ValueError(f"expected {len(counts) + 1} edges, received {len(edges)}.")
    x = LinearScale(float(edges[0]), float(edges[-1]), LEFT, RIGHT)
    y = LinearScale(0.0, float(max([*counts, 1])) * 1.05, BOTTOM, TOP)
    picture = Picture(WIDTH, HEIGHT, title=title, description=f"{sum(counts)} values.")
    y_step = nice_step(y.high / 4)
    for tick in y.ticks(4):
        picture.line(LEFT, y(tick), RIGHT, y(tick), "chart-grid")
        picture.text(LEFT - 8, y(tick) + 4, tick_text(tick, y_step), anchor="end")
    for k, count in enumerate(counts):
        start, end = x(float(edges[k])), x(float(edges[k + 1]))
        picture.add("rect", x=start + 0.5, y=y(count), width=max(end - start - 1.0, 0.5),
                    height=BOTTOM - y(count), cls="bar-for")  # fmt: skip
    x_step = nice_step((x.high - x.low) / 5)
    for tick in x.ticks(5):
        picture.text(x(tick), BOTTOM + 18, tick_text(tick, x_step), anchor="middle")
    picture.text(0.5 * (LEFT + RIGHT), BOTTOM + 38, x_label, anchor="middle")
    rows = tuple(
        (
            f"{formats.number(edges[k], digits)} to {formats.number(edges[k + 1], digits)}",
            formats.number(count),
        )
        for k, count in enumerate(counts)
    )
    return Chart(title, picture.finish(), (x_label, y_label), rows)
