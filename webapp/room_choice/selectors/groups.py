"""Groups of students who asked for each other, their order in a round, and their time slots."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from webapp.cohorts.models import Student
from webapp.housing.models import Placement, RoommateRequest
from webapp.housing.request_graph import Pair, request_pairs
from webapp.housing.selectors.wishes import CohortWishes
from webapp.room_choice.models import ChoiceRound

Group = tuple[int, ...]  # numbers on screen, smallest first


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn of one group in a round: its place in the order, and its time slot.

    ``rule_value`` is the answer that decides its place before the lottery, "" without a rule.
    """

    turn: int
    group: Group
    starts_at: datetime
    ends_at: datetime
    rule_value: str = ""


def groups_among(numbers: Collection[int], mutual: Iterable[Pair]) -> list[Group]:
    """Return the groups that mutual requests connect among some students; most are of one."""
    near: dict[int, set[int]] = defaultdict(set)
    known = set(numbers)
    for a, b in mutual:
        if a in known and b in known:
            near[a].add(b)
            near[b].add(a)
    groups, seen = [], set[int]()
    for number in sorted(known):
        if number not in seen:
            group = _reach(number, near)
            seen |= group
            groups.append(tuple(sorted(group)))
    return groups


def _reach(number: int, near: Mapping[int, set[int]]) -> set[int]:
    found, frontier = {number}, {number}
    while frontier:
        frontier = {other for one in frontier for other in near.get(one, ())} - found
        found |= frontier
    return found


def group_around(
    number: int, cohort_id: UUID, eligible: Callable[[Collection[int]], Collection[int]]
) -> Group:
    """Return the group of one student, by few small queries.

    ``eligible`` returns those of some students who may be in the group.
    """
    found, frontier = {number}, {number}
    while frontier:
        requests = RoommateRequest.objects.filter(cohort=cohort_id).filter(
            Q(student__number__in=frontier) | Q(target__number__in=frontier)
        )
        near = {n for pair in request_pairs(requests).mutual for n in pair} - found
        frontier = set(eligible(near)) if near else set()
        found |= frontier
    return tuple(sorted(found))


def round_groups(round: ChoiceRound) -> list[Group]:
    """Return the groups of a round: students without a room, and with them their whole group.

    A group belongs to the round if one of its members does.
    """
    placement = round.placement
    free = set(placement.places.without_bed().values_list("number", flat=True))
    groups = groups_among(free, CohortWishes(placement.cohort_id).requests.mutual)
    if not round.column:
        return groups
    answers = _answers(placement, round.column, free)
    return [group for group in groups if any(answers[n] == round.value for n in group)]


def _answers(placement: Placement, column: str, numbers: Collection[int]) -> dict[int, str]:
    rows = Student.objects.filter(cohort=placement.cohort_id).values_list("number", "attributes")
    return {number: own.get(column, "") for number, own in rows if number in numbers}


def order_of(round: ChoiceRound) -> list[Turn]:
    """Return the turns of a round: first by the rule, with the best member, then by lottery.

    The ticket of a group is the SHA-256 digest of seed and smallest number, so that anybody can
    check the order, and students who leave or come change nobody else's ticket.
    """
    groups = round_groups(round)
    ranks = {value: k for k, value in enumerate(round.rule_values)}
    answers: dict[int, str] = {}
    if round.rule:
        everybody = {number for group in groups for number in group}
        answers = _answers(round.placement, round.rule, everybody)

    def best(group: Group) -> str:
        return min((answers.get(n, "") for n in group), key=lambda v: ranks.get(v, len(ranks)))

    keyed = sorted(
        (ranks.get(best(group), len(ranks)), ticket_of(round.seed, group), group)
        for group in groups
    )
    times = spread(round, len(keyed))
    return [
        Turn(
            k + 1,
            group,
            starts_at,
            round.closes_at if round.stays_open else starts_at + timedelta(minutes=round.minutes),
            best(group) if round.rule else "",
        )
        for k, ((_, _, group), starts_at) in enumerate(zip(keyed, times, strict=True))
    ]


def ticket_of(seed: int, group: Sequence[int]) -> str:
    """Return the lottery ticket of a group; the smallest ticket comes first."""
    return hashlib.sha256(f"{seed}-{group[0]}".encode()).hexdigest()


def spread(round: ChoiceRound, n_groups: int) -> list[datetime]:
    """Return the start of each group's slot; groups share a start if there are fewer slots."""
    starts = list(slot_starts(round))
    if not starts:
        return []
    if n_groups <= len(starts):
        return starts[:n_groups]
    return [starts[k * len(starts) // n_groups] for k in range(n_groups)]


def slot_starts(round: ChoiceRound) -> Iterator[datetime]:
    """Yield the starts of all slots that fit between opening and closing, within the daily hours.

    Times of the day are those of the organisation's time zone.
    """
    zone = round.placement.organisation.zone
    length = timedelta(minutes=round.minutes)
    start = round.opens_at
    while start + length <= round.closes_at:
        begin = start
        if round.day_from is not None and round.day_to is not None:
            local, until = start.astimezone(zone), (start + length).astimezone(zone)
            day = local.date()
            if local.time() < round.day_from:
                begin = timezone.make_aware(datetime.combine(day, round.day_from), zone)
            elif until.date() > day or until.time() > round.day_to:
                tomorrow = day + timedelta(days=1)
                begin = timezone.make_aware(datetime.combine(tomorrow, round.day_from), zone)
        if begin <= start:  # an hour that the clock repeats never leads back
            yield start
            begin = start + length
        start = begin
