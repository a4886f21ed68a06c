"""Structures: one kind of observation a file, with all that learning and inference ask of it."""
