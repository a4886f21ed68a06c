"""Imports at the same moment, in processes of their own: S-1042 stays one student."""

import threading

import pytest

from tests.live.product import Product, new_product

pytestmark = pytest.mark.slow

_IMPORT = """
import time
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.cohorts.services.cohorts import cohort_split
from webapp.cohorts.services.imports import draft_import
from webapp.cohorts.services.drafts import draft_create
from webapp.cohorts.services.latecomers import latecomers_add
bob = User.objects.get(username="bob")
first = None
for k in range(4):
    rows = "".join(f"N{k}-{n},{'Early' if n % 2 else 'Late'}\\n" for n in range(30))
    data = ("Student ID,Bedtime\\n" + rows).encode()
    draft = draft_create(user=bob, filename="s.csv", size=len(data), read=lambda: data)
    made = draft_import(user=bob, draft=draft, name=f"PART {k}", version=draft.version)
    first = first or made
    latecomers_add(user=bob, cohort=first, rows=[{"id": f"L{k}-{n}"} for n in range(5)])
cohort_split(user=bob, cohort=first, seed=1)
"""

_COUNT = """
from collections import defaultdict
from webapp.accounts.models import User
from webapp.cohorts.models import Student
north = User.objects.get(username="bob").organisation
people = defaultdict(set)
rows = Student.objects.filter(cohort__organisation=north).values_list(
    "number", "cohort", "cohort__half_of", "original_id"
)
for number, cohort, whole, original in rows:
    people[number].add((whole or cohort, original))
print(len(people), max(map(len, people.values())), north.last_student_number == max(people))
"""


@pytest.fixture
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Product:
    """An installation whose database is ready and whose server does not run."""
    return new_product(tmp_path_factory.mktemp("numbers"))


def test_three_processes_import_add_and_split_at_once(waiting: Product) -> None:
    failed: list[str] = []

    def work(part: int) -> None:
        try:
            waiting.run(_IMPORT.replace("PART", f"Part {part}"), timeout=300)
        except AssertionError as error:
            failed.append(str(error)[-800:])

    threads = [threading.Thread(target=work, args=(part,)) for part in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert waiting.run(_COUNT) == f"{3 * (4 * 30 + 4 * 5)} 1 True"
