"""Server-rendered SVG charts. Each is a picture with a table of the same numbers.

Colours come from classes of ``static/css/charts.css``, so one picture serves light and dark, and no
inline style is needed. Every series differs by more than its colour: dashes, shapes or labels.
"""

from webapp.charts.bars import Bar, diverging_bars
from webapp.charts.convergence import (
    ConvergenceSeries,
    ConvergenceWords,
    convergence_chart,
)
from webapp.charts.heatmap import cividis_hex, heatmap
from webapp.charts.histogram import histogram
from webapp.charts.lines import Series, line_chart, reliability_chart, roc_chart
from webapp.charts.picture import Chart

__all__ = [
    "Bar",
    "Chart",
    "ConvergenceSeries",
    "ConvergenceWords",
    "Series",
    "cividis_hex",
    "convergence_chart",
    "diverging_bars",
    "heatmap",
    "histogram",
    "line_chart",
    "reliability_chart",
    "roc_chart",
]
