"""Measurements held against the figures that the project aims at."""
