"""Names of ``engine.baselines``; ``__init__.py`` imports each when it is first used."""

from .decoding import Decoding, LabelledStructure, TrainedCompetitor, decode
from .double_loop import DoubleLoopResult, PropagatedExample, Propagation, train_double_loop
from .structured_perceptron import train_structured_perceptron
from .structured_svm import train_structured_svm

__all__ = [
    "Decoding",
    "DoubleLoopResult",
    "LabelledStructure",
    "PropagatedExample",
    "Propagation",
    "TrainedCompetitor",
    "decode",
    "train_double_loop",
    "train_structured_perceptron",
    "train_structured_svm",
]
