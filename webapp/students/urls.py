"""URL patterns of the students application."""

from django.urls import path

from webapp.students import views

app_name = "students"
urlpatterns = [
    path("cohorts/<uuid:uuid>/students/<int:number>/", views.student, name="student"),
    path("cohorts/<uuid:uuid>/students/<int:number>/notes/", views.note, name="note"),
    path("names/", views.hide_names, name="hide-names"),
]
