"""Reader of QuPath's GeoJSON: outlines with holes, by class; the file's name names the image."""

from collections.abc import Iterator, Mapping
from typing import Any

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.shapes import (
    MOST_SHAPES,
    Annotation,
    Shape,
    class_name,
    dots,
    enclosed_by,
    misfits_in_words,
    numbers_of,
)

_NO_CLASS = "Object"


def is_geojson(tree: Any) -> bool:
    """Return True if the JSON is GeoJSON: a collection, a list of features, or one feature."""
    if isinstance(tree, list):
        return bool(tree) and all(
            isinstance(one, dict) and one.get("type") == "Feature" for one in tree
        )
    return isinstance(tree, dict) and tree.get("type") in {"FeatureCollection", "Feature"}


def read_geojson(tree: Any, name: str) -> Annotation:
    """Return the shapes of a file, which names no image: ``image`` is empty.

    Raises
    ------
    InvalidProblemError
        If a feature cannot be painted; the sentence names its number.
    """
    features = tree if isinstance(tree, list) else tree.get("features", [tree])
    if len(features) > MOST_SHAPES:
        raise InvalidProblemError(f"{name} has more than {MOST_SHAPES:,} features.")
    annotation = Annotation("", None)
    for number, one in enumerate(features, start=1):
        with misfits_in_words(f"{name}: feature {number}"):
            kind = _class_of(one.get("properties") or {})
            annotation.shapes += _drawn(one["geometry"], kind)
    return annotation


def _class_of(properties: Mapping[str, Any]) -> str | None:
    """Return the name of a class, or of a derived one: "Tumor: Positive"."""
    found = properties.get("classification") or {}
    names = found.get("names") or [found.get("name") or _NO_CLASS]
    return class_name(": ".join(str(one) for one in names))


def _drawn(geometry: Mapping[str, Any], kind: str | None) -> Iterator[Shape]:
    drawn = geometry["type"]
    places: Any = geometry.get("coordinates")
    if drawn == "GeometryCollection":
        for one in geometry["geometries"]:
            yield from _drawn(one, kind)
    elif drawn in {"Polygon", "MultiPolygon"}:
        for rings in [places] if drawn == "Polygon" else places:
            yield from enclosed_by([_flat(ring) for ring in rings], kind)
    elif drawn == "LineString":
        yield Shape(kind, "brush", _flat(places))
    elif drawn == "MultiPoint":
        yield from dots(_flat(places), kind)
    elif drawn == "MultiLineString":
        for line in places:
            yield Shape(kind, "brush", _flat(line))
    elif drawn == "Point":
        yield Shape(kind, "brush", _flat([places]))
    else:
        raise ValueError("no such geometry")


def _flat(points: Any) -> list[float]:
    return numbers_of(side for point in points for side in point[:2])
