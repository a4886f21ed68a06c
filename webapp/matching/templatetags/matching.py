"""Template tags and filters of the matching pages: small pictures and sentences."""

import math
from collections import Counter
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webapp.common import formats
from webapp.matching.models import LearnedModel
from webapp.matching.selectors.models import Certificate
from webapp.matching.services.learning import METHODS

register = template.Library()

_TOP = 100.0  # multiples of an even draw at the right end of the bar
_BAR_WIDTH = 44.0
_WEIGHT_WIDTH = 130.0
_WORDS = (
    gettext_lazy("no"),
    gettext_lazy("one"),
    gettext_lazy("two"),
    gettext_lazy("three"),
    gettext_lazy("four"),
    gettext_lazy("five"),
    gettext_lazy("six"),
    gettext_lazy("seven"),
    gettext_lazy("eight"),
    gettext_lazy("nine"),
    gettext_lazy("ten"),
)


@register.simple_tag
def multiple_bar(multiple: float) -> SafeString:
    """Return a bar on a log axis from 1x to 100x an even draw, with a tick at 10x."""
    share = math.log10(max(1.0, multiple)) / math.log10(_TOP)
    length = min(1.0, share) * _BAR_WIDTH
    return format_html(
        '<svg class="multiple-bar" viewBox="0 0 44 6" width="44" height="6" aria-hidden="true">'
        '<rect class="multiple-bar__track" width="44" height="6" rx="2"></rect>'
        '<rect class="multiple-bar__value" width="{}" height="6" rx="2"></rect>'
        '<rect class="multiple-bar__tick" x="21.5" width="1" height="6"></rect></svg>',
        f"{length:.1f}",
    )


@register.filter
def multiple(value: float) -> str:
    """Return a multiple of an even draw as text: 5×, 0.4×."""
    return f"{formats.number(value, 0 if value >= 1.5 else 1)}×"


@register.filter
def probability(value: float) -> str:
    """Return a pair's probability with two significant digits: 5.1 %, 0.17 %."""
    return formats.per_cent(value, 1 if value >= 0.01 else 2)


@register.simple_tag
def weight_bar(effect: float, low: float, high: float) -> SafeString:
    """Return a bar from zero to the effect, orange to the left, blue to the right."""
    span = (high - low) or 1.0
    zero = -low / span * _WEIGHT_WIDTH
    end = (effect - low) / span * _WEIGHT_WIDTH
    x, width = min(zero, end), max(1.0, abs(end - zero))
    tone = "neutral" if abs(effect) < 0.03 else "for" if effect > 0 else "against"
    return format_html(
        '<svg class="chart weight-bar" viewBox="0 0 130 18" width="130" height="18" '
        'aria-hidden="true"><rect class="bar-{}" x="{}" y="4" width="{}" height="10" rx="1.5">'
        '</rect><line class="chart-axis" x1="{}" x2="{}" y1="0" y2="18"></line></svg>',
        tone,
        f"{x:.1f}",
        f"{width:.1f}",
        f"{zero:.1f}",
        f"{zero:.1f}",
    )


@register.simple_tag
def weights_axis(model: LearnedModel) -> dict[str, Any]:
    """Return the common axis of the weight bars, with its labels as a picture."""
    effects = [row["effect"] for row in model.weights] or [0.0]
    low, high = min(0.0, *effects), max(0.0, *effects)
    step = _nice_step(max(high - low, 1e-9) / 2)
    low = -step * math.ceil(-low / step - 1e-9) if low < 0 else 0.0
    high = step * math.ceil(high / step - 1e-9) if high > 0.2 * step else max(high, 0.1 * step)
    ticks = [k * step for k in range(round(low / step), int(high / step + 1e-9) + 1)]
    digits = max(0, -math.floor(math.log10(step)))
    span = high - low
    texts = [
        format_html(
            '<text x="{}" y="11" text-anchor="{}">{}</text>',
            f"{(tick - low) / span * _WEIGHT_WIDTH:.1f}",
            "start" if tick == low else "end" if tick >= high else "middle",
            formats.number(tick, digits if tick else 0),
        )
        for tick in ticks
    ]
    labels = format_html(
        '<svg class="chart" viewBox="0 0 130 14" width="130" height="14" role="img" '
        'aria-label="{}">{}</svg>',
        _("Weight from %(low)s to %(high)s nats")
        % {"low": formats.number(low, digits), "high": formats.number(high, digits)},
        SafeString("".join(texts)),
    )
    return {"low": low, "high": high, "labels": labels}


def _nice_step(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * m for m in (1, 2, 5, 10) if power * m >= value - 1e-12)


@register.simple_tag
def reason_bar(share: float) -> SafeString:
    """Return a bar from the middle: blue to the right speaks for, orange to the left against."""
    length = max(1.0, abs(share) * 40)
    return format_html(
        '<svg class="chart reason-bar" viewBox="0 0 84 14" width="84" height="14" '
        'aria-hidden="true"><rect class="bar-{}" x="{}" y="2" width="{}" height="10" rx="1.5">'
        '</rect><line class="chart-axis" x1="42" x2="42" y1="0" y2="14"></line></svg>',
        "for" if share >= 0 else "against",
        f"{42.0 if share >= 0 else 42 - length:.1f}",
        f"{length:.1f}",
    )


@register.simple_tag
def certificate_scale(certificate: Certificate) -> SafeString:
    """Return a log scale from 100 % down, with marks for the current and the target gap."""
    now, target = 296 * certificate.position, 296 * certificate.target_position
    return format_html(
        '<svg class="chart certificate__scale" viewBox="0 0 300 40" role="img" '
        'aria-label="{}">'
        '<rect class="scale-track" x="2" y="10" width="296" height="6" rx="3"></rect>'
        '<rect class="scale-value" x="2" y="10" width="{}" height="6" rx="3"></rect>'
        '<rect class="fill-accent" x="{}" y="6" width="2" height="14"></rect>'
        '<circle class="point tone-text" cx="{}" cy="13" r="5"></circle>'
        '<text x="2" y="36">100 %</text>'
        '<text x="{}" y="36" text-anchor="{}">{}</text></svg>',
        _("%(gap)s from the best fit; the target is %(target)s")
        % {
            "gap": formats.gap(certificate.relative_gap),
            "target": formats.gap(certificate.target),
        },
        f"{now:.1f}",
        f"{2 + target:.1f}",
        f"{min(293.0, max(7.0, 2 + now)):.1f}",
        f"{min(298.0, 2 + target):.1f}",
        "end" if target > 200 else "middle",
        _("target %(target)s") % {"target": formats.gap(certificate.target)},
    )


@register.filter
def gap_words_of(gap: float) -> str:
    """Return a relative gap in per cent: 0.01 %."""
    return formats.gap(gap)


@register.simple_tag
def gap_words(certificate: Certificate) -> str:
    """Return the gap of a certificate in per cent."""
    return formats.gap(certificate.relative_gap)


@register.simple_tag
def model_facts(model: LearnedModel) -> str:
    """Return the line under a model's title."""
    n_cohorts = len(model.sources)
    where = (
        model.sources[0]["name"]
        if n_cohorts == 1
        else _("%(count)s cohorts") % {"count": n_cohorts}
    )
    students, pairs = (
        _("%(students)s students") % {"students": f"{model.n_students:,}"},
        _("%(pairs)s pairs") % {"pairs": f"{model.n_pairs:,}"},
    )
    if not model.is_learned or model.learned_at is None:
        if model.is_simulated:
            sentence = _("From %(students)s in %(where)s and the %(pairs)s simulated pairs")
        else:
            sentence = _(
                "From %(students)s in %(where)s and the %(pairs)s pairs that they chose themselves"
            )
        return sentence % {"students": students, "where": where, "pairs": f"{model.n_pairs:,}"}
    when = formats.when(model.learned_at, timezone.localtime())
    if model.findings:
        checked = _("Checked on %(pairs)s.") % {"pairs": model.checked_pairs}
    else:
        checked = _("Not checked yet.")
    learned = _("Learned %(when)s from %(students)s and their %(pairs)s.") % {
        "when": when,
        "students": students,
        "pairs": pairs,
    }
    return f"{learned} {checked}"


@register.filter
def question_kinds(model: LearnedModel) -> str:
    """Return the kinds of the questions in words: '2 binary, 12 of five answers'."""
    counts: Counter[str] = Counter()
    for question in model.questions:
        n = len(question["levels"])
        words = _WORDS[n] if n < len(_WORDS) else str(n)
        counts[_("binary") if n == 2 else _("of %(words)s answers") % {"words": words}] += 1
    if len(counts) > 3:
        return f"{len(model.questions)}"
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common())


@register.filter
def method_name(method: str) -> str:
    """Return the name of a learning method."""
    return METHODS.get(method, method)


# The engine's names of the methods that compute the probabilities of pairs.
_COMPUTED_BY = {
    "exact sums": gettext_lazy("exact sums"),
    "potentials": gettext_lazy("potentials"),
    "messages": gettext_lazy("messages"),
    "active set": gettext_lazy("active set"),
    "barrier": gettext_lazy("barrier"),
}


@register.filter
def computed_by(method: str) -> str:
    """Return the name of the method that computed the probabilities of pairs."""
    return str(_COMPUTED_BY.get(method, method))


@register.filter
def auc_note(model: LearnedModel, key: str) -> str:
    """Return the note under a share of correctly ranked pairs."""
    return _("of the time (AUC %(auc)s)") % {"auc": formats.number(model.findings[key], 2)}


@register.filter
def dict_get(values: dict[Any, Any], key: Any) -> Any:
    """Return an entry of a dict; empty if the key is missing."""
    return values.get(key, "")
