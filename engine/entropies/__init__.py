"""Concave entropy approximations: value and gradient."""
