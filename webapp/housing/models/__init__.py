"""Building lists, requests, and placements of cohorts into rooms."""

from webapp.housing.models.building import (
    MAX_BEDS,
    BuildingDraft,
    BuildingList,
    Room,
    RoomState,
    SuiteKey,
)
from webapp.housing.models.change import ProposedChange
from webapp.housing.models.history import (
    ActKind,
    PlacementEvent,
    PlacementVersion,
    VersionOrigin,
)
from webapp.housing.models.many_rooms import RoomsChange
from webapp.housing.models.need import NeedMeaning
from webapp.housing.models.pair import APART, HELD_STATES, PairLock, PairState, PlacedPair
from webapp.housing.models.placement import AcceptedRoom, Place, Placement
from webapp.housing.models.request import Preference, RoommateRequest
from webapp.housing.models.term import Term
from webapp.housing.models.waiting import OfferState, OrderRule, WaitingList, WaitingOffer

__all__ = [
    "APART",
    "HELD_STATES",
    "MAX_BEDS",
    "AcceptedRoom",
    "ActKind",
    "BuildingDraft",
    "BuildingList",
    "NeedMeaning",
    "OfferState",
    "OrderRule",
    "PairLock",
    "PairState",
    "Place",
    "PlacedPair",
    "Placement",
    "PlacementEvent",
    "PlacementVersion",
    "Preference",
    "ProposedChange",
    "Room",
    "RoomState",
    "RoommateRequest",
    "RoomsChange",
    "SuiteKey",
    "Term",
    "VersionOrigin",
    "WaitingList",
    "WaitingOffer",
]
