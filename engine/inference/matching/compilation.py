"""Compilation of the kernels for learning from matchings, before a time limit starts.

Kernels are compiled when they are first called, and most past years never call those of odd sets.
On a busy machine compilation would use up the whole time limit of the first year that does.
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
    """Solve the smallest problem that calls every kernel: two triangles of similar students.

    It runs once a process, in 0.1 s if the kernels are cached on disk, otherwise in 10 s.
    """
    triangles: FloatArray = np.kron(np.eye(2), np.ones((3, 3))).astype(np.float64)
    np.fill_diagonal(triangles, 0.0)
    rho = np.ones(len(triangles))
    solve_potentials(DenseScores(triangles), rho, None, 1e-9).marginals()
    solve_over_polytope(uniform_point(len(triangles), rho), 5.0 * triangles, rho)
    examine_odd_sets(triangles / 2.0)
    find_odd_cuts(triangles / 2.0, np.ones(len(triangles), dtype=np.bool_), 1.0, 1)
    CompleteGraphMatcher().compute_extreme_point(triangles)
