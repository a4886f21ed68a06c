"""Names of ``engine.solvers``; ``__init__.py`` imports each when it is first used."""

from .block_orders import AllTogether, BlockOrder, RandomOrder, ShuffledOrder
from .control import Callbacks, Limits
from .frank_wolfe import FrankWolfe
from .fully_corrective_frank_wolfe import FullyCorrectiveFrankWolfe
from .interior_ascent import InteriorAscent
from .iterate import Direction, Iterate, find_direction
from .result import LearningResult, TrajectoryPoint
from .step_rules import Line, LineSearch, OpenLoop, StepRule
from .theta_ascent import ThetaAscent

__all__ = [
    "AllTogether",
    "BlockOrder",
    "Callbacks",
    "Direction",
    "FrankWolfe",
    "FullyCorrectiveFrankWolfe",
    "InteriorAscent",
    "Iterate",
    "LearningResult",
    "Limits",
    "Line",
    "LineSearch",
    "OpenLoop",
    "RandomOrder",
    "ShuffledOrder",
    "StepRule",
    "ThetaAscent",
    "TrajectoryPoint",
    "find_direction",
]
