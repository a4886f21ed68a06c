"""Models learned from cohorts, proposals of pairs, and the decisions about them."""

from webapp.matching.models.decision import Decision, DecisionEvent, ForbiddenPair, LockRule
from webapp.matching.models.learned import LearnedModel
from webapp.matching.models.proposal import PairState, Proposal, ProposedPair

__all__ = [
    "Decision",
    "DecisionEvent",
    "ForbiddenPair",
    "LearnedModel",
    "LockRule",
    "PairState",
    "Proposal",
    "ProposedPair",
]
