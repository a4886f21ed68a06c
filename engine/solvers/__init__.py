"""Minimisers of objectives over polytopes; they know no CRF."""
