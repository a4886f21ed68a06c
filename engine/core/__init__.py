"""Contracts shared by every layer: errors, progress and cancellation, status, argument checks."""
