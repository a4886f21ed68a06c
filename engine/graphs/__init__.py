"""Pairwise graphs, grids, factor graphs and spanning-tree edge probabilities."""
