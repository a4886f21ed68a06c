"""URL patterns of the students application."""

from django.urls import path

from webapp.students import views

app_name = "students"
urlpatterns = [
    path("cohorts/<uuid:uuid>/students/<int:number>/", views.student, name="student"),
    path("cohorts/<uuid:uuid>/students/<int:number>/notes/", views.note, name="note"),
    path("cohorts/<uuid:uuid>/students/<int:number>/notes/new/", views.note_new, name="note-new"),
    path(
        "cohorts/<uuid:uuid>/students/<int:number>/notes/<int:note_id>/",
        views.note_change,
        name="note-edit",
    ),
    path(
        "cohorts/<uuid:uuid>/students/<int:number>/notes/<int:note_id>/delete/",
        views.note_delete,
        name="note-delete",
    ),
    path("names/", views.hide_names, name="hide-names"),
]
