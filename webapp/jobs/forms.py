"""Filter of the list of jobs."""

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from webapp.jobs.models import Job, JobState


class JobFilter(forms.Form):
    """Filter of jobs by state; an unknown state shows every job."""

    state = forms.ChoiceField(
        label=_("State"), required=False, choices=[("", _("Every state")), *JobState.choices]
    )

    def matching(self, jobs: QuerySet[Job]) -> QuerySet[Job]:
        """Return the jobs in the given state."""
        if self.is_valid() and self.cleaned_data["state"]:
            return jobs.filter(state=self.cleaned_data["state"])
        return jobs
