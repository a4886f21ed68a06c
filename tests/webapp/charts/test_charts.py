"""Charts: well-formed, escaped, and their tables say the same as the pictures."""

import math
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from webapp.charts import (
    Bar,
    Chart,
    ConvergenceSeries,
    ConvergenceWords,
    Series,
    cividis_hex,
    convergence_chart,
    diverging_bars,
    heatmap,
    histogram,
    line_chart,
    reliability_chart,
    roc_chart,
)
from webapp.charts.scales import LinearScale, nice_step, tick_text

EVIL = '<b onclick="x">&'


def all_charts() -> list[Chart]:
    trace = ConvergenceSeries(
        [1, 2, 5], [0.1, 0.2, 0.9], [3.0, 2.0, 1.5], [None, 0.5, 1.4], [1.0, 0.1, 1e-3]
    )
    return [
        line_chart([Series(EVIL, [0, 1], [2, 3])], title=EVIL, x_label=EVIL, y_label=EVIL),
        roc_chart([("Model", [0, 0.2, 1], [0, 0.7, 1], 0.73), (EVIL, [0, 1], [0, 1], 0.5)],
                  x_label="Others (%)", y_label="Found (%)"),
        reliability_chart([(0.01, 0.012, 0.008, 0.02, 100), (0.1, 0.0, 0.0, 0.2, 5)],
                          title="Reliability", x_label="Predicted (%)", y_label="Observed (%)"),
        diverging_bars([Bar(EVIL, -0.66), Bar("Study place", 0.06)], title="W", value_label="nats"),
        histogram((EVIL, [1, 5, 2]), ("All", [4, 0, 4]), [0, 0.5, 1, 1.5], title="Scores",
                  x_label=EVIL, y_label=EVIL),
        heatmap([[0.1, math.nan], [0.3, 0.4]], title="P", labels=[EVIL, "b"], unit_label="p"),
        convergence_chart(trace, by="time", target=1e-4, is_live=True,
                          words=ConvergenceWords(upper=EVIL), seconds_left=3.0),
        convergence_chart(trace, by="step", target=None, is_live=False, words=ConvergenceWords()),
    ]  # fmt: skip


def test_a_histogram_compares_shares_of_collections_of_any_size() -> None:
    chart = histogram(
        ("Few", [1, 3]), ("Many", [300, 100]), [0, 1, 2], title="S", x_label="x", y_label="y"
    )
    assert chart.columns == ("x", "Few (%)", "Many (%)")
    assert chart.rows == (("0.00 to 1.00", "25.0", "75.0"), ("1.00 to 2.00", "75.0", "25.0"))
    with pytest.raises(ValueError, match="Many: expected 2 edges, received 3"):
        histogram(("Few", [1, 3]), ("Many", [4]), [0, 1, 2], title="S", x_label="x", y_label="y")


@pytest.mark.parametrize("chart", all_charts(), ids=lambda c: c.title)
def test_it_is_well_formed_escaped_and_has_a_title(chart: Chart) -> None:
    root = ElementTree.fromstring(f"<div>{chart.svg}</div>")
    assert EVIL not in chart.svg
    assert "style=" not in chart.svg
    pictures = [element for element in root.iter() if element.tag == "svg"]
    assert pictures
    for svg in pictures:
        assert svg.get("role") == "img"
        titles = [element for element in svg if element.tag == "title"]
        assert titles[0].text
        assert titles[0].get("id") in svg.get("aria-labelledby")
    for element in root.iter():
        for value in element.attrib.values():
            assert "nan" not in value.lower().split()
            assert "inf" not in value.lower().split()


@pytest.mark.parametrize("chart", all_charts(), ids=lambda c: c.title)
def test_its_table_is_rectangular(chart: Chart) -> None:
    assert chart.rows
    assert {len(row) for row in chart.rows} == {len(chart.columns)}


def test_ids_are_unique_over_charts() -> None:
    root = ElementTree.fromstring(f"<div>{''.join(chart.svg for chart in all_charts())}</div>")
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))


def test_the_roc_table_interpolates_the_curve() -> None:
    curve = ("Model", [0.0, 0.2, 1.0], [0.0, 0.6, 1.0], 0.7)
    chart = roc_chart([curve], x_label="Others (%)", y_label="Found (%)")
    table = dict(chart.rows)
    assert table["10"] == "30.0"
    assert table["20"] == "60.0"
    assert table["100"] == "100.0"


def test_the_convergence_table_keeps_the_last_step_of_a_long_run() -> None:
    n = 1234
    trace = ConvergenceSeries(
        range(n), [0.1 * k for k in range(n)], [1.0] * n, [0.0] * n, [1 / (k + 1) for k in range(n)]
    )
    chart = convergence_chart(
        trace, by="step", target=1e-3, is_live=False, words=ConvergenceWords()
    )
    assert len(chart.rows) <= 202
    assert chart.rows[-1][0] == "1,233"


def test_cividis_runs_from_blue_to_yellow_and_gets_lighter() -> None:
    assert cividis_hex(0.0) == "#00224e"
    assert cividis_hex(1.0) == "#fee838"
    light = []
    for k in range(21):
        colour = cividis_hex(k / 20)
        r, g, b = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        light.append(0.2126 * r + 0.7152 * g + 0.0722 * b)
    assert light == sorted(light)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.integers(1, 10))
def test_ticks_are_round_inside_and_not_too_many(low: float, span: float, wanted: int) -> None:
    scale = LinearScale(low, low + span, 0, 100)
    ticks = scale.ticks(wanted)
    slack = 1e-6 * max(abs(low), span)
    assert all(low - slack <= tick <= low + span + slack for tick in ticks)
    assert len(ticks) <= 2 * wanted + 2


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [(0.25, 0.25, "0.25"), (2.5, 2.5, "2.5"), (100, 50, "100"), (-0.3, 0.1, "−0.3"),
     (1e6, 1e6, "1,000,000")],
)  # fmt: skip
def test_tick_text_has_the_decimals_that_it_needs(value: float, step: float, text: str) -> None:
    assert tick_text(value, step) == text
    assert nice_step(step) == pytest.approx(step)


def test_a_heatmap_names_every_stretch_that_has_room() -> None:
    """Every second name used to be tried, and most groups begin at the others."""
    labels = ["blank", "Never", *[""] * 11, "Rarely", *[""] * 3, "Often", *[""] * 5, "Always"]
    n = len(labels)
    chart = heatmap([[0.5] * n] * n, title="W", labels=labels, unit_label="p")
    root = ElementTree.fromstring(chart.svg)
    shown = [(t.text, float(t.get("y"))) for t in root.iter("text") if t.text and t.text in labels]
    names = [name for name, _ in shown]
    for name in ("blank", "Never", "Rarely", "Often", "Always"):
        assert names.count(name) == 2, name  # one along each side
    rows = sorted(y for name, y in shown[: len(shown) // 2])
    assert all(b - a >= 12 for a, b in pairwise(rows))
    crowded = heatmap([[0.5] * 99] * 99, title="W", labels=[str(k) for k in range(99)],
                      unit_label="p")  # fmt: skip
    assert len(ElementTree.fromstring(crowded.svg).findall("text")) < 60


def test_a_trace_that_began_late_fills_its_plot() -> None:
    """Reading large images may take longer than learning from them."""
    late = ConvergenceSeries([9, 10], [23.0, 30.0], [5.0, 4.0], [1.0, 3.9], [0.8, 0.02])
    early = ConvergenceSeries([1, 2], [3.0, 30.0], [5.0, 4.0], [1.0, 3.9], [0.8, 0.02])
    for trace, has_zero in ((late, False), (early, True)):
        chart = convergence_chart(
            trace, by="time", target=1e-4, is_live=False, words=ConvergenceWords()
        )
        axis = [t for t in ElementTree.fromstring(f"<div>{chart.svg}</div>").iter("text")
                if t.get("y") == "586.0"]  # fmt: skip
        assert ("0" in [t.text for t in axis]) == has_zero


def test_the_unit_of_a_heatmap_stands_clear_of_long_numbers_below_zero() -> None:
    values = [[-12345.678, 0.0], [0.0, -0.00001234]]
    chart = heatmap(values, title="W", labels=["a", "b"], unit_label="nats")
    root = ElementTree.fromstring(chart.svg)
    texts = [element for element in root.iter() if element.tag == "text"]
    unit = next(element for element in texts if element.text == "nats")
    ticks = [t for t in texts if (t.text or "").startswith("\N{MINUS SIGN}")]
    assert len(ticks) >= 4
    assert not any("-" in (t.text or "") for t in texts)
    end = max(float(t.get("x")) + 8.6 * len(t.text) for t in ticks)
    assert float(unit.get("x")) - 12 >= end  # a line of turned text reaches 12 to the left
    width = float(root.get("viewBox").split()[2])
    assert float(unit.get("x")) + 4 <= width


# -- Words of the convergence plot stand clear of its lines and of each other ----------------------

Box = tuple[float, float, float, float]  # left, top, right, bottom
WIDEST = 7.4  # px a character of 12.5 px text takes at most, on average


def boxes_and_lines(svg: ElementTree.Element) -> tuple[dict[str, Box], list[Box]]:
    """Where a picture's texts stand and where its lines run, as the boxes of their pieces."""
    texts: dict[str, Box] = {}
    lines: list[Box] = []
    clips = {e.get("id"): e[0] for e in svg.iter("clipPath")}

    def visit(element: ElementTree.Element, shift: float, low: float, high: float) -> None:
        if element.tag == "clipPath":
            return
        if "translate" in element.get("transform", ""):
            shift += float(element.get("transform").split()[-1].rstrip(")"))
        if clip := element.get("clip-path"):
            rect = clips[clip[5:-1]]
            low = float(rect.get("y"))
            high = low + float(rect.get("height"))
        if element.tag == "text":
            text = "".join(element.itertext())
            x, y, width = float(element.get("x")), float(element.get("y")), WIDEST * len(text)
            left = x - {"end": width, "middle": width / 2}.get(element.get("text-anchor"), 0.0)
            above = 12 if len(element) else 10  # exponents are raised
            texts[f"{text} at {y}"] = (left, y - above + shift, left + width, y + 3 + shift)
        if "chart-line" in element.get("class", "") and element.tag == "line":
            x1, y1, x2, y2 = (float(element.get(name)) for name in ("x1", "y1", "x2", "y2"))
            lines.append((x1, y1 + shift, x2, y2 + shift))
        if "chart-line" in element.get("class", "") and element.tag == "path":
            points = [tuple(map(float, p.split())) for p in element.get("d")[1:].split("L")]
            for (x1, y1), (x2, y2) in pairwise(points):
                # A slanted line (the expected path) in small pieces; a step in one.
                n = 1 if x1 == x2 or y1 == y2 else 200
                for k in range(n):
                    a, b = (y1 + (y2 - y1) * j / n for j in (k, k + 1))
                    top, bottom = max(min(a, b), low), min(max(a, b), high)
                    if top <= bottom:
                        ends = [x1 + (x2 - x1) * j / n for j in (k, k + 1)]
                        lines.append((min(ends), top + shift, max(ends), bottom + shift))
        for child in element:
            visit(child, shift, low, high)

    visit(svg, 0.0, -math.inf, math.inf)
    return texts, lines


def meet(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


FALLS = st.lists(st.floats(0.05, 0.999), min_size=1, max_size=40)


@settings(max_examples=60)
@example([0.05] * 12, [0.05] * 12, 1.0, 1e-4, None, "time", 0)  # a gap of many decades
@example([0.5, 0.5, 0.5, 0.25, 0.125], [0.5] * 5, 1.0, 0.1, 2.0, "time", 0)  # just below its target
@example([1e-9] * 3, [1e-9] * 3, 1.0, 1e-4, 2.0, "time", 0)
@given(FALLS, FALLS, st.floats(1e-3, 1e4), st.sampled_from([1e-4, 1e-2, 0.9, None]),
       st.sampled_from([None, 0.01, 2.0, 500.0]), st.sampled_from(["time", "step"]),
       st.integers(0, 3))  # fmt: skip
def test_no_word_stands_on_a_line_or_another_word(
    above: list[float],
    below: list[float],
    scale: float,
    target: float | None,
    seconds_left: float | None,
    by: str,
    unknown: int,
) -> None:
    n = min(len(above), len(below))
    upper = [scale * math.prod(above[: k + 1]) for k in range(n)]
    lower = [-scale * math.prod(below[: k + 1]) for k in range(n)]
    gap = [min(1.0, (u - v) / scale) for u, v in zip(upper, lower, strict=True)]
    for k in range(min(unknown, n)):
        upper[k] = lower[-1 - k] = None
    trace = ConvergenceSeries(range(1, n + 1), [0.3 * (k + 1) for k in range(n)], upper, lower, gap)
    chart = convergence_chart(
        trace, by=by, target=target, is_live=seconds_left is not None,
        words=ConvergenceWords(), seconds_left=seconds_left,
    )  # fmt: skip
    again = convergence_chart(
        trace, by=by, target=target, is_live=seconds_left is not None,
        words=ConvergenceWords(), seconds_left=seconds_left,
    )  # fmt: skip
    assert re.sub(r"chart-\d+", "", chart.svg) == re.sub(r"chart-\d+", "", again.svg)
    for svg in ElementTree.fromstring(f"<div>{chart.svg}</div>").iter("svg"):
        texts, lines = boxes_and_lines(svg)
        for text, box in texts.items():
            assert not [line for line in lines if meet(box, line)], text
            assert not [other for other, b in texts.items() if other != text and meet(box, b)], text


def test_words_on_a_line_would_be_found() -> None:
    svg = ElementTree.fromstring(
        '<svg><text x="10" y="20">On it</text><path d="M0 15L90 15" class="chart-line"/></svg>'
    )
    texts, lines = boxes_and_lines(svg)
    assert meet(texts["On it at 20.0"], lines[0])


@pytest.mark.parametrize("chart", all_charts(), ids=lambda c: c.title)
def test_figures_of_one_width_are_for_numbers_only(chart: Chart) -> None:
    """They widen hyphens too: "held - out"."""
    root = ElementTree.fromstring(f"<div>{chart.svg}</div>")
    seen = set()
    for text in root.iter("text"):
        words = "".join(text.itertext())
        is_number = not any(sign.isalpha() for sign in words.removeprefix("now "))
        assert ("tabular" in text.get("class", "").split()) == is_number, words
        seen.add(is_number)
    assert seen == {True, False} or chart.title == "P"
