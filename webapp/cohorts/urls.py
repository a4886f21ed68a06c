"""URL patterns of the cohorts application."""

from django.urls import path

from webapp.cohorts.views import cohorts, drafts, latecomers, pairs, student_files

app_name = "cohorts"
urlpatterns = [
    path("cohorts/", cohorts.cohort_list, name="list"),
    path("cohorts/import/", drafts.upload, name="upload"),
    path("cohorts/import/<uuid:uuid>/", drafts.draft, name="draft"),
    path("cohorts/import/<uuid:uuid>/change/", drafts.draft_change, name="draft-change"),
    path("cohorts/import/<uuid:uuid>/confirm/", drafts.draft_confirm, name="draft-confirm"),
    path("cohorts/import/<uuid:uuid>/discard/", drafts.draft_remove, name="draft-discard"),
    path("cohorts/import/<uuid:uuid>/move/", drafts.draft_moved, name="draft-move"),
    path("cohorts/<uuid:uuid>/", cohorts.cohort, name="cohort"),
    path("cohorts/<uuid:uuid>/rename/", cohorts.rename, name="rename"),
    path("cohorts/<uuid:uuid>/split/", cohorts.split, name="split"),
    path("cohorts/<uuid:uuid>/simulate/", cohorts.simulate, name="simulate"),
    path("cohorts/<uuid:uuid>/purge/", cohorts.purge, name="purge"),
    path("cohorts/<uuid:uuid>/add/", latecomers.latecomers, name="latecomers"),
    path(
        "cohorts/<uuid:uuid>/add/<int:arrivals_id>/undo/", latecomers.undo, name="latecomers-undo"
    ),
    path(
        "cohorts/<uuid:uuid>/files/<uuid:draft_uuid>/",
        student_files.student_file,
        name="student-file",
    ),
    path(
        "cohorts/<uuid:uuid>/files/<uuid:draft_uuid>/confirm/",
        student_files.student_file_confirm,
        name="student-file-confirm",
    ),
    path("cohorts/<uuid:uuid>/pairs/", pairs.upload, name="pairs-upload"),
    path("cohorts/<uuid:uuid>/pairs/<uuid:draft_uuid>/", pairs.draft, name="pairs-draft"),
    path(
        "cohorts/<uuid:uuid>/pairs/<uuid:draft_uuid>/confirm/", pairs.confirm, name="pairs-confirm"
    ),
]
