"""Names of ``engine.objectives``; ``__init__.py`` imports each when it is first used."""

from .interior_start import InteriorStart, find_interior_start
from .learning_dual import Bounds, LearningDual, make_learning_dual
from .marginal_losses import LossOptions
from .objective import FixedScores, FreeEnergy, Objective
from .protocol import CurvedEntropy, Entropy, InnerProblem, InnerSolution, Structure, check_parts

__all__ = [
    "Bounds",
    "CurvedEntropy",
    "Entropy",
    "FixedScores",
    "FreeEnergy",
    "InnerProblem",
    "InnerSolution",
    "InteriorStart",
    "LearningDual",
    "LossOptions",
    "Objective",
    "Structure",
    "check_parts",
    "find_interior_start",
    "make_learning_dual",
]
