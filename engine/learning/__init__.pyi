"""Names of ``engine.learning``; ``__init__.py`` imports each when it is first used."""

from .pairwise_fitting import PairwiseExample, PairwiseFitting, fit_pairwise

__all__ = ["PairwiseExample", "PairwiseFitting", "fit_pairwise"]
