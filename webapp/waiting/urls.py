"""URL patterns of waiting lists: the pages of staff, and a student's answer to an offer."""

from django.urls import path

from webapp.waiting.views import staff, students

app_name = "waiting"

_LIST = "placements/<uuid:uuid>/waiting"

urlpatterns = [
    path(f"{_LIST}/", staff.waiting_list, name="list"),
    path(f"{_LIST}.<table:file_format>", staff.export, name="export"),
    path(f"{_LIST}/order/", staff.order, name="order"),
    path(f"{_LIST}/students/<int:number>/", staff.turn, name="turn"),
    path(f"{_LIST}/moves/new/", staff.move_new, name="move-new"),
    path(f"{_LIST}/moves/<int:number>/remove/", staff.move_remove, name="move-remove"),
    path(f"{_LIST}/rooms/<int:room_id>/", staff.offer, name="offer"),
    path(f"{_LIST}/offers/<int:offer_id>/answer/", staff.answer, name="offer-answer"),
    path(f"{_LIST}/offers/<int:offer_id>/withdraw/", staff.withdraw, name="offer-withdraw"),
    path(f"{_LIST}/offers/<int:offer_id>/extend/", staff.extend, name="offer-extend"),
    path("q/mine/home-<str:handle>/another-bed/", students.move, name="own-move"),
    path("q/mine/home-<str:handle>/another-bed/stop/", students.move_stop, name="own-move-stop"),
    path(
        "q/mine/home-<str:handle>/offers/<int:offer_id>/accept/",
        students.accept,
        name="own-accept",
    ),
    path(
        "q/mine/home-<str:handle>/offers/<int:offer_id>/decline/",
        students.decline,
        name="own-decline",
    ),
]
