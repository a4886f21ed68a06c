"""URL patterns of the demonstration and its tour."""

from django.urls import path

from webapp.demonstration import views

app_name = "demonstration"

urlpatterns = [
    path("demonstration/state/", views.state, name="state"),
    path("demonstration/<slug:key>/retry/", views.retry, name="retry"),
    path("tour/<int:number>/", views.step, name="step"),
    path("tour/close/", views.close, name="close"),
    path("tour/show/", views.show, name="show"),
]
