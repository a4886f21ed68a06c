"""Rules that hold two people together or keep them apart, and so may contradict each other."""

from collections import deque
from collections.abc import Iterator

from engine.crf.room_rules import RoomRules
from engine.rooms.formulation import Attributes, survey_column
from engine.rooms.rule_entries import RuleEntry

Link = tuple[tuple[RuleEntry, ...], int, int]  # rules that link two students, and the two


def list_links(rules: RoomRules) -> list[Link]:
    """List the rules that hold two people together, including assignments to one room."""
    links: list[Link] = []
    for lock in rules.locks:
        links += [((("locks", lock),), lock[0], other) for other in lock[1:]]
    links += [((("requests", r),), r.student, r.wants) for r in rules.requests if r.is_must]
    first: dict[int, int] = {}
    for student, room in rules.assigned:
        one = first.setdefault(room, student)
        if one != student:
            entries = (("assigned", (one, room)), ("assigned", (student, room)))
            links.append((entries, one, student))
    return links


def list_separations(
    n: int,
    rules: RoomRules,
    attributes: Attributes,
    links: list[Link],
) -> Iterator[tuple[str, int, int, tuple[RuleEntry, ...]]]:
    """Yield (kind, i, j, rules) for people kept apart by a rule and maybe linked by others."""
    for pair in rules.forbids:
        yield "forbids", pair[0], pair[1], (("forbids", pair),)
    for name in rules.same:
        column = survey_column(attributes, name)
        for _, i, j in links:
            if column[i] != column[j]:
                yield name, i, j, (("same", name),)
    alone = set(rules.single)
    for _, i, j in links:
        for a, b in ((i, j), (j, i)):
            if a in alone and a != b:
                yield "single", a, b, (("single", a),)


def find_path(links: list[Link], start: int, end: int) -> list[Link] | None:
    """Return the shortest chain of links between two people, or None if there is none."""
    came: dict[int, Link | None] = {start: None}
    neighbours: dict[int, list[Link]] = {}
    for entry, a, b in links:
        neighbours.setdefault(a, []).append((entry, a, b))
        neighbours.setdefault(b, []).append((entry, b, a))
    waiting = deque([start])
    while waiting and end not in came:
        here = waiting.popleft()
        for entry, _, there in neighbours.get(here, []):
            if there not in came:
                came[there] = (entry, here, there)
                waiting.append(there)
    if end not in came or start == end:
        return None
    path = []
    step = came[end]
    while step is not None:
        path.append(step)
        step = came[step[1]]
    return path
