"""Refusals of the matching application; every message is one sentence for staff."""


class DecisionError(ValueError):
    """A decision that cannot be taken. Nothing was changed."""


class ChangedElsewhereError(DecisionError):
    """Somebody else decided since the page was loaded. Nothing was changed."""


class MatchingError(ValueError):
    """Learning or proposing cannot start. Nothing was changed."""
