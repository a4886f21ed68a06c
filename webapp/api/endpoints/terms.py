"""Endpoints for terms, dates of beds, meanings of needs, and rounds of room choice."""

from typing import Any
from uuid import UUID

from django.db.models import Count

from webapp.accounts.models import Role
from webapp.api.dispatch import page_of, read_body
from webapp.api.endpoints.placements import find_placement
from webapp.api.problems import Problem
from webapp.api.registry import Request, endpoint
from webapp.api.shapes import housing
from webapp.api.shapes import terms as shapes
from webapp.api.shapes.base import Page, Paging
from webapp.cohorts.models import Cohort
from webapp.common.selectors import get_or_404, get_owned_or_404, owned_by
from webapp.housing.forms import read_students
from webapp.housing.models import NeedMeaning, Placement, Term
from webapp.housing.selectors.need_meanings import needs_in_words, offers_of
from webapp.housing.services.need_meanings import need_meaning_remove, need_meaning_set
from webapp.housing.services.stays import place_dates_set
from webapp.housing.services.terms import placement_term_set, term_remove, term_save
from webapp.room_choice.models import ChoiceRound
from webapp.room_choice.selectors.boards import board_of, preview_of, rounds_of_placement

TAG, NEEDS, ROUNDS = "Terms", "Needs", "Room choice"


def _terms(request: Request) -> Any:
    return owned_by(Term, request.user).annotate(n_placements=Count("placements"))


def _find_term(request: Request, key: int) -> Term:
    found: Term = get_owned_or_404(_terms(request), request.user, key)
    return found


@endpoint("GET", "/terms", tag=TAG, summary="List terms", query=Paging, role=Role.STAFF)
def list_terms(request: Request) -> Page[shapes.Term]:
    """Return the organisation's terms, last to start first."""
    return page_of(request, _terms(request), shapes.Term)


@endpoint("POST", "/terms", tag=TAG, summary="Add a term", body=shapes.NewTerm, status=201)
def create_term(request: Request) -> shapes.Term:
    """Add a term with its first and last day."""
    sent = read_body(request, shapes.NewTerm)
    return shapes.Term.of(term_save(user=request.user, term=None, **sent.model_dump()))


@endpoint("GET", "/terms/{term_id}", tag=TAG, summary="Look at a term", role=Role.STAFF)
def get_term(request: Request, term_id: int) -> shapes.Term:
    """Return one term."""
    return shapes.Term.of(_find_term(request, term_id))


@endpoint(
    "PUT",
    "/terms/{term_id}",
    tag=TAG,
    summary="Change a term",
    description="Refused with 422 if a published bed would be taken twice on a day.",
    body=shapes.NewTerm,
)
def change_term(request: Request, term_id: int) -> shapes.Term:
    """Change the name, the code and the days of a term."""
    found = _find_term(request, term_id)
    sent = read_body(request, shapes.NewTerm)
    return shapes.Term.of(term_save(user=request.user, term=found, **sent.model_dump()))


@endpoint("DELETE", "/terms/{term_id}", tag=TAG, summary="Remove a term", status=204)
def delete_term(request: Request, term_id: int) -> None:
    """Remove a term that no placement is for."""
    term_remove(user=request.user, term=_find_term(request, term_id))


@endpoint(
    "POST",
    "/placements/{placement_id}/term",
    tag=TAG,
    summary="Choose the term of a placement",
    description="Rooms that other cohorts have on days outside the term are free for the "
    "placement. Refused with 422 if a published bed would be taken twice on a day.",
    body=shapes.ChosenTerm,
    status=204,
)
def choose_term(request: Request, placement_id: UUID) -> None:
    """Set the term that a placement is for, or none."""
    found = find_placement(request, placement_id)
    key = read_body(request, shapes.ChosenTerm).term
    term = None if key is None else _terms(request).filter(pk=key).first()
    if key is not None and term is None:
        raise Problem(422, "term: there is no such term.")
    placement_term_set(user=request.user, placement=found, term=term)


@endpoint(
    "POST",
    "/placements/{placement_id}/dates",
    tag=TAG,
    summary="Set the days of a student's bed",
    description="For a student who arrives later or leaves earlier than the term; on the other "
    "days the bed is free. The bed is taken on the first and the last day, too. Refused with 409 "
    "if somebody changed the student since the version given, with 422 if the bed is somebody "
    "else's on one of the days.",
    body=shapes.NewDates,
)
def set_dates(request: Request, placement_id: UUID) -> housing.RoomDecided:
    """Set the first and the last day of a student's bed."""
    found = find_placement(request, placement_id)
    sent = read_body(request, shapes.NewDates)
    (number, *others) = read_students([sent.student])
    if others:
        raise Problem(422, "student: name one student.")
    event = place_dates_set(
        user=request.user,
        placement=found,
        number=number,
        arrives_on=sent.arrives_on,
        leaves_on=sent.leaves_on,
        version=sent.version,
    )
    return housing.RoomDecided(
        sentence=event.sentence, event=event.pk, draft=None, version=event.version
    )


@endpoint(
    "GET",
    "/cohorts/{cohort_id}/needs",
    tag=NEEDS,
    summary="List the needs of a cohort",
    role=Role.STAFF,
)
def list_needs(request: Request, cohort_id: UUID) -> shapes.CohortNeeds:
    """Return the needs in the words of students, with the rooms that meet them."""
    cohort = get_owned_or_404(Cohort, request.user, cohort_id)
    return shapes.CohortNeeds(
        needs=[shapes.NeedInWords.of(one) for one in needs_in_words(cohort)],
        offers=offers_of(request.user.organisation_id),
    )


@endpoint(
    "POST",
    "/needs",
    tag=NEEDS,
    summary="Say which rooms meet a need",
    description="Counts for all cohorts and rooms of the organisation, from the next computation "
    "on.",
    body=shapes.NewMeaning,
)
def set_need(request: Request) -> shapes.Meaning:
    """Keep that rooms with one of the offers meet a need; no offer: no room meets it."""
    sent = read_body(request, shapes.NewMeaning)
    known = {offer.casefold(): offer for offer in offers_of(request.user.organisation_id)}
    for k, offer in enumerate(sent.offers):
        if offer.casefold() not in known:
            raise Problem(422, f"offers[{k}]: no room says “{offer[:40]}”.")
    offers = [known[offer.casefold()] for offer in sent.offers]
    rooms = need_meaning_set(user=request.user, need=sent.need, offers=offers)
    key = " ".join(sent.need.split()).casefold()
    meaning = owned_by(NeedMeaning, request.user).get(key=key)
    return shapes.Meaning(id=meaning.pk, need=meaning.need, offers=meaning.offers, rooms=rooms)


@endpoint("DELETE", "/needs/{meaning_id}", tag=NEEDS, summary="Ask about a need again", status=204)
def delete_need(request: Request, meaning_id: int) -> None:
    """Remove what staff said about a need."""
    meaning = get_owned_or_404(NeedMeaning, request.user, meaning_id)
    need_meaning_remove(user=request.user, meaning=meaning)


def _round(found: ChoiceRound) -> shapes.RoomChoiceRound:
    board = preview_of(found) if found.is_draft else board_of(found)
    return shapes.RoomChoiceRound.of_board(found, board)


def _rounds(placement: Placement) -> Any:
    return rounds_of_placement(placement).select_related("placement__cohort")


@endpoint(
    "GET",
    "/placements/{placement_id}/choice-rounds",
    tag=ROUNDS,
    summary="List rounds of room choice",
    role=Role.STAFF,
)
def list_choice_rounds(request: Request, placement_id: UUID) -> shapes.ChoiceRounds:
    """Return the rounds of a placement, with the counts of their groups."""
    rows = _rounds(find_placement(request, placement_id))
    return shapes.ChoiceRounds(rounds=[_round(found) for found in rows])


@endpoint(
    "GET",
    "/placements/{placement_id}/choice-rounds/{round_id}",
    tag=ROUNDS,
    summary="Look at a round of room choice",
    role=Role.STAFF,
)
def get_choice_round(request: Request, placement_id: UUID, round_id: int) -> shapes.RoomChoiceRound:
    """Return one round, with the counts of its groups."""
    return _round(get_or_404(_rounds(find_placement(request, placement_id)), round_id))
