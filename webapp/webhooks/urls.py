"""URL patterns of webhooks."""

from django.urls import path

from webapp.webhooks import views

app_name = "webhooks"

urlpatterns = [
    path("", views.webhook_list, name="list"),
    path("<uuid:uuid>/", views.webhook, name="webhook"),
    path("<uuid:uuid>/test/", views.test, name="test"),
    path("<uuid:uuid>/repeat/", views.repeat, name="repeat"),
    path("<uuid:uuid>/secret/", views.secret, name="secret"),
    path("<uuid:uuid>/remove/", views.remove, name="remove"),
    path("<uuid:uuid>/act/", views.act, name="act"),
]
