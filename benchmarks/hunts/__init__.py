"""Searches for wrong answers on random and hostile inputs."""
