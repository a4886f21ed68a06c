"""Jobs as a table."""

import django_tables2 as tables
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webapp.common import formats
from webapp.jobs.models import Job

NUMBER = {"td": {"class": "num nowrap"}, "th": {"class": "num"}}
SHORT = {"td": {"class": "nowrap"}}


class JobTable(tables.Table):
    """One job a row."""

    title = tables.Column(verbose_name="Job")
    state = tables.Column(verbose_name="State")
    sentence = tables.Column(verbose_name="Where it stands", orderable=False)
    created_by = tables.Column(
        verbose_name="By", accessor="created_by__username", default="", attrs=SHORT
    )
    elapsed = tables.Column(verbose_name="Ran for", orderable=False, attrs=NUMBER)
    created_at = tables.Column(verbose_name="Started", attrs=NUMBER)

    class Meta:
        model = Job
        fields = ("title", "state", "sentence", "created_by", "elapsed", "created_at")
        order_by = "-created_at"
        empty_text = "No job to show. Learning, proposing and predicting run as jobs."
        attrs = {"aria-label": "Jobs"}

    def render_title(self, record: Job) -> SafeString:
        """The title opens the job."""
        return format_html(
            '<a data-open href="{}">{}</a>', reverse("jobs:job", args=[record.pk]), record.title
        )

    def render_state(self, record: Job) -> SafeString:
        """The state as a badge with icon and word."""
        return render_to_string("jobs/_state.html", {"job": record})

    def render_sentence(self, record: Job) -> SafeString:
        """A bar while it runs, the outcome when it is over."""
        return render_to_string("jobs/_where.html", {"job": record})

    def render_elapsed(self, record: Job) -> str:
        """Running time, not waiting time."""
        return formats.duration(record.elapsed) if record.started_at else ""

    def render_created_at(self, record: Job) -> str:
        """The time at which somebody started it."""
        return formats.when(record.created_at, formats.timezone.localtime())
