"""Jobs as a table."""

import django_tables2 as tables
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webapp.common import formats
from webapp.jobs.models import Job
from webapp.jobs.selectors import subject_links

NUMBER = {"td": {"class": "num nowrap"}, "th": {"class": "num"}}
SHORT = {"td": {"class": "nowrap"}}


class JobTable(tables.Table):
    """One job a row, on a phone in two lines."""

    is_compact = True

    title = tables.Column(verbose_name="Job")
    state = tables.Column(verbose_name="State")
    sentence = tables.Column(verbose_name="Where it stands", orderable=False)
    created_by = tables.Column(
        verbose_name="By", accessor="created_by__username", default="", attrs=SHORT
    )
    elapsed = tables.Column(verbose_name="Ran for", orderable=False, attrs=NUMBER)
    created_at = tables.Column(verbose_name="Started", attrs=NUMBER)
    subject = tables.Column(verbose_name="Open", empty_values=(), orderable=False, attrs=SHORT)

    class Meta:
        model = Job
        fields = ("title", "state", "sentence", "created_by", "elapsed", "created_at", "subject")
        order_by = "-created_at"
        empty_text = "No job to show. Learning, proposing and predicting run as jobs."
        attrs = {"aria-label": "Jobs"}

    def before_render(self, request: HttpRequest) -> None:
        """Find what all jobs of the page work on at once."""
        self._subjects = subject_links(row.record for row in self.paginated_rows)

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

    def render_subject(self, record: Job) -> SafeString | str:
        """The way to what the job works on, while that is there."""
        link = self._subjects.get(record.pk)
        if link is None:
            return ""
        hidden = format_html('<span class="visually-hidden"> of {}</span>', record.title)
        return format_html('<a href="{}">{}{}</a>', link.url, link.noun.capitalize(), hidden)
