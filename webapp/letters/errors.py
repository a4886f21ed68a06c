"""What goes wrong with letters, in one sentence."""

from webapp.common.errors import Refusal


class LetterError(Refusal):
    """A letter cannot be written or sent so."""
