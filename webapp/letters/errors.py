"""Errors of letters, each in one sentence."""

from webapp.common.errors import Refusal


class LetterError(Refusal):
    """Refusal of a letter that cannot be written or sent in this form."""
