"""Queries on image sets with their counts, learned models, predictions and their figures."""
