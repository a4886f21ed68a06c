"""Template filters of the segmentation pages: megabytes, intervals, measures compared."""

from typing import Any
from uuid import UUID

from django import template
from django.utils.html import format_html
from django.utils.translation import gettext as _

from engine.datasets.calibration import PixelSize
from engine.datasets.image_names import mask_stem, picture_stem, picture_stems
from webapp.common import formats
from webapp.segmentation.models import ImageFile
from webapp.segmentation.selectors.objects import size_in_words
from webapp.segmentation.selectors.predictions import Comparison
from webapp.segmentation.uncertainty import Interval
from webapp.translation.lazy import gettext_lazy

register = template.Library()

_MEASURES = (
    ("iou", gettext_lazy("Overlap (IoU)")),
    ("accuracy", gettext_lazy("Share of pixels right")),
    ("log_loss", gettext_lazy("Log loss (nats, less is better)")),
)


@register.filter
def megabytes(size: Any) -> str:
    """Return bytes as megabytes with one decimal below ten: 1.2, 48; "under 0.1" if tiny."""
    value = float(size or 0) / 1e6
    if 0 < value < 0.05:
        return _("under 0.1")
    return formats.number(value, 1 if value < 10 else 0)


@register.filter
def gap(value: float | None) -> str:
    """Return a relative gap in per cent, rounded up: 0.09 %; above 100 % it bounds nothing."""
    if value is not None and value > 1:
        return _("no useful bound yet")
    return formats.gap(value)


@register.filter
def interval(value: Interval, digits: int = 3) -> str:
    """Return the 95 % interval of a mean: 0.941 to 0.962."""
    if value.low is None or value.high is None:
        return _("one image: no range")
    return formats.span(formats.number(value.low, digits), formats.number(value.high, digits))


@register.filter
def interval_per_cent(value: Interval, digits: int = 1) -> str:
    """Return the 95 % interval of a share: 98.2 % to 99.1 %."""
    if value.low is None or value.high is None:
        return _("one image: no range")
    return formats.span(formats.per_cent(value.low, digits), formats.per_cent(value.high, digits))


@register.filter
def points(share: float, digits: int = 1) -> str:
    """Return a difference of two shares in percentage points: 11.6 points."""
    text = formats.number(100 * share, digits)
    return (
        _("%(number)s point") % {"number": text}
        if text == "1"
        else _("%(number)s points") % {"number": text}
    )


@register.filter
def measures(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the rows of a comparison; a difference is clear if its interval excludes zero."""
    rows = []
    for name, label in _MEASURES:
        difference = comparison.difference[name]
        low, high = (difference.low, difference.high) if difference else (None, None)
        rows.append(
            {
                "label": label,
                "first": comparison.first[name],
                "second": comparison.second[name],
                "difference": difference,
                "is_clear": low is not None and high is not None and low * high > 0,
            }
        )
    return rows


@register.filter
def likely_image(mask: ImageFile, images: list[ImageFile]) -> UUID | None:
    """Return the key of the first image that matches a mask's name, to be offered first."""
    stem = mask_stem(mask.name) or picture_stem(mask.name)
    return next((image.pk for image in images if stem in picture_stems(image.name)), None)


@register.filter
def size_words(size: PixelSize) -> str:
    """Return the width and height of a pixel: 0.5 µm, or 0.5 × 2 µm."""
    return size_in_words(size)


@register.filter
def at(values: Any, place: int) -> Any:
    """Return the entry at an index of a list."""
    return values[place]


@register.simple_tag
def class_name(classes: list[dict[str, Any]], place: int) -> str:
    """Return the name of the class at an index."""
    return classes[place]["name"]


@register.simple_tag
def class_swatch(colour: str) -> str:
    """Return a small square of a class's colour; the policy allows no style attribute."""
    return format_html(
        '<svg class="class-swatch" viewBox="0 0 10 10" aria-hidden="true">'
        '<rect width="10" height="10" rx="2" fill="{}"/></svg>',
        colour,
    )
