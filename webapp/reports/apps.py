"""The application of checks, reports and rosters of placements."""

from django.apps import AppConfig


class ReportsConfig(AppConfig):
    """Checks of placements are jobs; their module is found by the application of jobs."""

    name = "webapp.reports"
    label = "reports"
