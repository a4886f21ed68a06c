"""Marginals, exact references and impossibility of matchings."""
