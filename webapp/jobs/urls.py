"""URLs of jobs."""

from django.urls import path

from webapp.jobs import views

app_name = "jobs"
urlpatterns = [
    path("", views.job_list, name="list"),
    path("bell/", views.job_bell, name="bell"),
    path("<uuid:uuid>/", views.job_page, name="job"),
    path("<uuid:uuid>/card/", views.job_card, name="card"),
    path("<uuid:uuid>/convergence/", views.job_convergence, name="convergence"),
    path("<uuid:uuid>/cancel/", views.job_cancel, name="cancel"),
]
