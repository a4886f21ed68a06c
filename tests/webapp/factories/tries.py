"""Counts of failed tries at links, codes and passwords."""

from django.core.cache import caches


def forget_tries() -> None:
    """Forget every failed try, so that none counts against the next test."""
    for cache in caches.all():
        cache.clear()
