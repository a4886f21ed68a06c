"""Choices of what counts as an object of a prediction: background, splits, sizes, border."""

from dataclasses import asdict, dataclass
from typing import Any

LEAST_PIXELS = 10
"""Smaller specks are not objects, unless somebody chose otherwise."""
BACKGROUND_NAMES = frozenset(
    {"background", "hintergrund", "fond", "fondo", "other", "rest", "nothing", "unlabelled"}
    | {"_background_", "back ground", "bg", "void", "unlabeled", "no object"}
)
"""Names, in lower case, of classes that are no objects unless somebody chose otherwise."""
EDGE_NAMES = frozenset({"edge", "edges", "border", "borders", "boundary", "boundaries"})
"""Names, in lower case, of classes that are edges of objects unless somebody chose otherwise."""


@dataclass(frozen=True, slots=True)
class ObjectOptions:
    """Choices that decide which pixels of a prediction are objects.

    Parameters
    ----------
    splits : float, -1 (pixels that touch are one object) to 1 (most splits).
    background : numbers of the classes that are no objects.
    min_pixels : int, smaller objects are left out.
    drop_border : bool, True to leave out objects at the border of an image.
    typical_area : float or None, pixels of a usual object; None to estimate it by image.
    edge : number of the class that marks edges of objects, which it belongs to; None if none does.
    """

    splits: float = 0.0
    background: tuple[int, ...] = ()
    min_pixels: int = LEAST_PIXELS
    drop_border: bool = False
    typical_area: float | None = None
    edge: int | None = None

    @property
    def no_objects(self) -> tuple[int, ...]:
        """Return the numbers of the classes without objects of their own: background and edges."""
        return self.background if self.edge is None else (*self.background, self.edge)

    def as_json(self) -> dict[str, Any]:
        """Return plain values to store."""
        return asdict(self) | {"background": list(self.background)}


def background_of(classes: list[dict[str, Any]]) -> tuple[int, ...]:
    """Return the numbers of classes whose names say background; never of all classes."""
    named = tuple(
        one["value"] for one in classes if one["name"].strip().lower() in BACKGROUND_NAMES
    )
    return named if len(named) < len(classes) else ()


def edge_of(classes: list[dict[str, Any]]) -> int | None:
    """Return the number of the class whose name says edge; None if no other class has objects."""
    rest = {one["value"] for one in classes} - set(background_of(classes))
    named = [one["value"] for one in classes if one["name"].strip().lower() in EDGE_NAMES]
    return named[0] if len(named) == 1 and len(rest) > 1 and named[0] in rest else None


def options_of(stored: dict[str, Any], classes: list[dict[str, Any]]) -> ObjectOptions:
    """Return the options of a prediction; earlier ones counted touching pixels as one object."""
    if not stored:
        return ObjectOptions(splits=-1.0, background=background_of(classes))
    return ObjectOptions(**stored | {"background": tuple(stored["background"])})
