"""Pairs as placements: rooms of two without a building list."""
