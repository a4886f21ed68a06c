"""The audit log as a table."""

from typing import Any

import django_tables2 as tables
from django.conf import settings
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from webapp.audit.models import AuditLine
from webapp.common import formats


class AuditTable(tables.Table):
    """One act a row, newest first; on a phone in two lines."""

    is_compact = True

    created_at = tables.Column(verbose_name=f"When ({settings.TIME_ZONE})")
    username = tables.Column(verbose_name="Who")
    verb = tables.Column(verbose_name="Did")
    target_name = tables.Column(verbose_name="What")
    details = tables.Column(verbose_name="Details", orderable=False)

    class Meta:
        model = AuditLine
        fields = ("created_at", "username", "verb", "target_name", "details")
        order_by = "-created_at"
        empty_text = "No act matches. Widen the filter."
        attrs = {"aria-label": "Audit log"}

    def render_created_at(self, value: Any) -> str:
        """Date and time to the second: this is a record."""
        return f"{formats.timezone.localtime(value):%Y-%m-%d %H:%M:%S}"

    def render_target_name(self, record: AuditLine) -> SafeString:
        """The kind of object, then its name."""
        return format_html("{}<small>{}</small>", record.target_name, record.target_type)

    def render_details(self, value: dict[str, Any]) -> SafeString:
        """Details as words, never raw JSON."""
        rows = ((name.replace("_", " "), details_text(item)) for name, item in value.items())
        return format_html_join(", ", "{} {}", rows)


def details_text(item: Any) -> str:
    """One detail as text: lists with commas, long ones shortened."""
    if isinstance(item, dict):
        return "; ".join(f"{name} {details_text(value)}" for name, value in item.items())
    if isinstance(item, list):
        shown = ", ".join(details_text(value) for value in item[:8])
        return f"{shown} and {len(item) - 8} more" if len(item) > 8 else shown
    if isinstance(item, bool):
        return "yes" if item else "no"
    return str(item)
