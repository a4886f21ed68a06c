"""URLs for monitoring programs."""

from django.urls import path

from webapp.monitoring import views

app_name = "monitoring"
urlpatterns = [
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path("metrics", views.metrics_page, name="metrics"),
]
