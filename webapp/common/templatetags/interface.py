"""Template tags and filters of the design system; loaded everywhere as builtins.

Tags: icon, options, badge, stat, page_header ... endpage_header, panel ... endpanel, dialog ...
enddialog, empty_state, means, query, query_set. Filters: number, signed, per_cent, scientific,
duration, day, moment, when.
"""

import math
from collections.abc import Iterable
from datetime import date, datetime
from functools import lru_cache
from typing import Any

from django import template
from django.template.context import RequestContext
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from webapp.common import formats

register = template.Library()


@register.simple_tag
@lru_cache(maxsize=512)
def icon(name: str, label: str = "", extra: str = "") -> SafeString:
    """Return a Lucide icon from the sprite; with a label it is an image, without it decoration."""
    href = f"{static('icons/lucide.svg')}#{name}"
    if label:
        return format_html(
            '<svg class="icon {}" role="img" aria-label="{}"><use href="{}"></use></svg>',
            extra,
            label,
            href,
        )
    return format_html(
        '<svg class="icon {}" aria-hidden="true"><use href="{}"></use></svg>', extra, href
    )


@register.simple_tag
def options(choices: Iterable[tuple[str, str]], chosen: str = "") -> SafeString:
    """Return the options of a select: values and words, the chosen value selected."""
    rows = (
        (value, mark_safe(" selected") if value == chosen else "", words)
        for value, words in choices
    )
    return format_html_join("\n", '<option value="{}"{}>{}</option>', rows)


@register.simple_tag
def badge(text: Any, tone: str = "", icon_name: str = "", **attributes: str) -> SafeString:
    """Return a small label. Tones: accent, warning, danger, info; none is neutral."""
    spin = "spinner" if icon_name == "loader-circle" else ""
    return format_html(
        '<span class="badge {}"{}>{}{}</span>',
        f"badge--{tone}" if tone else "",
        _attributes(attributes),
        icon(icon_name, extra=spin) if icon_name else "",
        text,
    )


@register.simple_tag
def stat(label: str, value: Any, note: Any = "", large: bool = False) -> SafeString:
    """Return one key figure: label, value with its unit, and its meaning; put them into .stats."""
    return format_html(
        '<dl class="stat {}"><dt class="stat__label">{}</dt>'
        '<dd class="stat__value">{}</dd><dd class="stat__note">{}</dd></dl>',
        "stat--large" if large else "",
        label,
        value,
        note,
    )


@register.simple_block_tag(takes_context=True)
def page_header(
    context: RequestContext, content: str, title: str, facts: Any = "", badge: Any = ""
) -> SafeString:
    """Return title, badge and one line of facts; the content between the tags is the actions."""
    values = {"title": title, "facts": facts, "badge": badge, "actions": content.strip()}
    return render_to_string("common/_page_header.html", values)


@register.simple_block_tag
def panel(
    content: str,
    title: str = "",
    note: Any = "",
    aside: Any = "",
    flush: bool = False,
    id: str = "",
) -> SafeString:
    """Return a bordered panel; ``flush`` removes the padding of the body, for tables and rows."""
    values = {
        "title": title,
        "note": note,
        "aside": aside,
        "flush": flush,
        "id": id,
        "content": content,
    }
    return render_to_string("common/_panel.html", values)


@register.simple_block_tag
def dialog(content: str, id: str, title: str, wide: bool = False, open: bool = False) -> SafeString:
    """Return a native dialog; any element with data-dialog-open="ID" opens it."""
    values = {"id": id, "title": title, "wide": wide, "open": open, "content": content}
    return render_to_string("common/_dialog.html", values)


@register.inclusion_tag("common/_empty_state.html")
def empty_state(
    sentence: str, action: str = "", url: str = "", icon_name: str = "circle-dashed"
) -> dict[str, str]:
    """Return one sentence and one button for an empty list."""
    return {"sentence": sentence, "action": action, "url": url, "icon_name": icon_name}


@register.inclusion_tag("common/_means.html")
def means(yes: str = "", no: str = "") -> dict[str, str]:
    """Return the meaning of a number, and what it does not mean."""
    return {"yes": yes, "no": no}


@register.simple_tag(takes_context=True)
def query(context: RequestContext, **changes: Any) -> str:
    """Return the address's query with some parameters changed, such as ``{% query page=2 %}``.

    A value of None or '' removes the parameter.
    """
    parameters = context["request"].GET.copy()
    for name, value in changes.items():
        if value in (None, ""):
            parameters.pop(name, None)
        else:
            parameters[name] = value
    encoded = parameters.urlencode()
    return f"?{encoded}" if encoded else "?"


@register.simple_tag(takes_context=True)
def query_set(context: RequestContext, name: str, value: Any) -> str:
    """Return the address's query with the parameter of this name changed."""
    return query(context, **{name: value})


def _attributes(attributes: dict[str, str]) -> SafeString:
    return mark_safe(  # noqa: S308 - every part was escaped
        "".join(
            format_html(' {}="{}"', name.replace("_", "-"), value)
            for name, value in attributes.items()
        )
    )


@register.filter
def number(value: Any, digits: int = 0) -> str:
    """Return a number with thousands and a real minus sign: 2,436 or −201.6; blank for None."""
    return formats.number(value, digits)


@register.filter
def counted(count: int, noun: str) -> str:
    """Return a count with its noun: 1 pair, 1,058 pairs."""
    return formats.counted(count, noun)


@register.filter
def signed(value: Any, digits: int = 2) -> str:
    """Return a number with its sign: +0.70, −0.34."""
    return formats.signed(value, digits)


@register.filter
def per_cent(value: Any, digits: int = 1) -> str:
    """Return a fraction as per cent: 0.033 becomes 3.3 %."""
    return formats.per_cent(value, digits)


@register.filter
def scientific(value: Any, digits: int = 1) -> SafeString:
    """Return a small number as 7.4 × 10⁻⁴ with a raised exponent; blank for None."""
    if value is None or not math.isfinite(float(value)):
        return mark_safe("")
    mantissa, exponent = formats.mantissa_and_exponent(float(value), digits)
    if exponent == 0:
        return format_html("{}", mantissa)
    return format_html("{} × 10<sup>{}</sup>", mantissa, str(exponent).replace("-", "\u2212"))


@register.filter
def duration(value: Any) -> str:
    """Return seconds or a timedelta in words: 38 s, 2 min 5 s, 1 h 4 min."""
    return formats.duration(value)


@register.filter
def day(value: date | None) -> str:
    """Return a day with its year: 5 Aug 2026."""
    return formats.day(value) if value else ""


@register.filter
def moment(value: datetime | None) -> str:
    """Return a day and a time: Wed 5 Aug 2026, 14:00."""
    return formats.moment(value) if value else ""


@register.filter
def when(value: datetime | None) -> str:
    """Return a time in everyday words: today 09:12, 18 Nov, 18 Nov 2025."""
    return formats.when(value, timezone.localtime()) if value else ""
