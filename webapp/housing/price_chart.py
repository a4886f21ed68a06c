"""Chart of the prices of a move: people who move and score, over the price on a log axis."""

import math
from collections.abc import Sequence

from django.utils.translation import gettext as _

from webapp.charts.picture import Chart, Picture
from webapp.common.formats import number
from webapp.translation.lazy import gettext_lazy

WIDTH, HEIGHT = 280.0, 216.0
LEFT, RIGHT = 46.0, 272.0
MOVES = (22.0, 92.0)  # top and bottom of the upper picture
SCORES = (122.0, 182.0)
TICKS = (0.02, 0.1, 0.5, 1.0, 5.0)
TITLE = gettext_lazy("What each price moves")


def price_chart(curve: Sequence[Sequence[float]], price: float) -> Chart:
    """Draw the people who move and the score at each computed price, with the chosen price marked.

    ``curve`` holds [price, people who move, score, without a room] in rising order of price.
    """
    picture = Picture(WIDTH, HEIGHT, title=TITLE, description=_described(curve))
    picture.text(0, 12, _("People who move"), "chart-strong")
    picture.text(0, 112, _("Score of all rooms"), "chart-strong")
    most = max(point[1] for point in curve)
    top = math.log10(max(11.0, most + 1.0))  # the line of 10 is always shown
    for tick in (t for t in (0, 1, 10, 100, 1000) if t == 0 or math.log10(t + 1) <= top):
        y = _between(math.log10(tick + 1) / top, *MOVES)
        picture.line(LEFT, y, RIGHT, y, "chart-grid")
        picture.text(LEFT - 6, y + 4, f"{tick:,}", anchor="end")
    scores = [point[2] for point in curve]
    low, high = min(scores), max(scores)
    for value in dict.fromkeys((low, high)):
        y = _between(_share(value, low, high), *SCORES)
        picture.line(LEFT, y, RIGHT, y, "chart-grid")
        picture.text(LEFT - 6, y + 4, number(value, 0 if high - low >= 2.0 else 1), anchor="end")
    _steps(picture, [(p[0], math.log10(p[1] + 1) / top) for p in curve], MOVES, "accent")
    _steps(picture, [(p[0], _share(p[2], low, high)) for p in curve], SCORES, "for")
    picture.line(_x(price), MOVES[0] - 6, _x(price), SCORES[1], "chart-axis dashed")
    for point in (p for p in curve if math.isclose(p[0], price)):
        move, score = math.log10(point[1] + 1) / top, _share(point[2], low, high)
        _beside(
            picture,
            price,
            _between(move, *MOVES),
            _("%(point)s move") % {"point": f"{point[1]:,.0f}"},
            "accent",
        )
        _beside(picture, price, _between(score, *SCORES), number(point[2], 1), "for")
    picture.line(LEFT, SCORES[1] + 6, RIGHT, SCORES[1] + 6, "chart-axis")
    for mark in TICKS:
        picture.text(_x(mark), SCORES[1] + 20, f"{mark:g}", anchor="middle")
    picture.text((LEFT + RIGHT) / 2, HEIGHT - 2, _("price of a move, in score"), anchor="middle")
    rows = tuple((f"{p[0]:g}", f"{p[1]:,.0f}", number(p[2], 1), f"{p[3]:,.0f}") for p in curve)
    columns = (_("Price"), _("People who move"), _("Score"), _("Without a room"))
    return Chart(TITLE, picture.finish(), columns, rows)


def _steps(
    picture: Picture, points: Sequence[tuple[float, float]], band: tuple[float, float], tone: str
) -> None:
    places = [(_x(price), _between(share, *band)) for price, share in points]
    path = []
    for k, (x, y) in enumerate(places):
        if k:
            path.append((x, places[k - 1][1]))
        path.append((x, y))
    picture.path(path, f"chart-line tone-{tone}")
    for x, y in places:
        picture.add("circle", cx=x, cy=y, r=3, cls=f"chart-dot tone-{tone}")


def _beside(picture: Picture, price: float, y: float, words: str, tone: str) -> None:
    """Write the effects of the chosen price above its dot, at its right where curves are lower."""
    is_left = _x(price) > RIGHT - 60
    x = _x(price) + (-8 if is_left else 8)
    picture.text(x, y - 7, words, f"label-{tone}", anchor="end" if is_left else "start")


def _x(price: float) -> float:
    share = (math.log10(min(max(price, 0.02), 5.0)) - math.log10(0.02)) / math.log10(250)
    return LEFT + share * (RIGHT - LEFT)


def _between(share: float, top: float, bottom: float) -> float:
    return bottom - share * (bottom - top)


def _share(value: float, low: float, high: float) -> float:
    return 0.5 if high - low < 1e-9 else (value - low) / (high - low)


def _described(curve: Sequence[Sequence[float]]) -> str:
    first, last = curve[0], curve[-1]
    return _("At a price of %(low)s, %(low_moves)s people move; at %(high)s, %(high_moves)s.") % {
        "low": f"{first[0]:g}",
        "low_moves": f"{first[1]:,.0f}",
        "high": f"{last[0]:g}",
        "high_moves": f"{last[1]:,.0f}",
    }
