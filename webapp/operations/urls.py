"""Addresses of the operations page."""

from django.urls import path

from webapp.operations import views

app_name = "operations"
urlpatterns = [
    path("", views.page, name="page"),
    path("workers/<int:pk>/forget/", views.forget, name="forget"),
]
