"""Named reasons why no set of pairs can follow the rules."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from engine.core.arguments import IntArray
from engine.crf.rules import Pair, Rules, StudentGroup, split_groups
from engine.crf.survey import Survey
from engine.oracles.sparse_matching import max_weight_matching


@dataclass(frozen=True, slots=True)
class RuleConflict:
    """One reason why no set of pairs can follow the rules.

    Parameters
    ----------
    kind : str
        unknown_student, unknown_column, self_lock, locked_twice, locked_and_forbidden,
        lock_differs, locked_and_single, odd_total, odd_group, nobody_left or too_many_forbids.
    sentence : str, for people, naming ids.
    students : tuple of indices of the students concerned
    rules : tuple of (rule, detail): ("lock", (i, j)), ("forbid", (i, j)), ("same", column), ...

    Examples
    --------
    >>> RuleConflict("self_lock", "Ann cannot be locked to herself.", (0,)).students
    (0,)
    """

    kind: str
    sentence: str
    students: tuple[int, ...]
    rules: tuple[tuple[str, object], ...] = ()


def check_rules(survey: Survey, rules: Rules) -> tuple[RuleConflict, ...]:
    """Return every conflict that can be named, or an empty tuple if pairs exist.

    Contradictions among the rules come first; odd groups and blocking sets of forbids are checked
    only if there are none, since they would be consequences.

    Parameters
    ----------
    survey : Survey, n students.
    rules : Rules over them.

    Returns
    -------
    tuple of RuleConflict

    Notes
    -----
    Forbids are checked by Dirac's condition if it suffices (every student may live with half of the
    group), else by a maximum matching.

    References
    ----------
    Dirac 1952, theorem 3; Tutte 1947 and Berge 1958 (unmatched nodes of a maximum matching).

    Examples
    --------
    >>> import numpy as np
    >>> from engine.crf.questionnaire import Question, Questionnaire
    >>> asked = Questionnaire((Question("Smokes", "binary", ("no", "yes")),))
    >>> three = Survey(("ann", "ben", "cid"), asked, np.zeros((3, 1), dtype=int))
    >>> [conflict.kind for conflict in check_rules(three, Rules())]
    ['odd_total']
    """
    conflicts = _reference_conflicts(survey, rules)
    if conflicts:
        return tuple(conflicts)
    conflicts = _contradictions(survey, rules)
    if conflicts:
        return tuple(conflicts)
    groups = split_groups(survey, rules)
    conflicts = _odd_groups(survey, rules, groups)
    if conflicts:
        return tuple(conflicts)
    for group in groups:
        conflicts.extend(_blocked(survey, group))
    return tuple(conflicts)


def _reference_conflicts(survey: Survey, rules: Rules) -> list[RuleConflict]:
    conflicts, n = [], survey.n_students
    for rule, pairs in (("lock", rules.locks), ("forbid", rules.forbids)):
        for i, j in pairs:
            if i != j and 0 <= i < n and 0 <= j < n:
                continue
            unknown = [s for s in (i, j) if not 0 <= s < n]
            if unknown:
                text = f"A {rule} names student {unknown[0]}, who is not in this survey."
                conflicts.append(RuleConflict("unknown_student", text, (), ((rule, (i, j)),)))
            else:
                text = f"{survey.ids[i]} cannot be in a {rule} with themselves."
                conflicts.append(RuleConflict("self_lock", text, (i,), ((rule, (i, j)),)))
    for name in rules.same:
        if name not in survey.attributes:
            text = f"same:{name} names no constraint column of this survey."
            conflicts.append(RuleConflict("unknown_column", text, (), (("same", name),)))
    for student in rules.single:
        if not 0 <= student < n:
            text = f"Student {student}, who is to stay single, is not in this survey."
            conflicts.append(RuleConflict("unknown_student", text, (), (("single", student),)))
    return conflicts


def _contradictions(survey: Survey, rules: Rules) -> list[RuleConflict]:
    ids = survey.ids
    locks = sorted({(i, j) if i < j else (j, i) for i, j in rules.locks})
    forbids = {(min(pair), max(pair)) for pair in rules.forbids}
    single = set(rules.single)
    conflicts = []
    counts = Counter(chain.from_iterable(locks))
    for student in sorted(s for s, count in counts.items() if count > 1):
        mine = tuple(pair for pair in locks if student in pair)
        others = [ids[a if b == student else b] for a, b in mine]
        word = "twice" if len(mine) == 2 else f"{len(mine)} times"
        text = (
            f"{ids[student]} is locked {word}: with {' and with '.join(others)}. "
            "Only one lock can hold."
        )
        involved = tuple(sorted({s for pair in mine for s in pair}))
        rows = tuple(("lock", pair) for pair in mine)
        conflicts.append(RuleConflict("locked_twice", text, involved, rows))
    for pair in _in_question(survey, rules, locks, forbids, single):
        conflicts.extend(_lock_conflicts(survey, rules, pair, forbids, single))
    return conflicts


def _in_question(
    survey: Survey,
    rules: Rules,
    locks: Sequence[Pair],
    forbids: set[Pair],
    single: set[int],
) -> list[Pair]:
    """Return the locks that another rule contradicts, in their order: few of thousands."""
    columns = [survey.attributes[name] for name in rules.same]
    return [
        (i, j)
        for i, j in locks
        if (i, j) in forbids
        or i in single
        or j in single
        or any(column[i] != column[j] for column in columns)
    ]


def _lock_conflicts(
    survey: Survey, rules: Rules, pair: Pair, forbids: set[Pair], single: set[int]
) -> list[RuleConflict]:
    i, j = pair
    conflicts = []
    if pair in forbids:
        text = (
            f"{_names(survey, pair)} are locked together and never to be paired. "
            "Only one of the two can hold."
        )
        rows: tuple[tuple[str, object], ...] = (("lock", pair), ("forbid", pair))
        conflicts.append(RuleConflict("locked_and_forbidden", text, pair, rows))
    for column in rules.same:
        a, b = survey.attributes[column][i], survey.attributes[column][j]
        if a != b:
            text = (
                f"{_names(survey, pair)} are locked together but differ in {column}: "
                f"{a or '(blank)'} and {b or '(blank)'}."
            )
            rows = (("lock", pair), ("same", column))
            conflicts.append(RuleConflict("lock_differs", text, pair, rows))
    for student in pair:
        if student in single:
            text = f"{survey.ids[student]} is locked to somebody and is to stay single."
            rows = (("lock", pair), ("single", student))
            conflicts.append(RuleConflict("locked_and_single", text, (student,), rows))
    return conflicts


def _names(survey: Survey, pair: Pair) -> str:
    return f"{survey.ids[pair[0]]} and {survey.ids[pair[1]]}"


def _odd_groups(survey: Survey, rules: Rules, groups: Sequence[StudentGroup]) -> list[RuleConflict]:
    odd = [group for group in groups if len(group.students) % 2]
    rows = tuple(("same", name) for name in rules.same)
    if not rules.same:
        return [
            RuleConflict(
                "odd_total",
                f"{len(group.students)} students cannot all be paired: choose who stays single.",
                tuple(int(s) for s in group.students),
            )
            for group in odd
        ]
    return [
        RuleConflict(
            "odd_group",
            f"Group {group.name} has {len(group.students)} "
            f"{'student' if len(group.students) == 1 else 'students'}, an odd number. "
            "Relax the rule or leave one out.",
            tuple(int(s) for s in group.students),
            rows,
        )
        for group in odd
    ]


def _blocked(survey: Survey, group: StudentGroup) -> list[RuleConflict]:
    """Return the conflict of a group whose forbids leave no complete set of pairs, if any."""
    m = len(group.students)
    allowed = np.full(m, m - 1)
    np.subtract.at(allowed, group.forbidden.ravel(), 1)
    if m == 0 or allowed.min() >= m / 2:
        return []
    rows = tuple(
        ("forbid", (int(group.students[a]), int(group.students[b]))) for a, b in group.forbidden
    )
    lonely = [int(group.students[k]) for k in np.flatnonzero(allowed == 0)]
    if lonely:
        text = f"{survey.ids[lonely[0]]} may not be paired with anybody who is left."
        mine = tuple(row for row in rows if lonely[0] in row[1])
        return [RuleConflict("nobody_left", text, (lonely[0],), mine)]
    missing = _unmatched(m, group.forbidden)
    if not missing:
        return []
    students = tuple(int(group.students[k]) for k in missing)
    names = ", ".join(survey.ids[s] for s in students[:6])
    text = f"The forbidden pairs leave no complete set of pairs: {names} would be left over."
    return [RuleConflict("too_many_forbids", text, students, rows)]


def _unmatched(m: int, forbidden: IntArray) -> list[int]:
    """Return the nodes that a maximum matching of the allowed pairs leaves unmatched."""
    allowed = np.triu(np.ones((m, m), dtype=bool), 1)
    allowed[forbidden[:, 0], forbidden[:, 1]] = False
    edges = np.argwhere(allowed).astype(np.int64)
    matching = max_weight_matching(m, edges, np.ones(len(edges)), kind="any")
    return [int(k) for k in np.flatnonzero(matching.partner < 0)]
