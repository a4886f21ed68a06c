"""Thin views over services and selectors."""
