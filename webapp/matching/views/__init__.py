"""Thin pages over services and selectors."""
