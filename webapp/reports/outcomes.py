"""Follow-up after a term: rooms by learned score against what their residents reported.

The unit is a room that several students share: the answers of its residents are averaged, so that
two people of one room do not count as two independent cases, and intervals are Wilson's for the
number of rooms. Bands with few rooms are not shown, since they would tell single answers.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.rooms.veto import wilson_interval
from webapp.accounts.models import User
from webapp.common.selectors import owned_by
from webapp.housing.models import Placement
from webapp.surveys.housing_forms import GETTING_ALONG, ROOM_CHANGE, TOGETHER_AGAIN
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.people import name_in_cohort
from webapp.surveys.questions import Question, questions_of
from webapp.translation.lazy import gettext_lazy as _

BANDS = (_("Lowest quarter"), _("Second quarter"), _("Third quarter"), _("Highest quarter"))
FEWEST_ROOMS = 5  # of a band that is shown
GOOD = 3  # positions of "4" and "5" on the scale from 1 to 5
MAX_LISTED = 50  # questionnaires to choose from
MEASURES = (
    (GETTING_ALONG, _("Get along well")),
    (TOGETHER_AGAIN, _("Would live together again")),
    (ROOM_CHANGE, _("No change of room")),
)


@dataclass(frozen=True, slots=True)
class Share:
    """A share of rooms with its 95 % interval; ``rooms`` is the number of rooms with an answer."""

    rooms: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Band:
    """Rooms of a band of scores, with the share of each measure; None if too few rooms answered."""

    title: str
    rooms: int
    low: float
    high: float
    shares: tuple[Share | None, ...]


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The table, and how many answers belong to students of the placement."""

    bands: tuple[Band, ...]
    n_answers: int
    n_known: int
    n_rooms: int


def follow_ups(user: User) -> list[Questionnaire]:
    """Return the questionnaires of the organisation that have the questions of the follow-up."""
    rows = owned_by(Questionnaire, user).exclude(opens_at=None)[:MAX_LISTED]
    return [one for one in rows if _questions(one)]


def _questions(questionnaire: Questionnaire) -> dict[str, Question]:
    found = {one.name: one for one in questions_of(questionnaire.content)}
    wanted = [name for name, _ in MEASURES]
    return {name: found[name] for name in wanted} if all(map(found.get, wanted)) else {}


def follow_up_of(placement: Placement, questionnaire: Questionnaire) -> FollowUp:
    """Return rooms by the mean score of their pairs against the answers of their residents."""
    questions = _questions(questionnaire)
    room_of, scores = _shared_rooms(placement)
    numbers = _numbers(placement)
    given: dict[str, dict[int, list[float]]] = {name: defaultdict(list) for name, _ in MEASURES}
    people = questionnaire.participants.filter(finished_at__isnull=False, set_aside=None)
    n_answers = n_known = 0
    seen: set[int] = set()
    for person in people.order_by("-finished_at").iterator(500):
        n_answers += 1
        number = _number_of(person, numbers)
        room = room_of.get(number) if number is not None else None
        if number is None or number in seen:
            continue
        seen.add(number)
        n_known += 1
        if room is None:
            continue
        for name, question in questions.items():
            value = _READ[name](person.answers.get(question.key))
            if value is not None:
                given[name][room].append(value)
    rooms = sorted(scores, key=lambda key: (scores[key], key))
    answered = [key for key in rooms if any(given[name].get(key) for name, _ in MEASURES)]
    bands = [
        _band(title, [int(key) for key in part], scores, given)
        for title, part in zip(BANDS, np.array_split(np.array(answered, dtype=int), 4), strict=True)
    ]
    return FollowUp(tuple(bands), n_answers, n_known, len(answered))


def answers_by_student(
    placement: Placement, questionnaire: Questionnaire, name: str
) -> dict[int, Any]:
    """Return the latest finished answer of each student of a placement to a question, by number."""
    question = _questions(questionnaire).get(name)
    numbers = _numbers(placement)
    found: dict[int, Any] = {}
    people = questionnaire.participants.filter(finished_at__isnull=False, set_aside=None)
    for person in people.order_by("-finished_at").iterator(500):
        number = _number_of(person, numbers)
        if question is not None and number is not None and number not in found:
            found[number] = person.answers.get(question.key)
    return found


def _band(
    title: str,
    rooms: Sequence[int],
    scores: Mapping[int, float],
    given: Mapping[str, Mapping[int, Sequence[float]]],
) -> Band:
    shares = tuple(_share(rooms, given[name]) for name, _ in MEASURES)
    own = [scores[key] for key in rooms]
    return Band(title, len(rooms), min(own, default=0.0), max(own, default=0.0), shares)


def _share(rooms: Sequence[int], given: Mapping[int, Sequence[float]]) -> Share | None:
    means = [float(np.mean(given[key])) for key in rooms if given.get(key)]
    if len(means) < FEWEST_ROOMS:
        return None
    share = float(np.mean(means))
    return Share(len(means), share, *wilson_interval(share, len(means)))


def _shared_rooms(placement: Placement) -> tuple[dict[int, int], dict[int, float]]:
    """Return the room of each student who shares one, and the mean score of each such room."""
    rows = placement.places.with_bed().values_list("number", "room_id", "score")
    members: dict[int, list[tuple[int, float | None]]] = defaultdict(list)
    for number, room, score in rows:
        members[room].append((number, score))
    room_of: dict[int, int] = {}
    scores: dict[int, float] = {}
    for room, people in members.items():
        known = [score for _, score in people if score is not None]
        if len(people) > 1 and known:
            scores[room] = float(np.mean(known))
            room_of |= {number: room for number, _ in people}
    return room_of, scores


def _numbers(placement: Placement) -> dict[str, int]:
    """Return the students of a placement by their own number and by their e-mail."""
    rows = list(placement.cohort.students.values_list("number", "original_id", "email"))
    emails = {email.strip().casefold(): number for number, _, email in rows if email.strip()}
    return emails | {original.strip().casefold(): number for number, original, _ in rows}


def _number_of(person: Participant, numbers: Mapping[str, int]) -> int | None:
    for text in (name_in_cohort(person), person.identifier, person.email):
        number = numbers.get(text.strip().casefold()) if text else None
        if number is not None:
            return number
    return None


def _position(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _along(value: Any) -> float | None:
    position = _position(value)
    return None if position is None else float(position >= GOOD)


def _is_first(value: Any) -> float | None:
    position = _position(value)
    return None if position is None else float(position == 0)


def is_yes(value: Any) -> float | None:
    """Return 1.0 for the answer "Yes", 0.0 for "No", None without an answer."""
    position = _position(value)
    return None if position is None else float(position == YES)


YES = 1  # position of "Yes" among the answers "No" and "Yes"
_READ: dict[str, Callable[[Any], float | None]] = {
    GETTING_ALONG: _along,
    TOGETHER_AGAIN: is_yes,
    ROOM_CHANGE: _is_first,
}
