"""Names of ``engine.metrics``; ``__init__.py`` imports each when it is first used."""

from .calibration import ReliabilityBin, fit_platt_slope, reliability_bins, wilson_range
from .classes import ClassFigures, Confusion, class_figures, confusion
from .matching_error import hamming_error
from .object_edits import (
    EditRefusedError,
    ObjectEdit,
    ObjectEditor,
    ObjectShape,
    apply_edits,
)
from .object_scores import ObjectMatches, match_objects
from .object_separation import object_planes, separate_objects
from .objects import ObjectTable, kept_objects, measure_objects
from .roc import RocCurve, compute_roc
from .segmentation import binary_entropy, intersection_over_union, log_loss

__all__ = [
    "ClassFigures",
    "Confusion",
    "EditRefusedError",
    "ObjectEdit",
    "ObjectEditor",
    "ObjectMatches",
    "ObjectShape",
    "ObjectTable",
    "ReliabilityBin",
    "RocCurve",
    "apply_edits",
    "binary_entropy",
    "class_figures",
    "compute_roc",
    "confusion",
    "fit_platt_slope",
    "hamming_error",
    "intersection_over_union",
    "kept_objects",
    "log_loss",
    "match_objects",
    "measure_objects",
    "object_planes",
    "reliability_bins",
    "separate_objects",
    "wilson_range",
]
