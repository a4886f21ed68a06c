"""Queries on models and proposals."""
