"""Experiments of Domke (2013), learning with approximate marginals."""
