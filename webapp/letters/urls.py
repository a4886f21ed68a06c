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
    path("cohorts/<uuid:uuid>/requests/ask/send/", questions.send, name="ask-send"),
    path("placements/<uuid:uuid>/letters/", placements.letters, name="placement"),
    path("placements/<uuid:uuid>/letters/act/", placements.act, name="placement-act"),
    path("placements/<uuid:uuid>/letters/test/", placements.test, name="placement-test"),
    path(
        "placements/<uuid:uuid>/letters/addresses/",
        placements.addresses,
        name="placement-addresses",
    ),
    path(
        "placements/<uuid:uuid>/letters/returned/", placements.returned, name="placement-returned"
    ),
    path("placements/<uuid:uuid>/letters/stop/", placements.stop, name="placement-stop"),
    path("placements/<uuid:uuid>/letters/send/", placements.send, name="placement-send"),
    path("placements/<uuid:uuid>/letters/retry/", placements.retry, name="placement-retry"),
    path("placements/<uuid:uuid>/letters/file/", placements.file, name="placement-file"),
]
