"""Refusals of the matching application; every message is one sentence for staff."""

from webapp.common.errors import ConflictError, Refusal


class DecisionError(Refusal):
    """Refusal of a decision. Nothing was changed."""


class PairsChangedError(DecisionError, ConflictError):
    """Refusal because somebody else has decided since the page was loaded. Nothing was changed."""


class MatchingError(Refusal):
    """Refusal to start learning or proposing. Nothing was changed."""
