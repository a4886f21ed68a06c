"""Marginals of matchings, exact reference results, and reasons why no matching exists."""
