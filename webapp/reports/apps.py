"""The Django application of checks, reports and rosters of placements."""

from django.apps import AppConfig


class ReportsConfig(AppConfig):
    """Django application of reports; the application of jobs finds its module of jobs."""

    name = "webapp.reports"
    label = "reports"
