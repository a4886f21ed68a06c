"""The curve over the price of a move: what the chosen price does stands beside its dot."""

import re

import pytest
from django.template.loader import render_to_string

from tests.webapp.roles import Page
from webapp.housing.price_chart import price_chart

CURVE = [[0.1, 6, 100.0, 0], [0.5, 4, 99.3, 0], [1.0, 3, 98.0, 1]]


@pytest.mark.parametrize(("price", "moves", "score"), [(0.1, 6, "100.0"), (0.5, 4, "99.3")])
def test_the_chosen_price_says_who_moves_and_the_score(
    price: float, moves: int, score: str
) -> None:
    svg = price_chart(CURVE, price).svg
    assert f">{moves} move</text>" in svg
    assert f">{score}</text>" in svg


def test_a_price_between_those_worked_out_claims_nothing() -> None:
    assert re.search(r">\d+ move<", price_chart(CURVE, 0.2).svg) is None


def test_few_moves_stand_below_a_line_of_the_grid() -> None:
    """The axis once ended at 1, and dots of 3 to 6 hung above it without a number."""
    assert ">10</text>" in price_chart(CURVE, 0.5).svg


def test_the_focus_can_return_to_the_toggle_of_a_chart_that_is_polled() -> None:
    """What has no id loses the focus when htmx replaces it."""
    chart = {"chart": price_chart(CURVE, 0.5), "id": "price-curve"}
    page = Page(render_to_string("common/_chart.html", chart))
    assert page.one("button", "Table").element.get("id") == "price-curve-as-table"


def test_scores_that_lie_close_are_told_apart_beside_their_lines() -> None:
    svg = price_chart([[0.1, 9, -38.31, 0], [5.0, 4, -37.94, 0]], 0.5).svg
    assert "−38.3</text>" in svg
    assert "−37.9</text>" in svg
