"""Template tags and filters of the staff pages of questionnaires."""

from django import template
from django.template import Context
from django.utils import dateformat
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from django.utils.translation import gettext as _

from webapp.surveys.mails import LINK
from webapp.surveys.models import Participant
from webapp.surveys.names import label_of, number_label
from webapp.surveys.selectors.clashes import Clash
from webapp.surveys.selectors.progress import Progress

register = template.Library()

_WIDTH, _HEIGHT = 440, 110


@register.simple_tag
def curve(progress: Progress) -> SafeString:
    """Return a curve of the people who finished, by day, with its end in words."""
    counts = [count for _, count in progress.curve]
    top = max(progress.n_people, 1)
    step = _WIDTH / max(1, len(counts) - 1)
    points = [f"{k * step:.1f},{_HEIGHT - _HEIGHT * n / top:.1f}" for k, n in enumerate(counts)]
    if len(points) == 1:
        points.append(f"{_WIDTH},{points[0].split(',')[1]}")
    numbers = {"finished": f"{counts[-1]:,}", "people": f"{top:,}"}
    days = {
        "first": dateformat.format(progress.curve[0][0], gettext("j F")),
        "last": dateformat.format(progress.curve[-1][0], gettext("j F")),
    }
    return format_html(
        '<figure class="survey-curve"><svg viewBox="0 -6 {} {}" role="img" aria-label="{}">'
        '<polygon points="0,{} {} {},{}"></polygon><polyline points="{}"></polyline></svg>'
        "<figcaption>{}</figcaption></figure>",
        _WIDTH,
        _HEIGHT + 12,
        gettext("%(finished)s of %(people)s finished") % numbers,
        _HEIGHT,
        " ".join(points),
        _WIDTH,
        _HEIGHT,
        " ".join(points),
        gettext("%(first)s to %(last)s: %(finished)s of %(people)s finished") % (numbers | days),
    )


@register.simple_tag(takes_context=True)
def person_label(context: Context, person: Participant) -> str:
    """Return a participant as the reader sees them: by number, e-mail or code, or "Person 17"."""
    return label_of(person, with_name=context.get("names_switch") == "hide")


@register.simple_tag(takes_context=True)
def address_label(context: Context, person: Participant) -> str:
    """Return a participant by e-mail, number or code as the reader may see, or "Person 17"."""
    if context.get("names_switch") == "hide":
        return person.email or label_of(person, with_name=True)
    return number_label(person)


@register.simple_tag(takes_context=True)
def clash_label(context: Context, clash: Clash) -> str:
    """Return the number that several gave, or the first of them where names are hidden."""
    if context.get("names_switch") == "hide":
        return clash.name
    return number_label(min((*clash.answers, *clash.set_aside), key=lambda one: one.pk))


@register.simple_tag
def mail_paragraph(text: str, link: str) -> SafeString:
    """Return a paragraph of a mail; a paragraph that is only the personal link becomes a button."""
    if text.strip() == "---":
        return mark_safe('<hr style="margin:24px 0;border:0;border-top:1px solid #d8ddd6">')
    if text.strip() == LINK:
        return format_html(
            '<p style="margin:0 0 16px"><a href="{}" style="display:inline-block;padding:12px 24px;'
            "border-radius:8px;background:#1f6f43;color:#ffffff;font-weight:600;"
            'text-decoration:none">{}</a></p>',
            link,
            _("Open the questionnaire"),
        )
    shown = format_html('<a href="{}">{}</a>', link, link)
    lines = format_html_join(
        mark_safe("<br>"),
        "{}",
        (
            (format_html_join(shown, "{}", ((part,) for part in line.split(LINK))),)
            for line in text.splitlines()
        ),
    )
    return format_html('<p style="margin:0 0 16px;overflow-wrap:anywhere">{}</p>', lines)
