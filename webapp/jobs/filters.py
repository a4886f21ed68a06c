"""Filters of the list of jobs."""

import django_filters

from webapp.jobs.models import Job, JobState


class JobFilter(django_filters.FilterSet):
    """By state."""

    state = django_filters.ChoiceFilter(
        label="State", empty_label="Every state", choices=JobState.choices
    )

    class Meta:
        model = Job
        fields: list[str] = []
