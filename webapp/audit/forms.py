"""Filter of the audit log."""

from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from webapp.audit.models import AuditLine


class AuditFilter(forms.Form):
    """Filter of the audit log by act, person, text and days; a field with an error is left out."""

    text = forms.CharField(
        label=gettext_lazy("Person or object"),
        required=False,
        widget=forms.TextInput(attrs={"type": "search"}),
    )
    verb = forms.ChoiceField(label=gettext_lazy("Act"), required=False)
    since = forms.DateField(
        label=gettext_lazy("From"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )
    until = forms.DateField(
        label=gettext_lazy("To"), required=False, widget=forms.DateInput(attrs={"type": "date"})
    )

    def __init__(self, data: Any, *, lines: QuerySet[AuditLine]) -> None:
        super().__init__(data)
        self.lines = lines
        verbs = lines.order_by("verb").values_list("verb", flat=True).distinct()
        field = self.fields["verb"]
        field.choices = [("", _("Every act")), *((verb, verb) for verb in verbs)]  # type: ignore[attr-defined]

    def matching(self) -> QuerySet[AuditLine]:
        """Return the lines that match the fields without an error."""
        self.is_valid()
        given = self.cleaned_data
        lines = self.lines
        if text := given.get("text"):
            lines = lines.filter(
                Q(username__icontains=text)
                | Q(target_name__icontains=text)
                | Q(target_id__iexact=text)
            )
        if verb := given.get("verb"):
            lines = lines.filter(verb=verb)
        if since := given.get("since"):
            lines = lines.filter(created_at__date__gte=since)
        if until := given.get("until"):
            lines = lines.filter(created_at__date__lte=until)
        return lines
