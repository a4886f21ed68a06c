"""Comparisons with public solvers, in the same run on the same inputs."""
