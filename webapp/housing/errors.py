"""Errors of the housing services."""

from webapp.common.errors import ConflictError, Refusal


class HousingError(Refusal):
    """Refusal of an act on buildings, requests or placements; the message is one sentence."""


class PlacesChangedError(HousingError, ConflictError):
    """Refusal because somebody else changed the same thing first; nothing was changed."""
