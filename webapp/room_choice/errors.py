"""Errors of room choice."""

from webapp.common.errors import ConflictError, Refusal


class ChoiceError(Refusal):
    """Refusal of an act on rounds, or of a choice, in one sentence in the language of the page."""


class ChoiceConflictError(ChoiceError, ConflictError):
    """Refusal because another person acted first; nothing was changed."""
