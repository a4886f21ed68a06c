"""Readers of other programs' annotations, which return shapes to paint or refuse the file."""
