"""URL patterns of the matching application."""

from django.urls import path

from webapp.matching.views import models, set_models

app_name = "matching"
urlpatterns = [
    path("models/", models.model_list, name="models"),
    path("models/new/", models.model_new, name="model-new"),
    path("models/set/", set_models.model_set_page, name="model-set"),
    path("models/<uuid:uuid>/", models.model, name="model"),
    path("models/<uuid:uuid>/certificate/", models.certificate, name="model-certificate"),
    path("models/<uuid:uuid>/check/", models.check, name="model-check"),
    path("models/<uuid:uuid>/stop/", models.stop, name="model-stop"),
    path("models/<uuid:uuid>/intervals/", models.estimate, name="model-intervals"),
    path("models/<uuid:uuid>/weights.csv", models.weights, name="model-weights"),
    path("models/<uuid:uuid>/rename/", models.rename, name="model-rename"),
    path("models/<uuid:uuid>/delete/", models.delete, name="model-delete"),
]
