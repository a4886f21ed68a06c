"""URL patterns of checks, reports and rosters of a placement."""

from django.urls import path

from webapp.reports import views

app_name = "reports"

urlpatterns = [
    path("placements/<uuid:uuid>/checks/", views.checks, name="checks"),
    path("placements/<uuid:uuid>/checks/start/", views.start, name="check-start"),
    path("placements/<uuid:uuid>/report/", views.report, name="report"),
    path("placements/<uuid:uuid>/report.xlsx", views.report_file, name="report-file"),
    path("placements/<uuid:uuid>/afterwards/", views.afterwards, name="afterwards"),
    path("placements/<uuid:uuid>/afterwards/learn/", views.learn_from, name="afterwards-learn"),
    path("placements/<uuid:uuid>/rosters/", views.rosters, name="rosters"),
    path("placements/<uuid:uuid>/rosters/<uuid:shape>/remove/", views.remove, name="roster-remove"),
    path(
        "placements/<uuid:uuid>/rosters/<uuid:shape>.<table:file_format>",
        views.roster_file,
        name="roster-file",
    ),
]
