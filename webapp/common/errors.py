"""The one kind of error whose message is shown to people as it is."""


class Refusal(ValueError):
    """What was asked for cannot be done. One sentence for whoever asked; nothing was changed."""
