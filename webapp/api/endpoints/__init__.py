"""The endpoints, by subject; importing this package declares them all."""

from webapp.api.endpoints import (
    buildings,
    images,
    jobs,
    late_changes,
    letters,
    pair_rules,
    placements,
    predictions,
    proposals,
    questionnaires,
    reports,
    requests,
    roommates,
    rooms,
    segmenters,
    webhooks,
)

__all__ = [
    "buildings",
    "images",
    "jobs",
    "late_changes",
    "letters",
    "pair_rules",
    "placements",
    "predictions",
    "proposals",
    "questionnaires",
    "reports",
    "requests",
    "roommates",
    "rooms",
    "segmenters",
    "webhooks",
]
