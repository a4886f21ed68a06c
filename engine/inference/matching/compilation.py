"""Compile what learning from matchings may need, before a clock runs.

Kernels are compiled when they are first called, and most years never call those of odd sets. On a
busy machine the first year that does would spend its whole time limit on that.
"""

from functools import cache

import numpy as np

from engine.core.arguments import FloatArray
from engine.inference.matching.newton_point import uniform_point
from engine.inference.matching.odd_cuts import find_odd_cuts
from engine.inference.matching.odd_sets import examine_odd_sets
from engine.inference.matching.polytope import solve_over_polytope
from engine.inference.matching.potentials import DenseScores, solve_potentials
from engine.oracles.perfect_matching import CompleteGraphMatcher


@cache
def compile_for_matchings() -> None:
    """Solve the smallest problem that has everything: two triangles of like students.

    Once a process; a tenth of a second where the kernels were kept on disk, 10 s where not.
    """
    triangles: FloatArray = np.kron(np.eye(2), np.ones((3, 3))).astype(np.float64)
    np.fill_diagonal(triangles, 0.0)
    rho = np.ones(len(triangles))
    solve_potentials(DenseScores(triangles), rho, None, 1e-9).marginals()
    solve_over_polytope(uniform_point(len(triangles), rho), 5.0 * triangles, rho)
    examine_odd_sets(triangles / 2.0)
    find_odd_cuts(triangles / 2.0, np.ones(len(triangles), dtype=np.bool_), 1.0, 1)
    CompleteGraphMatcher().compute_extreme_point(triangles)
