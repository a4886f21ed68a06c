"""Names of ``engine.entropies``; ``__init__.py`` imports each when it is first used."""

from .grid import GridEntropy
from .matching import (
    MatchingEntropy,
    MatchingLayout,
    bipartite_layout,
    complete_layout,
    edge_layout,
    make_matching_entropy,
)
from .mean_field import mean_field_entropy
from .pairwise import PairwiseEntropy, graph_entropy, grid_entropy

__all__ = [
    "GridEntropy",
    "MatchingEntropy",
    "MatchingLayout",
    "PairwiseEntropy",
    "bipartite_layout",
    "complete_layout",
    "edge_layout",
    "graph_entropy",
    "grid_entropy",
    "make_matching_entropy",
    "mean_field_entropy",
]
