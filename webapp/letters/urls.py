"""URL patterns of letters."""

from django.urls import path

from webapp.letters.views import placements, questions, templates

app_name = "letters"

urlpatterns = [
    path("letters/", templates.templates, name="templates"),
    path("letters/new/", templates.template_new, name="template-new"),
    path("letters/<uuid:uuid>/", templates.template, name="template"),
    path("letters/<uuid:uuid>/remove/", templates.template_delete, name="template-remove"),
    path("cohorts/<uuid:uuid>/requests/ask/", questions.ask, name="ask"),
    path("placements/<uuid:uuid>/letters/", placements.letters, name="placement"),
    path("placements/<uuid:uuid>/letters/act/", placements.act, name="placement-act"),
    path("placements/<uuid:uuid>/letters/send/", placements.send, name="placement-send"),
    path("placements/<uuid:uuid>/letters/file/", placements.file, name="placement-file"),
]
