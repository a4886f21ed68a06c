"""Options of boosted trees."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """Options of boosted trees; each split considers a random ``share`` of the features.

    There are at most ``most_features`` of them. Values of leaves shrink towards 0 by ``ridge``.
    """

    n_trees: int
    n_leaves: int
    rate: float
    share: float = 0.3
    most_features: int = 32
    min_leaf: int = 40
    max_depth: int = 12
    ridge: float = 1.0


FIRST = TreeOptions(n_trees=100, n_leaves=31, rate=0.15)
SECOND = TreeOptions(n_trees=100, n_leaves=63, rate=0.1)
REFIT = TreeOptions(n_trees=30, n_leaves=31, rate=0.1)
"""Options of a refit, which adds trees once there are messages; `FIRST` and `SECOND` are those of
the two stages. See `engine.learning.segmentation.tree_unaries`."""
