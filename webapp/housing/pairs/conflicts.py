"""Conflicts of a placement's rules for pages: the students, the rules, one button per way out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from django.utils.translation import gettext as _

from engine import Rules, Survey
from engine.inference import RuleConflict, check_rules
from engine.learning.roommates.model import RoommateModel
from webapp.housing.pairs.rules import number_of

MAX_BUTTONS = 3
KEPT_CHECKS = 32  # a decision changes the rules, viewing the page does not


@dataclass(frozen=True, slots=True)
class WayOut:
    """A button: label, action of :mod:`webapp.housing.pairs.rule_changes`, and its students."""

    label: str
    action: str
    first: int = 0
    second: int = 0
    column: str = ""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A conflict: its main clause, the rest of the sentence, its students and its ways out."""

    headline: str
    detail: str
    numbers: tuple[int, ...]
    ways_out: tuple[WayOut, ...]
    asks_for_single: bool = False
    short: str = ""


ModelLoader = Callable[[], RoommateModel]


def find_conflicts(
    rules: Rules, survey: Survey, load_model: ModelLoader | None = None
) -> list[Conflict]:
    """Return the conflicts of rules that prevent a placement; empty if there are none.

    The model is loaded only if a student must stay single, to suggest one.
    """
    found = _check(_Case(id(survey), survey, rules))
    return [_present(conflict, survey, load_model) for conflict in found]


@dataclass(frozen=True, slots=True)
class _Case:
    """A survey under rules, as a cache key. Surveys are compared by identity."""

    identity: int
    survey: Survey = field(compare=False)
    rules: Rules


@lru_cache(maxsize=KEPT_CHECKS)
def _check(case: _Case) -> tuple[RuleConflict, ...]:
    return check_rules(case.survey, case.rules)


def _present(conflict: RuleConflict, survey: Survey, load_model: ModelLoader | None) -> Conflict:
    numbers = tuple(number_of(survey.ids[student]) for student in conflict.students)
    asks = conflict.kind in ("odd_total", "odd_group")
    ways = _WAYS.get(conflict.kind, _no_way)(conflict, survey)
    if asks and load_model is not None:
        ways = _singles_to_suggest(load_model(), survey, conflict.students) + ways
    headline, detail = _split(conflict.sentence)
    return Conflict(
        headline=headline,
        detail=detail,
        numbers=() if asks else numbers,
        ways_out=tuple(ways),
        asks_for_single=asks,
        short={"locked_twice": _("Locked twice")}.get(conflict.kind, _("In conflict")),
    )


def _split(sentence: str) -> tuple[str, str]:
    for mark in (": ", ". ", ", an "):
        head, found, tail = sentence.partition(mark)
        if found and len(head) < 90:
            return head + ("." if mark == ". " else ""), mark.lstrip(".") + tail
    return sentence, ""


def _label(survey: Survey, student: int) -> str:
    return survey.ids[student]


def _number(survey: Survey, student: int) -> int:
    return number_of(survey.ids[student])


def _pairs_of(conflict: RuleConflict, rule: str) -> list[tuple[int, int]]:
    return [detail for name, detail in conflict.rules if name == rule]  # type: ignore[misc]


def _columns_of(conflict: RuleConflict) -> list[str]:
    return [str(detail) for name, detail in conflict.rules if name == "same"]


def _keep_one_lock(conflict: RuleConflict, survey: Survey) -> list[WayOut]:
    pairs = _pairs_of(conflict, "lock")
    shared = set(pairs[0]).intersection(*pairs[1:])
    student = min(shared)
    ways = []
    for pair in pairs:
        other = pair[0] if pair[1] == student else pair[1]
        ways.append(
            WayOut(
                _("Keep %(label)s") % {"label": _label(survey, other)},
                "keep_lock",
                _number(survey, student),
                _number(survey, other),
            )
        )
    return ways


def _lock_or_forbid(conflict: RuleConflict, survey: Survey) -> list[WayOut]:
    first, second = (_number(survey, s) for s in conflict.students)
    return [
        WayOut(_("Keep the lock"), "allow", first, second),
        WayOut(_("Keep “never pair”"), "release", first, second),
    ]


def _lock_or_same(conflict: RuleConflict, survey: Survey) -> list[WayOut]:
    first, second = (_number(survey, s) for s in conflict.students)
    ways = [WayOut(_("Release the pair"), "release", first, second)]
    return ways + [_relax(column) for column in _columns_of(conflict)]


def _relax(column: str) -> WayOut:
    return WayOut(_("Drop “same %(column)s”") % {"column": column}, "relax", column=column)


def _lock_or_single(conflict: RuleConflict, survey: Survey) -> list[WayOut]:
    first, second = (_number(survey, s) for s in _pairs_of(conflict, "lock")[0])
    student = conflict.students[0]
    return [
        WayOut(_("Release the pair"), "release", first, second),
        WayOut(
            _("Pair %(label)s") % {"label": _label(survey, student)},
            "unsingle",
            _number(survey, student),
        ),
    ]


def _allow_some(conflict: RuleConflict, survey: Survey) -> list[WayOut]:
    ways = []
    for i, j in _pairs_of(conflict, "forbid")[:MAX_BUTTONS]:
        label = _("Allow %(first)s + %(second)s") % {
            "first": _label(survey, i),
            "second": _label(survey, j),
        }
        ways.append(WayOut(label, "allow", _number(survey, i), _number(survey, j)))
    return ways


def _relax_columns(conflict: RuleConflict, survey: Survey) -> list[WayOut]:
    return [_relax(column) for column in _columns_of(conflict)]


def _no_way(conflict: RuleConflict, survey: Survey) -> list[WayOut]:
    return []


_WAYS: dict[str, Callable[[RuleConflict, Survey], list[WayOut]]] = {
    "locked_twice": _keep_one_lock,
    "locked_and_forbidden": _lock_or_forbid,
    "lock_differs": _lock_or_same,
    "locked_and_single": _lock_or_single,
    "nobody_left": _allow_some,
    "too_many_forbids": _allow_some,
    "odd_group": _relax_columns,
}


def _singles_to_suggest(
    model: RoommateModel, survey: Survey, students: Sequence[int]
) -> list[WayOut]:
    """Suggest the students who are hardest to pair: lowest mean score within the group."""
    group = np.array(students, dtype=np.int64)
    if len(group) == 1:
        hardest = group
    else:
        scores = model.scores(survey.take(group))
        means = (scores.sum(axis=1) - np.diag(scores)) / (len(group) - 1)
        hardest = group[np.argsort(means, kind="stable")[:MAX_BUTTONS]]
    return [
        WayOut(
            _("Leave %(student)s single") % {"student": _label(survey, s)},
            "single",
            _number(survey, s),
        )
        for s in hardest.tolist()
    ]
