"""The application of providers and second factors."""

from django.apps import AppConfig


class IdentityConfig(AppConfig):
    """Sign-in by OpenID Connect and SAML, and one-time codes."""

    name = "webapp.identity"
    label = "identity"
