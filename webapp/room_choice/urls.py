"""URL patterns of room choice: pages of students, below their personal pages, and of staff."""

from django.urls import include, path

from webapp.room_choice.views import rounds, students

app_name = "room_choice"

_round = [
    path("", rounds.show, name="round"),
    path("edit/", rounds.edit, name="round-edit"),
    path("publish/", rounds.publish, name="round-publish"),
    path("mail/", rounds.mail, name="round-mail"),
    path("pause/", rounds.pause, name="round-pause"),
    path("resume/", rounds.resume, name="round-resume"),
    path("extend/", rounds.extend, name="round-extend"),
    path("close/", rounds.close, name="round-close"),
    path("remove/", rounds.remove, name="round-remove"),
    path("undo/<int:event_id>/", rounds.undo, name="round-undo"),
    path("students.<table:file_format>", rounds.export, name="round-file"),
]

urlpatterns = [
    path("q/mine/home-<str:handle>/rooms/", students.rooms, name="rooms"),
    path("q/mine/home-<str:handle>/rooms/<int:room_id>/", students.choose, name="choose"),
    path("placements/<uuid:uuid>/room-choice/", rounds.rounds, name="rounds"),
    path("placements/<uuid:uuid>/room-choice/new/", rounds.new, name="round-new"),
    path("placements/<uuid:uuid>/room-choice/empty/", rounds.empty, name="rounds-empty"),
    path("placements/<uuid:uuid>/room-choice/<int:round_id>/", include(_round)),
]
