"""URL patterns of personal pages, and of the pages on which staff decide.

They come before those of questionnaires, whose links have the same form.
"""

from django.urls import path

from webapp.residents import converters  # noqa: F401 - registers a converter
from webapp.residents.views import staff, students

app_name = "residents"

urlpatterns = [
    path("q/<home_token:token>/", students.enter, name="enter"),
    path("q/home/<str:code>/", students.sign_in, name="sign-in"),
    path("q/mine/home-<str:handle>/", students.home, name="home"),
    path("q/mine/home-<str:handle>/contact/", students.contact, name="contact"),
    path("q/mine/home-<str:handle>/ask/", students.ask, name="ask"),
    path(
        "q/mine/home-<str:handle>/ask/<int:ask_id>/take-back/",
        students.take_back,
        name="take-back",
    ),
    path("placements/<uuid:uuid>/asks/", staff.asks, name="asks"),
    path("placements/<uuid:uuid>/asks/<int:ask_id>/", staff.decide, name="ask-decide"),
    path(
        "cohorts/<uuid:uuid>/students/<int:number>/page/renew/",
        staff.renew,
        name="page-renew",
    ),
]
