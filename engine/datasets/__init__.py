"""Readers, writers, and generators with known truth."""
