"""SVG drawing under construction, and the finished chart."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from webapp.common import formats

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture and a table of the same numbers."""

    title: str
    svg: SafeString
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Picture:
    """Collector of SVG elements; text is escaped, coordinates have one decimal."""

    def __init__(self, width: float, height: float, *, title: str, description: str = "") -> None:
        self.width = width
        self.height = height
        self._title = title
        self._description = description
        self._parts: list[str] = []
        self._id = f"chart-{next(_numbers)}"

    def add(self, tag: str, text: Any = None, **attributes: Any) -> None:
        """Add an element; underscores of attribute names become hyphens, ``cls`` is the class."""
        written = "".join(
            f' {"class" if name == "cls" else name.replace("_", "-")}="{_attribute(value)}"'
            for name, value in attributes.items()
            if value is not None
        )
        content = "" if text is None else escape(text)
        self._parts.append(f"<{tag}{written}>{content}</{tag}>")

    def text(self, x: float, y: float, text: Any, cls: str = "", anchor: str = "start") -> None:
        """Add a line of text whose baseline is at y; digits of equal width are for numbers only.

        The font widens hyphens together with digits, which tears words apart.
        """
        if not any(sign.isalpha() for sign in str(text)):
            cls = f"{cls} tabular".lstrip()
        self.add("text", text, x=x, y=y, cls=cls or None, text_anchor=anchor)

    def power(self, x: float, y: float, exponent: int) -> None:
        """Add a power of ten with a raised exponent; it ends at x."""
        if exponent == 0:
            self.text(x, y, "1", anchor="end")
            return
        shown = str(exponent).replace("-", "\u2212")
        self.raw(
            f'<text x="{_attribute(x)}" y="{_attribute(y)}" text-anchor="end" class="tabular">10'
            f'<tspan dy="-4" font-size="9">{shown}</tspan></text>'
        )

    def scientific(self, x: float, y: float, value: float, *, before: str = "") -> None:
        """Add a number as 7.4 × 10⁻⁴ with a raised exponent, after some words."""
        mantissa, exponent = formats.mantissa_and_exponent(value)
        shown = str(exponent).replace("-", "\u2212")
        self.raw(
            f'<text x="{_attribute(x)}" y="{_attribute(y)}" class="chart-strong tabular">'
            f"{escape(before)}{mantissa} × 10"
            f'<tspan dy="-4" font-size="9">{shown}</tspan></text>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, cls: str) -> None:
        """Add a straight line."""
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, cls=cls)

    def path(self, points: Sequence[tuple[float, float]], cls: str, *, close: bool = False) -> None:
        """Add a polyline through the points, or the area that they enclose."""
        if points:
            steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
            self.add("path", d=f"M{steps}{'Z' if close else ''}", cls=cls)

    def raw(self, markup: str) -> None:
        """Add markup that is already safe."""
        self._parts.append(markup)

    def clip(self, x: float, y: float, width: float, height: float) -> str:
        """Define a clipping rectangle; return the value for ``clip_path``."""
        name = f"{self._id}-clip-{len(self._parts)}"
        self.raw(
            f'<clipPath id="{name}"><rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" '
            f'height="{max(height, 0):.1f}"/></clipPath>'
        )
        return f"url(#{name})"

    def open_group(self, **attributes: Any) -> None:
        """Open a group; close it with :meth:`close_group`."""
        written = "".join(
            f' {name.replace("_", "-")}="{_attribute(value)}"' for name, value in attributes.items()
        )
        self._parts.append(f"<g{written}>")

    def close_group(self) -> None:
        """Close the group that was opened last."""
        self._parts.append("</g>")

    def finish(self) -> SafeString:
        """Return the drawing with its accessible title and description."""
        title, description = escape(self._title), escape(self._description)
        described = f'<desc id="{self._id}-d">{description}</desc>' if description else ""
        labels = f"{self._id}-t {self._id}-d" if description else f"{self._id}-t"
        return mark_safe(  # noqa: S308 - every text and attribute above was escaped
            f'<svg class="chart" viewBox="0 0 {self.width:g} {self.height:g}" role="img" '
            f'aria-labelledby="{labels}"><title id="{self._id}-t">{title}</title>'
            f"{described}{''.join(self._parts)}</svg>"
        )


def _attribute(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    return str(escape(value))
