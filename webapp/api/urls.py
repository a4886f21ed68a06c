"""URL patterns of the API: its documentation, its tokens, its endpoints."""

from django.urls import path

from webapp.api import (
    endpoints,  # noqa: F401 - importing it declares the endpoints
    views,
)
from webapp.api.dispatch import view_of
from webapp.api.registry import by_path

app_name = "api"
urlpatterns = [
    path("", views.docs, name="docs"),
    path("openapi.json", views.openapi, name="openapi"),
    path("tokens/", views.tokens, name="tokens"),
    path("tokens/<uuid:uuid>/revoke/", views.token_revoke_view, name="token-revoke"),
    *[path(f"v1/{entries[0].route}", view_of(entries)) for _, entries in by_path()],
]
