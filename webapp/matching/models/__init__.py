"""Models learned from past pairs, and pairs to keep apart."""

from webapp.matching.models.decision import ForbiddenPair
from webapp.matching.models.learned import LearnedModel
from webapp.matching.models.proposal import DecisionEvent, LockRule, Proposal, ProposedPair

__all__ = [
    "DecisionEvent",
    "ForbiddenPair",
    "LearnedModel",
    "LockRule",
    "Proposal",
    "ProposedPair",
]
