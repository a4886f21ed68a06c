"""Charts: well-formed, escaped, and their tables say the same as the pictures."""

import math
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.common.charts import (
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
from webapp.common.charts.scales import LinearScale, nice_step, tick_text

EVIL = '<b onclick="x">&'


def all_charts() -> list[Chart]:
    trace = ConvergenceSeries(
        [1, 2, 5], [0.1, 0.2, 0.9], [3.0, 2.0, 1.5], [None, 0.5, 1.4], [1.0, 0.1, 1e-3]
    )
    return [
        line_chart([Series(EVIL, [0, 1], [2, 3])], title=EVIL, x_label=EVIL, y_label=EVIL),
        roc_chart([("Model", [0, 0.2, 1], [0, 0.7, 1], 0.73), (EVIL, [0, 1], [0, 1], 0.5)]),
        reliability_chart([(0.01, 0.012, 0.008, 0.02, 100), (0.1, 0.0, 0.0, 0.2, 5)]),
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
    chart = roc_chart([("Model", [0.0, 0.2, 1.0], [0.0, 0.6, 1.0], 0.7)])
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
