"""Refusals of the matching application; every message is one sentence for staff."""

from webapp.common.errors import ConflictError, Refusal


class DecisionError(Refusal):
    """A decision that cannot be taken. Nothing was changed."""


class PairsChangedError(DecisionError, ConflictError):
    """Somebody else decided since the page was loaded. Nothing was changed."""


class MatchingError(Refusal):
    """Learning or proposing cannot start. Nothing was changed."""
