"""The addresses of an installation in which the operators' admin is on."""

from django.urls import path

from webapp.operations.admin import site
from webapp.urls import handler400, handler403, handler404, handler500, urlpatterns

__all__ = ["handler400", "handler403", "handler404", "handler500"]
urlpatterns = [*urlpatterns, path("operations/rows/", site.urls)]
