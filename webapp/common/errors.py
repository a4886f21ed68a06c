"""Errors with messages that are shown to people unchanged."""


class Refusal(ValueError):
    """Refusal of a request, in one sentence for the sender; nothing was changed."""


class ConflictError(Refusal):
    """Conflict: another person changed the object since the sender saw it. The API answers 409."""
