"""MAP estimates, marginals and bounds of pairwise models."""
