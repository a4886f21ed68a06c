"""URLs of pages that belong to no single application."""

from django.urls import path

from webapp.common import views

app_name = "common"
urlpatterns = [
    path("", views.home, name="home"),
    path("help/", views.help_page, name="help"),
    path("rail/", views.rail_counts, name="rail"),
    path("search/", views.search, name="search"),
    path("words.js", views.words_of_scripts, name="words-of-scripts"),
]
