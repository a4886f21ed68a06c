"""A short year of a questionnaire on the running product, some of it killed on the way.

The whole year, with 2,500 students and ten kills, is ``python -m benchmarks product students``.
"""

from pathlib import Path

import pytest

from tests.live.product import Product
from tests.live.student_year import (
    Killer,
    answer,
    crowd_of,
    lost_answers,
    make_placement,
    open_questionnaire,
    remind,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc"),
]
STUDENTS = 24


def test_no_answer_is_lost_when_processes_are_killed(product: Product) -> None:
    code, links = open_questionnaire(product, invited=STUDENTS // 2)
    assert len(set(links)) == STUDENTS // 2
    students = crowd_of(product, STUDENTS, code=code, links=links, seed=5)
    students[1].stops_after = 6  # whatever the dice say, one stops half-way
    late = students[0]
    now = [one for one in students if one is not late]
    killer = Killer(product, times=3, every=2.0, seed=3)
    killer.start()
    # One each half second: a quick machine is not done before the first kill.
    seen = answer(product, now, at_once=4, students_a_minute=120)
    killer.stop()
    assert not seen.failures, seen.failures
    assert killer.killed
    n_reminded = remind(product)
    assert n_reminded >= 2  # who is late, and who stopped half-way
    assert not answer(product, [late], at_once=1).failures
    assert lost_answers(product, students) == []
    logs = [path.read_text(errors="replace") for path in (product.instance / "log").iterdir()]
    assert sum(log.count("/q/[link]/") for log in logs) >= STUDENTS
    signatures = {one.path.rpartition("~")[2].strip("/") for one in students}
    assert not [one for one in signatures if any(one in log for log in logs)]
    n_finished = len({one.identifier for one in students if one.is_finished})
    assert make_placement(product, seconds=120) == n_finished
