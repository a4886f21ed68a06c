"""Default settings of roommate learning, shared by functions, estimators and the command line."""

RIDGE = 100.0
"""Lambda, the weight of the penalty on squared parameters."""

RHO = 1.0
"""Reweighting of the entropy: 1 is Bethe."""

RELATIVE_GAP = 1e-4
"""Certified gap, divided by the size of the log-likelihood, at which learning stops."""
