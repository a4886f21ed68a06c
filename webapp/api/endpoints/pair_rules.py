"""Endpoints for rules and swaps of a proposal of pairs, undo, and checks of models."""

from uuid import UUID

from webapp.api.dispatch import page_of, read_body, read_query
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import pairs as shapes
from webapp.api.shapes import roommates
from webapp.api.shapes.base import Event, Page, Paging, Sentence
from webapp.cohorts.models import Cohort
from webapp.common.parameters import digits_of, whole_number
from webapp.common.selectors import get_or_404, get_owned_or_404
from webapp.housing.errors import HousingError
from webapp.housing.models import ActKind, Placement
from webapp.housing.pairs.cards import swap_partners
from webapp.housing.pairs.rule_changes import rule_change
from webapp.housing.pairs.swaps import pairs_swap, swap_offer
from webapp.housing.services.undo import decision_undo
from webapp.matching.models import LearnedModel
from webapp.matching.services.learning import model_check

TAG = "Proposals"
_PAIRS = Placement.objects.filter(is_pairs=True)


def _number(text: str) -> int:
    """Return the number in a student's id on screen; 0 for empty text."""
    number = whole_number(digits_of(text.strip()))
    if text.strip() and number is None:
        raise HousingError(f"“{text[:20]}” is not an id on screen, such as S-1042.")
    return number or 0


@endpoint(
    "POST",
    "/proposals/{proposal_id}/rules",
    tag=TAG,
    summary="Change a rule",
    description="lock, release, keep_lock, never, unreject and allow name two students, single and "
    "unsingle one, relax and require a rule column. Propose again to pair by it.",
    body=shapes.NewRule,
)
def change_rule(request: Request, proposal_id: UUID) -> Event:
    """Change one rule; the change can be undone."""
    proposal = get_owned_or_404(_PAIRS, request.user, proposal_id)
    sent = read_body(request, shapes.NewRule)
    event = rule_change(
        user=request.user,
        placement=proposal,
        action=sent.action,
        first=_number(sent.first),
        second=_number(sent.second),
        column=sent.column,
    )
    return Event.of(event)


@endpoint(
    "GET",
    "/proposals/{proposal_id}/students/{student}/partners",
    tag=TAG,
    summary="Next-best partners of a student",
)
def list_partners(request: Request, proposal_id: UUID, student: str) -> shapes.Partners:
    """Return the three likeliest other partners of a student, with their current roommates."""
    proposal = get_owned_or_404(_PAIRS, request.user, proposal_id)
    found = swap_partners(proposal, _number(student))
    return shapes.Partners(items=[shapes.Partner.of(partner) for partner in found])


@endpoint(
    "GET",
    "/proposals/{proposal_id}/students/{student}/swap",
    tag=TAG,
    summary="Look at a swap",
    query=shapes.PartnerQuery,
)
def look_at_swap(request: Request, proposal_id: UUID, student: str) -> shapes.Swap:
    """Return both pairs that a swap would make, and the change of scores."""
    proposal = get_owned_or_404(_PAIRS, request.user, proposal_id)
    partner = read_query(request, shapes.PartnerQuery).partner
    return shapes.Swap.of(swap_offer(proposal, _number(student), _number(partner)))


@endpoint(
    "POST",
    "/proposals/{proposal_id}/swaps",
    tag=TAG,
    summary="Swap two students",
    description="Refused with 409 when one of the two pairs changed since the versions given.",
    body=shapes.NewSwap,
)
def swap_pairs(request: Request, proposal_id: UUID) -> Event:
    """Pair two students, and their roommates with each other."""
    proposal = get_owned_or_404(_PAIRS, request.user, proposal_id)
    sent = read_body(request, shapes.NewSwap)
    event = pairs_swap(
        user=request.user,
        placement=proposal,
        student=_number(sent.student),
        partner=_number(sent.partner),
        versions={pair.id: pair.version for pair in sent.now},
    )
    return Event.of(event)


@endpoint("GET", "/proposals/{proposal_id}/events", tag=TAG, summary="List decisions", query=Paging)
def list_pair_events(request: Request, proposal_id: UUID) -> Page[Event]:
    """Return the decisions of staff, newest first; one that was undone says so."""
    proposal = get_owned_or_404(_PAIRS, request.user, proposal_id)
    decisions = proposal.events.exclude(kind=ActKind.UNDONE)
    return page_of(request, decisions.select_related("user"), Event)


@endpoint(
    "POST", "/proposals/{proposal_id}/events/{event_id}/undo", tag=TAG, summary="Undo a decision"
)
def undo_pair_event(request: Request, proposal_id: UUID, event_id: int) -> Sentence:
    """Undo one decision if nothing else has changed its pairs since."""
    proposal = get_owned_or_404(_PAIRS, request.user, proposal_id)
    event = get_or_404(proposal.events.all(), event_id)
    sentence = decision_undo(user=request.user, placement=proposal, event=event)
    return Sentence(sentence=sentence)


@endpoint(
    "POST",
    "/roommate-models/{model_id}/check",
    tag="Roommates",
    summary="Check a model on a later cohort",
    description="Queues the comparison with the pairs of a cohort that the model did not see; its "
    "findings stand in the model.",
    body=shapes.NewCheck,
    status=202,
)
def check_roommate_model(request: Request, model_id: UUID) -> roommates.RoommateModel:
    """Start checking a model; its job is ``check_job``."""
    model = get_owned_or_404(LearnedModel, request.user, model_id)
    cohort = get_owned_or_404(Cohort, request.user, read_body(request, shapes.NewCheck).cohort)
    model_check(user=request.user, model=model, cohort=cohort)
    return roommates.RoommateModel.of(model)
