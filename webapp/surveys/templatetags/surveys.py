"""Template words of the staff's pages of questionnaires."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webapp.surveys.selectors import Progress

register = template.Library()

_WIDTH, _HEIGHT = 440, 110


@register.simple_tag
def curve(progress: Progress) -> SafeString:
    """The number of people who finished, day by day, as a curve with its end in words."""
    counts = [count for _, count in progress.curve]
    top = max(progress.n_people, 1)
    step = _WIDTH / max(1, len(counts) - 1)
    points = [f"{k * step:.1f},{_HEIGHT - _HEIGHT * n / top:.1f}" for k, n in enumerate(counts)]
    if len(points) == 1:
        points.append(f"{_WIDTH},{points[0].split(',')[1]}")
    first, last = progress.curve[0][0], progress.curve[-1][0]
    return format_html(
        '<figure class="survey-curve"><svg viewBox="0 -6 {} {}" role="img" aria-label="{}">'
        '<polygon points="0,{} {} {},{}"></polygon><polyline points="{}"></polyline></svg>'
        "<figcaption>{} to {}: {} of {} finished</figcaption></figure>",
        _WIDTH,
        _HEIGHT + 12,
        f"{counts[-1]:,} of {top:,} finished",
        _HEIGHT,
        " ".join(points),
        _WIDTH,
        _HEIGHT,
        " ".join(points),
        first.strftime("%-d %B"),
        last.strftime("%-d %B"),
        counts[-1],
        top,
    )
