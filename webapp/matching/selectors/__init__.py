"""Queries on models."""
