"""Names of ``engine.rooms``; ``__init__.py`` imports each when it is first used."""

from .changed_rules import what_if
from .placement import place_in_rooms

__all__ = [
    "place_in_rooms",
    "what_if",
]
