"""Endpoints for placements in pairs, called proposals here, decisions and exports."""

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

from django.http import Http404, HttpResponse, HttpResponseBase

from webapp.api.dispatch import page_of, read_body, read_query
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import roommates as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.cohorts.models import Cohort
from webapp.common.selectors import get_owned_or_404, owned_by
from webapp.files.file_headers import as_attachment
from webapp.housing.errors import HousingError
from webapp.housing.models import Placement
from webapp.housing.pairs.decisions import Decision, pairs_decide
from webapp.housing.pairs.exports import pairs_export
from webapp.housing.pairs.placing import pair_conflicts, pairs_compute, pairs_create
from webapp.housing.pairs.table import forbidden_counts
from webapp.matching.models import LearnedModel

TAG = "Proposals"
_PAIRS = Placement.objects.filter(is_pairs=True)


def _proposals(proposals: Sequence[Placement]) -> list[shapes.Proposal]:
    """Return the answers for a list of proposals, without the conflicts of each."""
    forbidden = forbidden_counts(proposals)
    return [shapes.Proposal.of(one, forbidden) for one in proposals]


def _proposal(proposal: Placement) -> shapes.Proposal:
    conflicts = [f"{one.headline}{one.detail}" for one in pair_conflicts(proposal)]
    return shapes.Proposal.of(proposal, forbidden_counts([proposal]), conflicts)


@endpoint("GET", "/proposals", tag=TAG, summary="List proposals", query=Paging)
def list_proposals(request: Request) -> Page[shapes.Proposal]:
    """Return the organisation's proposals."""
    return page_of(request, owned_by(_PAIRS, request.user), shapes.Proposal, _proposals)


@endpoint(
    "POST",
    "/proposals",
    tag=TAG,
    summary="Propose pairs for a cohort",
    description="Queues a job unless conflicts must be solved first; these are listed.",
    body=shapes.NewProposal,
    status=202,
)
def create_proposal(request: Request) -> shapes.Proposal:
    """Create a proposal and start computing it."""
    sent = read_body(request, shapes.NewProposal)
    proposal = pairs_create(
        user=request.user,
        name=sent.name,
        cohort=get_owned_or_404(Cohort, request.user, sent.cohort),
        model=get_owned_or_404(LearnedModel, request.user, sent.model),
        same=sent.same,
    )
    proposal.refresh_from_db()
    return _proposal(proposal)


@endpoint(
    "GET",
    "/proposals/{proposal_id}",
    tag=TAG,
    summary="Look at a proposal",
)
def get_proposal(request: Request, proposal_id: UUID) -> shapes.Proposal:
    """Return one proposal with its conflicts."""
    proposal = get_owned_or_404(_PAIRS, request.user, proposal_id)
    return _proposal(proposal)


@endpoint(
    "POST",
    "/proposals/{proposal_id}/propose",
    tag=TAG,
    summary="Propose again around the decisions",
    status=202,
)
def propose_again(request: Request, proposal_id: UUID) -> shapes.Proposal:
    """Queue the job that proposes pairs around the decisions."""
    proposal = get_owned_or_404(_PAIRS, request.user, proposal_id)
    try:
        proposal = pairs_compute(user=request.user, placement=proposal)
    except HousingError as error:
        raise Problem(409, str(error)) from error
    return _proposal(proposal)


@endpoint(
    "GET",
    "/proposals/{proposal_id}/pairs",
    tag=TAG,
    summary="List pairs",
    query=shapes.PairQuery,
)
def list_pairs(request: Request, proposal_id: UUID) -> Page[shapes.Pair]:
    """Return the pairs of a proposal, least certain first."""
    proposal = get_owned_or_404(_PAIRS, request.user, proposal_id)
    pairs = proposal.pairs.order_by("-doubt_share", "pk")
    state = read_query(request, shapes.PairQuery).state
    return page_of(request, pairs.filter(state=state) if state else pairs, shapes.Pair)


@endpoint(
    "POST",
    "/proposals/{proposal_id}/pairs/{pair_id}/decision",
    tag=TAG,
    summary="Decide about a pair",
    description="Refused with 409 when somebody changed the pair since the version given.",
    body=shapes.NewDecision,
)
def decide_pair(request: Request, proposal_id: UUID, pair_id: int) -> shapes.Decided:
    """Accept, reject, lock, forbid or reopen a pair."""
    proposal = get_owned_or_404(_PAIRS, request.user, proposal_id)
    sent = read_body(request, shapes.NewDecision)
    if not proposal.pairs.filter(pk=pair_id).exists():
        raise Http404("There is no such pair.")
    try:
        event = pairs_decide(
            user=request.user,
            placement=proposal,
            decision=Decision(sent.decision),
            versions={pair_id: sent.version},
        )
    except HousingError as error:
        raise Problem(409, str(error)) from error
    return shapes.Decided(sentence=event.sentence)


@endpoint(
    "GET",
    "/proposals/{proposal_id}/export/{file_format}",
    tag=TAG,
    summary="Export pairs with original ids",
    description="file_format is csv or xlsx. Needs the role staff; leaves an audit line.",
    query=shapes.PairExportQuery,
    media_type="text/csv",
    changes=True,
)
def export_pairs(
    request: Request, proposal_id: UUID, file_format: Literal["csv", "xlsx"]
) -> HttpResponseBase:
    """Send a file of the pairs for the housing system."""
    proposal = get_owned_or_404(_PAIRS, request.user, proposal_id)
    if file_format not in {"csv", "xlsx"}:
        raise Http404("There is no such format.")
    data, media_type = pairs_export(
        user=request.user,
        placement=proposal,
        file_format=file_format,
        with_names=read_query(request, shapes.PairExportQuery).names,
        is_taken=request.method == "GET",
    )
    response = HttpResponse(data, content_type=media_type)
    return as_attachment(response, f"{proposal.name}.{file_format}")
