"""Application configuration of identity providers and second factors."""

from django.apps import AppConfig


class IdentityConfig(AppConfig):
    """Application for sign-in by OpenID Connect and SAML, and for one-time codes."""

    name = "webapp.identity"
    label = "identity"
