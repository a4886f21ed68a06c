"""Default settings of segmentation, shared by functions, estimators and the command line."""

RIDGE_PER_PIXEL = 1e-3
"""Lambda divided by the number of known training pixels, the published setting (Domke 2013, 8.4).
With trees, a tenth of it takes a third longer and makes no fewer mistakes on held-out pictures."""

UNARIES = ("linear", "boosted", "network")
"""Kinds of unaries of masks: linear weights of published features, boosted trees, and boosted trees
beside a network."""

CLASS_UNARIES = ("boosted", "network")
"""Kinds of unaries of label maps."""

RHO = 0.5
"""Edge appearance probability of a grid."""

MAX_SIDE = 200
"""Longest side of a model, pixels."""

RELATIVE_GAP = 1e-3
"""Certified gap, divided by the size of the log-likelihood, at which learning by it stops."""
