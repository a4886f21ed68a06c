"""Experiments of Domke (2013), structured learning by logistic regression."""
