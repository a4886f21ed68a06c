"""URL patterns of the audit log."""

from django.urls import path

from webapp.audit import views

app_name = "audit"
urlpatterns = [
    path("", views.log, name="log"),
    path("export/", views.export, name="export"),
]
