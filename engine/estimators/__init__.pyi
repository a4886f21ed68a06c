"""Names of ``engine.estimators``; ``__init__.py`` imports each when it is first used."""

from .roommates import Roommates
from .segmenter import Segmenter
from .structured_model import StructuredModel

__all__ = [
    "Roommates",
    "Segmenter",
    "StructuredModel",
]
