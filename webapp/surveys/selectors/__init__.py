"""Queries of questionnaires for pages, files and programs."""
