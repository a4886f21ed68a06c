"""Queries of building lists, requests and placements for pages."""
