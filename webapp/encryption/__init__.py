"""Columns that are encrypted in the database."""
