"""Queries of cohorts."""
