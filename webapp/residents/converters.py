"""Path converter of the personal links to students' pages."""

from django.urls import register_converter

from webapp.residents.models import MARK


class TokenConverter:
    """A token of a personal page; other tokens are those of questionnaires."""

    regex = rf"\d+\.{MARK}[\w-]{{8,20}}(?:~|%7[Ee])[\w-]+(?:~|%7[Ee])[\w-]+"

    def to_python(self, value: str) -> str:
        """Return the token."""
        return value

    def to_url(self, value: str) -> str:
        """Return the token as it stands in addresses."""
        return value


register_converter(TokenConverter, "home_token")
