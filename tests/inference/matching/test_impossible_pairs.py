"""Rules: what contradicts is named, what separates is split."""

import numpy as np
import pytest

from engine.crf.rules import Rules, split_groups
from engine.inference.matching.impossible_pairs import check_rules
from tests.learning.roommates.cohorts import random_survey


@pytest.fixture
def survey():
    return random_survey(8, Gender=("F", "F", "F", "F", "M", "M", "M", "M"))


def only_conflict(survey, **rules):
    conflicts = check_rules(survey, Rules(**rules))
    assert len(conflicts) == 1
    return conflicts[0]


def test_no_rules_no_conflict(survey):
    assert check_rules(survey, Rules()) == ()


def test_a_student_locked_twice_is_named_with_both_partners(survey):
    conflict = only_conflict(survey, locks=((0, 1), (0, 2)))
    assert conflict.kind == "locked_twice"
    assert conflict.sentence == (
        "S-000 is locked twice: with S-001 and with S-002. Only one lock can hold."
    )
    assert conflict.students == (0, 1, 2)
    assert conflict.rules == (("lock", (0, 1)), ("lock", (0, 2)))


def test_the_same_lock_given_twice_is_one_lock(survey):
    assert check_rules(survey, Rules(locks=((0, 1), (1, 0)))) == ()


def test_a_lock_that_contradicts_a_forbid_is_named(survey):
    conflict = only_conflict(survey, locks=((0, 1),), forbids=((1, 0),))
    assert conflict.kind == "locked_and_forbidden"
    assert "S-000 and S-001" in conflict.sentence


def test_a_lock_across_groups_is_named_with_the_values(survey):
    conflict = only_conflict(survey, locks=((0, 4),), same=("Gender",))
    assert conflict.kind == "lock_differs"
    assert conflict.sentence.endswith("differ in Gender: F and M.")


def test_a_lock_of_somebody_single_is_named(survey):
    assert only_conflict(survey, locks=((0, 1),), single=(0, 7)).kind == "locked_and_single"


def test_an_odd_total_asks_who_stays_single(survey):
    conflict = only_conflict(survey, single=(3,))
    assert conflict.kind == "odd_total"
    assert conflict.sentence == "7 students cannot all be paired: choose who stays single."


def test_an_odd_group_is_named_and_counted(survey):
    conflicts = check_rules(survey, Rules(single=(0,), same=("Gender",)))
    assert [c.kind for c in conflicts] == ["odd_group"]
    assert conflicts[0].sentence == (
        "Group F has 3 students, an odd number. Relax the rule or leave one out."
    )


def test_blanks_form_a_group_of_their_own():
    survey = random_survey(4, Gender=("F", "F", "", ""))
    names = [group.name for group in split_groups(survey, Rules(same=("Gender",)))]
    assert names == ["(blank)", "F"]


def test_unknown_students_and_columns_are_named(survey):
    assert only_conflict(survey, same=("Hall",)).kind == "unknown_column"
    assert only_conflict(survey, locks=((0, 99),)).kind == "unknown_student"
    assert only_conflict(survey, forbids=((2, 2),)).kind == "self_lock"


def test_somebody_forbidden_with_everybody_is_named(survey):
    conflict = only_conflict(survey, forbids=tuple((0, k) for k in range(1, 8)))
    assert conflict.kind == "nobody_left"
    assert conflict.sentence == "S-000 may not be paired with anybody who is left."


def test_forbids_that_leave_no_complete_set_are_found(survey):
    """0, 1 and 2 may only live with 3: everybody has a partner, not everybody at once."""
    forbids = tuple((a, b) for a in range(3) for b in range(8) if b != 3 and b != a)
    conflict = only_conflict(survey, forbids=forbids)
    assert conflict.kind == "too_many_forbids"
    assert set(conflict.students) & {0, 1, 2}


def test_many_harmless_forbids_are_accepted(survey):
    forbids = tuple((0, k) for k in range(1, 7))
    assert check_rules(survey, Rules(forbids=forbids)) == ()


def test_groups_leave_out_locked_and_single_students(survey):
    rules = Rules(locks=((0, 1),), single=(4, 5), same=("Gender",), forbids=((6, 7), (2, 6)))
    groups = split_groups(survey, rules)
    assert [list(group.students) for group in groups] == [[2, 3], [6, 7]]
    assert groups[0].forbidden.shape == (0, 2)
    assert np.array_equal(groups[1].forbidden, [[0, 1]])
