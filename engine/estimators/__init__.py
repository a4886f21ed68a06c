"""Estimators with scikit-learn's interface: fit, predict, predict_proba, score."""

import lazy_loader

# The stub beside this file lists the names; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
