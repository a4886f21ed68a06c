"""Compiled loops: arrays in, arrays out; wrappers above them validate."""
