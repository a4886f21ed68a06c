"""Addresses of questionnaires: those of staff, and the short ones of students."""

from django.urls import path

from webapp.surveys.views import people, staff, students

app_name = "surveys"
urlpatterns = [
    path("questionnaires/", staff.questionnaire_list, name="list"),
    path("questionnaires/new/", staff.new, name="new"),
    path("questionnaires/<uuid:uuid>/", staff.questionnaire, name="questionnaire"),
    path("questionnaires/<uuid:uuid>/change/", staff.change, name="change"),
    path("questionnaires/<uuid:uuid>/undo/", staff.undo, name="undo"),
    path("questionnaires/<uuid:uuid>/languages/", staff.languages, name="languages"),
    path("questionnaires/<uuid:uuid>/open/", staff.open_or_close, name="open"),
    path("questionnaires/<uuid:uuid>/preview/", staff.preview, name="preview"),
    path("questionnaires/<uuid:uuid>/invite/", people.invite, name="invite"),
    path("questionnaires/<uuid:uuid>/cohort/", people.make_cohort, name="make-cohort"),
    path("questionnaires/<uuid:uuid>/delete/", staff.delete, name="delete"),
    path("q/", students.enter, name="enter"),
    path("q/code/<str:code>/", students.code, name="code"),
    path("q/<str:token>/", students.answer, name="answer"),
]
