"""Refusals of the matching application; every message is one sentence for staff."""

from webapp.common.errors import Refusal


class MatchingError(Refusal):
    """Refusal to start learning. Nothing was changed."""
