"""Proposals of pairs, decisions and exports."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse, HttpResponseBase

from webapp.api.dispatch import page_of, read_field, read_json
from webapp.api.endpoints.jobs import PAGING, time_json
from webapp.api.problems import Problem
from webapp.api.registry import Query, Request, endpoint
from webapp.cohorts.models import Cohort
from webapp.common.file_headers import as_attachment
from webapp.common.selectors import get_owned_or_404
from webapp.matching.errors import DecisionError, MatchingError
from webapp.matching.models import Decision, LearnedModel, Proposal, ProposedPair
from webapp.matching.selectors.proposals import forbidden_counts, proposals_of
from webapp.matching.services.decisions import pairs_decide
from webapp.matching.services.exports import proposal_export
from webapp.matching.services.proposals import (
    proposal_compute,
    proposal_conflicts,
    proposal_create,
)

TAG = "Proposals"
DECISIONS = ("accept", "reject", "lock", "never", "reopen")


def proposals_json(proposals: Sequence[Proposal]) -> list[dict[str, Any]]:
    """Return proposals as the interface shows them; conflicts are told when looking at one."""
    forbidden = forbidden_counts(proposals)
    return [
        {
            "id": str(proposal.pk),
            "name": proposal.name,
            "cohort": str(proposal.cohort_id),
            "model": str(proposal.model_id),
            "same": list(proposal.same),
            "is_computed": proposal.is_computed,
            "best_at": time_json(proposal.best_at),
            "changes": proposal.changes,
            "forbidden": forbidden.get(proposal.pk, 0),
            "figures": proposal.figures,
            "conflicts": [],
            "job": str(proposal.job_id) if proposal.job_id else None,
            "created_at": time_json(proposal.created_at),
        }
        for proposal in proposals
    ]


def proposal_json(proposal: Proposal) -> dict[str, Any]:
    """Return a proposal as the interface shows it, with its conflicts."""
    conflicts = [f"{one.headline}{one.detail}" for one in proposal_conflicts(proposal)]
    return proposals_json([proposal])[0] | {"conflicts": conflicts}


def pair_json(pair: ProposedPair) -> dict[str, Any]:
    """Return a pair as the interface shows it, by pseudonymous ids."""
    return {
        "id": pair.pk,
        "first": f"S-{pair.first_number}",
        "second": f"S-{pair.second_number}",
        "score": pair.score,
        "probability": pair.probability,
        "state": pair.state,
        "version": pair.version,
        "decided_by": pair.decided_by,
    }


@endpoint(
    "GET", "/proposals", tag=TAG, summary="List proposals", answer="ProposalPage", queries=PAGING
)
def list_proposals(request: Request) -> dict[str, Any]:
    """Return the organisation's proposals."""
    found, numbers = page_of(request, proposals_of(request.user))
    return {"items": proposals_json(found), **numbers}


@endpoint(
    "POST",
    "/proposals",
    tag=TAG,
    summary="Propose pairs for a cohort",
    description="Queues a job unless conflicts must be solved first; these are listed.",
    body="NewProposal",
    answer="Proposal",
    status=202,
)
def create_proposal(request: Request) -> dict[str, Any]:
    """Create a proposal and start computing it."""
    body = read_json(request)
    proposal = proposal_create(
        user=request.user,
        name=read_field(body, "name", str, ""),
        cohort=get_owned_or_404(Cohort, request.user, read_field(body, "cohort", str)),
        model=get_owned_or_404(LearnedModel, request.user, read_field(body, "model", str)),
        same=[str(column) for column in read_field(body, "same", list, [])],
    )
    proposal.refresh_from_db()
    return proposal_json(proposal)


@endpoint(
    "GET", "/proposals/{proposal_id}", tag=TAG, summary="Look at a proposal", answer="Proposal"
)
def get_proposal(request: Request, proposal_id: UUID) -> dict[str, Any]:
    """Return one proposal with its conflicts."""
    proposal = get_owned_or_404(Proposal, request.user, proposal_id)
    return proposal_json(proposal)


@endpoint(
    "POST",
    "/proposals/{proposal_id}/propose",
    tag=TAG,
    summary="Propose again around the decisions",
    answer="Proposal",
    status=202,
)
def propose_again(request: Request, proposal_id: UUID) -> dict[str, Any]:
    """Queue the job that proposes pairs around the decisions."""
    proposal = get_owned_or_404(Proposal, request.user, proposal_id)
    try:
        proposal = proposal_compute(user=request.user, proposal=proposal)
    except (MatchingError, DecisionError) as error:
        raise Problem(409, str(error)) from error
    return proposal_json(proposal)


@endpoint(
    "GET",
    "/proposals/{proposal_id}/pairs",
    tag=TAG,
    summary="List pairs",
    answer="PairPage",
    queries=(*PAGING, Query("state", "open, accepted, locked, swapped, rejected or never")),
)
def list_pairs(request: Request, proposal_id: UUID) -> dict[str, Any]:
    """Return the pairs of a proposal, least certain first."""
    proposal = get_owned_or_404(Proposal, request.user, proposal_id)
    pairs = proposal.pairs.order_by("-doubt_share", "pk")
    if request.GET.get("state"):
        pairs = pairs.filter(state=request.GET["state"])
    found, numbers = page_of(request, pairs)
    return {"items": [pair_json(pair) for pair in found], **numbers}


@endpoint(
    "POST",
    "/proposals/{proposal_id}/pairs/{pair_id}/decision",
    tag=TAG,
    summary="Decide about a pair",
    description="Refused with 409 when somebody changed the pair since the version given.",
    body="NewDecision",
    answer="Decided",
)
def decide_pair(request: Request, proposal_id: UUID, pair_id: int) -> dict[str, Any]:
    """Accept, reject, lock, forbid or reopen a pair."""
    proposal = get_owned_or_404(Proposal, request.user, proposal_id)
    body = read_json(request)
    decision = read_field(body, "decision", str)
    if decision not in DECISIONS:
        raise Problem(422, f"decision: expected one of {', '.join(DECISIONS)}.")
    if not proposal.pairs.filter(pk=pair_id).exists():
        raise Http404("There is no such pair.")
    try:
        event = pairs_decide(
            user=request.user,
            proposal=proposal,
            decision=Decision(decision),
            versions={pair_id: read_field(body, "version", int)},
        )
    except DecisionError as error:
        raise Problem(409, str(error)) from error
    return {"sentence": event.sentence}


@endpoint(
    "GET",
    "/proposals/{proposal_id}/export/{file_format}",
    tag=TAG,
    summary="Export pairs with original ids",
    description="file_format is csv or xlsx. Needs the role staff; leaves an audit line.",
    media_type="text/csv",
    changes=True,
)
def export_pairs(request: Request, proposal_id: UUID, file_format: str) -> HttpResponseBase:
    """Send the pairs for the housing system."""
    proposal = get_owned_or_404(Proposal, request.user, proposal_id)
    if file_format not in {"csv", "xlsx"}:
        raise Http404("There is no such format.")
    data, media_type = proposal_export(
        user=request.user,
        proposal=proposal,
        file_format=file_format,
        is_taken=request.method == "GET",
    )
    response = HttpResponse(data, content_type=media_type)
    return as_attachment(response, f"{proposal.name}.{file_format}")
