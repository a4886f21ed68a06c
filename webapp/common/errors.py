"""The errors whose message is shown to people as it is."""


class Refusal(ValueError):
    """What was asked for cannot be done. One sentence for whoever asked; nothing was changed."""


class ConflictError(Refusal):
    """Somebody else was quicker: what was asked for was seen as it is no longer. A 409 by API."""
