"""Options of boosted trees."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """Options of boosted trees; each split considers a random ``share`` of the features.

    Trees of several classes consider at most ``most_features`` of them, and shrink the values of
    leaves towards 0 by ``ridge``. Trees of masks use ``n_bins`` bins for each feature.
    """

    n_trees: int
    n_leaves: int
    rate: float
    share: float = 0.3
    most_features: int = 32
    min_leaf: int = 40
    max_depth: int = 12
    ridge: float = 1.0
    n_bins: int = 63


FIRST = TreeOptions(n_trees=100, n_leaves=31, rate=0.15)
SECOND = TreeOptions(n_trees=100, n_leaves=63, rate=0.1)
REFIT = TreeOptions(n_trees=30, n_leaves=31, rate=0.1)
"""Options of a refit, which adds trees once there are messages; `FIRST` and `SECOND` are those of
the two stages. See `engine.learning.segmentation.tree_unaries`."""
