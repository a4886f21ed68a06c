"""Names of ``engine.graphs``; ``__init__.py`` imports each when it is first used."""

from .edge_list import EdgeList, read_graph
from .factor_graph import Factor, FactorGraph, to_pairwise
from .grid import Grid, GridTables
from .pairwise import PairwiseGraph, PairwiseModel

__all__ = [
    "EdgeList",
    "Factor",
    "FactorGraph",
    "Grid",
    "GridTables",
    "PairwiseGraph",
    "PairwiseModel",
    "read_graph",
    "to_pairwise",
]
