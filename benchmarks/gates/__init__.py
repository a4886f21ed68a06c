"""Stored answers, bounds, gaps and CPU seconds that no change of the engine may make worse."""
