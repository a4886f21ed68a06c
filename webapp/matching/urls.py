"""URL patterns of the matching application."""

from django.urls import path, re_path

from webapp.matching.views import decisions, models, proposals, set_models

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
    path("proposals/", proposals.proposal_list, name="proposals"),
    path("proposals/new/", proposals.proposal_new, name="proposal-new"),
    path("proposals/<uuid:uuid>/", proposals.proposal, name="proposal"),
    path("proposals/<uuid:uuid>/look/", proposals.look, name="look"),
    path("proposals/<uuid:uuid>/propose/", proposals.compute, name="compute"),
    path("proposals/<uuid:uuid>/rename/", proposals.rename, name="proposal-rename"),
    path("proposals/<uuid:uuid>/delete/", proposals.delete, name="proposal-delete"),
    re_path(
        r"^proposals/(?P<uuid>[0-9a-f-]{36})/export\.(?P<file_format>csv|xlsx)$",
        proposals.export,
        name="export",
    ),
    path("proposals/<uuid:uuid>/decide/", decisions.decide, name="decide"),
    path("proposals/<uuid:uuid>/rule/", decisions.rule, name="rule"),
    path("proposals/<uuid:uuid>/swap/", decisions.swap, name="swap"),
    path("proposals/<uuid:uuid>/undo/<int:event_id>/", decisions.undo, name="undo"),
    path("proposals/<uuid:uuid>/pairs/<int:pair_id>/", decisions.pair, name="pair"),
    path("proposals/<uuid:uuid>/pairs/<int:pair_id>/ids/", decisions.originals, name="originals"),
]
