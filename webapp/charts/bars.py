"""Horizontal bars on both sides of zero: reasons for and against."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from webapp.charts.picture import Chart, Picture
from webapp.charts.scales import LinearScale, nice_step, tick_text
from webapp.common import formats

ROW = 28.0
LABEL_WIDTH, VALUE_WIDTH = 190.0, 62.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of the chart; positive is blue (for), negative orange (against)."""

    label: str
    value: float
    note: str = ""


def diverging_bars(
    bars: Sequence[Bar],
    *,
    title: str,
    value_label: str,
    digits: int = 2,
    width: float = 560.0,
) -> Chart:
    """Draw bars to both sides of zero with their values at the right."""
    low = min([0.0, *(bar.value for bar in bars)])
    high = max([0.0, *(bar.value for bar in bars)])
    if low == high:
        high = 1.0
    x = LinearScale(low, high, LABEL_WIDTH, width - VALUE_WIDTH)
    height = ROW * len(bars) + 30.0
    description = ngettext("%(count)s bar, %(label)s.", "%(count)s bars, %(label)s.", len(bars))
    description %= {"count": len(bars), "label": value_label}
    picture = Picture(width, height, title=title, description=description)
    step = nice_step((high - low) / 4)
    for tick in x.ticks(4):
        picture.line(x(tick), 22.0, x(tick), height, "chart-axis" if tick == 0 else "chart-grid")
        picture.text(x(tick), 14, tick_text(tick, step), anchor="middle")
    for k, bar in enumerate(bars):
        top = 26.0 + ROW * k
        start, end = sorted((x(0.0), x(bar.value)))
        picture.text(0, top + 16, bar.label, "chart-strong")
        cls = "bar-for" if bar.value >= 0 else "bar-against"
        picture.add("rect", x=start, y=top + 5, width=max(end - start, 1.5), height=14.0,
                    rx=2, cls=cls)  # fmt: skip
        picture.text(width, top + 16, formats.signed(bar.value, digits), "chart-strong", "end")
    rows = tuple((bar.label, formats.signed(bar.value, digits), bar.note) for bar in bars)
    return Chart(title, picture.finish(), ("", value_label, _("Note")), rows)
