"""Configuration of the jobs application."""

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules

from webapp import version
from webapp.translation.lazy import gettext_lazy as _


class JobsConfig(AppConfig):
    """Application that imports every application's ``jobs.py`` and adds Jobs to the rail."""

    name = "webapp.jobs"
    label = "jobs"

    def ready(self) -> None:
        """Import the modules that register job kinds."""
        from webapp.common.hooks import (
            HomePanel,
            NavigationItem,
            register_home_panel,
            register_navigation,
        )
        from webapp.files.orphaned_files import register_needed
        from webapp.files.quota import register_promises
        from webapp.jobs import dispatch, selectors
        from webapp.jobs.metrics import job_gauges
        from webapp.monitoring import metrics, readiness

        autodiscover_modules("jobs")
        version.code_version()  # now, while the checkout is still the version that was started
        register_navigation(
            NavigationItem(
                "Workspace",
                _("Jobs"),
                "activity",
                "jobs:list",
                order=10,
                label_of=selectors.running_label,
            )
        )
        register_needed("checkpoints", selectors.needed_checkpoints)
        register_promises(selectors.reserved_bytes)
        readiness.checks |= {"broker": dispatch.check_broker, "worker": dispatch.check_worker}
        readiness.distant |= {"broker", "worker"}
        metrics.gauges.append(job_gauges)
        register_home_panel(HomePanel("jobs/_home_panel.html", selectors.recent_jobs, order=0))
