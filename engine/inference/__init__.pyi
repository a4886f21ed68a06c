"""Names of ``engine.inference``; ``__init__.py`` imports each when it is first used."""

from .factors.elimination import Elimination
from .factors.log_partition import PartitionEstimate
from .factors.mean_field import ProductMarginals, mean_field
from .map_estimate import MapEstimate
from .marginals import Marginals
from .matching.bipartite_bethe import compute_bethe_marginals
from .matching.bipartite_newton import compute_bipartite_pseudomarginals
from .matching.bipartite_propagation import propagate_bipartite
from .matching.exact import compute_bipartite_marginals, compute_matching_marginals
from .matching.frank_wolfe import FrankWolfeMarginals, compute_frank_wolfe_marginals
from .matching.graph_pseudomarginals import compute_graph_pseudomarginals
from .matching.impossible_pairs import RuleConflict, check_rules
from .pairwise.expansion import map_by_expansion
from .pairwise.frank_wolfe import frank_wolfe_marginals, interior_start
from .pairwise.grid_tree_reweighted import GridTreeReweighted
from .pairwise.map_linear_programme import map_by_linear_programme
from .pairwise.planar_ising import IsingMarginals, PlanarIsing
from .pairwise.roof_dual_map import map_by_roof_duality
from .pairwise.tree_reweighted import TreeReweighted
from .perturb_and_map import estimate_perturb_and_map

__all__ = [
    "Elimination",
    "FrankWolfeMarginals",
    "GridTreeReweighted",
    "IsingMarginals",
    "MapEstimate",
    "Marginals",
    "PartitionEstimate",
    "PlanarIsing",
    "ProductMarginals",
    "RuleConflict",
    "TreeReweighted",
    "check_rules",
    "compute_bethe_marginals",
    "compute_bipartite_marginals",
    "compute_bipartite_pseudomarginals",
    "compute_frank_wolfe_marginals",
    "compute_graph_pseudomarginals",
    "compute_matching_marginals",
    "estimate_perturb_and_map",
    "frank_wolfe_marginals",
    "interior_start",
    "map_by_expansion",
    "map_by_linear_programme",
    "map_by_roof_duality",
    "mean_field",
    "propagate_bipartite",
]
