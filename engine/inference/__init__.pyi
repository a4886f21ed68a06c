"""Names of ``engine.inference``; ``__init__.py`` imports each when it is first used."""

from .bipartite_bethe import compute_bethe_marginals
from .bipartite_newton import compute_bipartite_pseudomarginals
from .bipartite_propagation import propagate_bipartite
from .elimination import Elimination
from .exact_matchings import compute_bipartite_marginals, compute_matching_marginals
from .graph_newton import compute_graph_pseudomarginals
from .grid_tree_reweighted import GridTreeReweighted
from .map_estimate import MapEstimate
from .marginals import Marginals
from .matching_frank_wolfe import FrankWolfeMarginals, compute_frank_wolfe_marginals
from .mean_field import mean_field
from .pairwise_frank_wolfe import frank_wolfe_marginals, interior_start
from .perturb_and_map import estimate_perturb_and_map
from .tree_reweighted import TreeReweighted

__all__ = [
    "Elimination",
    "FrankWolfeMarginals",
    "GridTreeReweighted",
    "MapEstimate",
    "Marginals",
    "TreeReweighted",
    "compute_bethe_marginals",
    "compute_bipartite_marginals",
    "compute_bipartite_pseudomarginals",
    "compute_frank_wolfe_marginals",
    "compute_graph_pseudomarginals",
    "compute_matching_marginals",
    "estimate_perturb_and_map",
    "frank_wolfe_marginals",
    "interior_start",
    "mean_field",
    "propagate_bipartite",
]
