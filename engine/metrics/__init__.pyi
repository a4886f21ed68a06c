"""Names of ``engine.metrics``; ``__init__.py`` imports each when it is first used."""

from .calibration import ReliabilityBin, fit_platt_slope, reliability_bins, wilson_range
from .matching_error import hamming_error
from .roc import RocCurve, compute_roc
from .segmentation import binary_entropy, intersection_over_union, log_loss

__all__ = [
    "ReliabilityBin",
    "RocCurve",
    "binary_entropy",
    "compute_roc",
    "fit_platt_slope",
    "hamming_error",
    "intersection_over_union",
    "log_loss",
    "reliability_bins",
    "wilson_range",
]
