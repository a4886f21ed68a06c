"""Errors with messages that are shown to people unchanged."""


class Refusal(ValueError):
    """Refusal of a request, in one sentence for the sender; nothing was changed.

    ``field`` names the form field beside which the sentence is shown; "" for none.
    """

    def __init__(self, sentence: str = "", field: str = "") -> None:
        super().__init__(str(sentence))
        self.field = field


class ConflictError(Refusal):
    """Conflict: another person changed the object since the sender saw it. The API answers 409."""
