"""Application configuration of files."""

from django.apps import AppConfig


class FilesConfig(AppConfig):
    """Application that keeps what people upload and jobs make, in one store."""

    name = "webapp.files"
    label = "files"

    def ready(self) -> None:
        """Register the store among the parts that may not answer."""
        from webapp.common.hooks import register_absence
        from webapp.files import store
        from webapp.monitoring import readiness

        register_absence("store of files", store.is_fault)
        readiness.checks["store"] = store.check
