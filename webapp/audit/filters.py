"""Filters of the audit log."""

from typing import Any

import django_filters
from django import forms
from django.db.models import Q, QuerySet

from webapp.audit.models import AuditLine


class AuditFilter(django_filters.FilterSet):
    """By act, person, text and days."""

    text = django_filters.CharFilter(
        method="filter_text",
        label="Person or object",
        widget=forms.TextInput(attrs={"type": "search"}),
    )
    verb = django_filters.ChoiceFilter(label="Act", empty_label="Every act", choices=[])
    since = django_filters.DateFilter(
        field_name="created_at",
        lookup_expr="date__gte",
        label="From",
        widget=forms.DateInput(attrs={"type": "date"}),
    )
    until = django_filters.DateFilter(
        field_name="created_at",
        lookup_expr="date__lte",
        label="To",
        widget=forms.DateInput(attrs={"type": "date"}),
    )

    class Meta:
        model = AuditLine
        fields: list[str] = []

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        verbs = self.queryset.order_by("verb").values_list("verb", flat=True).distinct()
        self.filters["verb"].extra["choices"] = [(verb, verb) for verb in verbs]

    def filter_text(
        self, queryset: QuerySet[AuditLine], name: str, value: str
    ) -> QuerySet[AuditLine]:
        """Lines whose person or object has the text in its name."""
        return queryset.filter(
            Q(username__icontains=value)
            | Q(target_name__icontains=value)
            | Q(target_id__iexact=value)
        )
