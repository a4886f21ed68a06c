"""How trees are grown."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """How many trees of how many leaves; each split looks at ``share`` of the features.

    Trees of several classes look at ``most_features`` of them at most, and draw what leaves say
    towards 0 by ``ridge``. Those of masks tell ``n_bins`` values of a feature apart.
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
"""Of the two stages, and of what is added once there are messages; see
`engine.learning.segmentation.tree_unaries`."""
