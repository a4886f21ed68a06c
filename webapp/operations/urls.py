"""URL patterns of the operations page."""

from django.urls import path

from webapp.operations import views

app_name = "operations"
urlpatterns = [
    path("", views.page, name="page"),
    path("backup/", views.back_up, name="back-up"),
    path("alerts/", views.alert_me, name="alert-me"),
    path("alerts/end/", views.alert_me_no_more, name="alert-me-no-more"),
    path("workers/<int:pk>/forget/", views.forget, name="forget"),
]
