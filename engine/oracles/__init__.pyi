"""Names of ``engine.oracles``; ``__init__.py`` imports each when it is first used."""

from .assignment import Assignment, AssignmentOracle, assign
from .bipartite_b_matching import bipartite_b_matching
from .grid_roof_duality import GridRoofDuality, decode_vertex
from .local_polytope import LocalPolytopeProgramme
from .matching import Matching
from .one_hot_scores import OneHotScores
from .perfect_matching import CompleteGraphMatcher
from .protocol import ExtremePoint, LinearMinimizationOracle, Vertex, inner_product, make_indicator
from .roof_duality import RoofDuality
from .sparse_matching import GraphMatchingOracle, max_weight_matching
from .t_join import TJoin, minimum_t_join
from .wrappers import CachingOracle, CountingOracle, TimingOracle

__all__ = [
    "Assignment",
    "AssignmentOracle",
    "CachingOracle",
    "CompleteGraphMatcher",
    "CountingOracle",
    "ExtremePoint",
    "GraphMatchingOracle",
    "GridRoofDuality",
    "LinearMinimizationOracle",
    "LocalPolytopeProgramme",
    "Matching",
    "OneHotScores",
    "RoofDuality",
    "TJoin",
    "TimingOracle",
    "Vertex",
    "assign",
    "bipartite_b_matching",
    "decode_vertex",
    "inner_product",
    "make_indicator",
    "max_weight_matching",
    "minimum_t_join",
]
