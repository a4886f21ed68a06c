"""What the housing services refuse."""

from webapp.common.errors import ConflictError, Refusal


class HousingError(Refusal):
    """A request about buildings, requests or placements that cannot be met; one sentence."""


class PlacesChangedError(HousingError, ConflictError):
    """Somebody else was quicker; nothing was changed."""
