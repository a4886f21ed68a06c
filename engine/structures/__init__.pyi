"""Names of ``engine.structures``; ``__init__.py`` imports each when it is first used."""

from .bipartite import BipartiteStructure
from .graph import GraphStructure, check_matching, interior_of_graph
from .grid import GridStructure
from .junction_tree import JunctionTreeStructure
from .linear import LinearStructure
from .pairwise import PairwiseStructure
from .planar_ising import PlanarIsingStructure
from .survey import SurveyStructure

__all__ = [
    "BipartiteStructure",
    "GraphStructure",
    "GridStructure",
    "JunctionTreeStructure",
    "LinearStructure",
    "PairwiseStructure",
    "PlanarIsingStructure",
    "SurveyStructure",
    "check_matching",
    "interior_of_graph",
]
