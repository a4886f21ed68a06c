"""The search of all cohorts: every one is reached, few are read, and the index tells nothing."""

import random
from unittest.mock import patch

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.webapp.factories.students import imported
from webapp.accounts.models import User
from webapp.cohorts import naming
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.naming import Search, directory_of
from webapp.cohorts.services.cohorts import cohort_purge
from webapp.cohorts.services.latecomers import latecomers_add
from webapp.students.models import SearchIndex
from webapp.students.search import find_students, search
from webapp.students.search_index import forget_indexes, may_hold

N_COHORTS = 75
ODD = [
    "Ng",
    "O’Hára-Søndergård",
    "李 小龙",
    "van der  Berg",
    "",
    "Æsa ÞÓR",
    "ǅemal",
    "ﬁlip",
    "İnci",
]


@pytest.fixture
def years(bob: User) -> list[Cohort]:
    """75 cohorts of three students; Ursula of cohort k is nobody else's name."""
    made = []
    for k in range(N_COHORTS):
        cohort = Cohort.objects.create(
            organisation=bob.organisation, created_by=bob, name=f"Y{k}", questions=[], n_students=3
        )
        Student.objects.bulk_create(
            Student(cohort=cohort, number=5000 + 3 * k + i, original_id=f"K{k}-{i}", answers=[],
                    name=name, email=f"{name.split()[0].lower()}{k}@north.example")
            for i, name in enumerate((f"Ursula{k} Okafor", "Jane Smith", "Li Wei"))
        )  # fmt: skip
        made.append(cohort)
    return made


@pytest.mark.parametrize(
    "typed", ["ursula0", "Okafor URSULA0", "K0-0", "k0-0", "ursula00@", "ursula00@north.example",
              "ursula00", "S-5000", "5000"],
)  # fmt: skip
def test_the_oldest_of_75_cohorts_is_reached(bob: User, years: list[Cohort], typed: str) -> None:
    """Only the latest 60 used to be searched."""
    found = find_students(bob, typed.removesuffix("@"))
    assert (years[0].pk, 5000) in {(cohort.pk, one.number) for cohort, one in found}


def test_names_are_read_only_where_the_person_can_be(bob: User, years: list[Cohort]) -> None:
    find_students(bob, "nobody at all")  # makes the indexes
    naming.forget_directories()
    with patch.object(naming, "_directory", wraps=naming._directory) as read:
        assert len(find_students(bob, "ursula31 okafor")) == 1
        assert read.call_count == 1
        assert find_students(bob, "Zacharias") == []
        assert read.call_count == 1
    with CaptureQueriesContext(connection) as queries:
        find_students(bob, "ursula31")
    assert len(queries) < 10


def test_a_process_reads_the_indexes_of_all_cohorts_with_one_query(
    bob: User, years: list[Cohort]
) -> None:
    """A query for each cohort took a quarter of a second with 500 of them."""
    find_students(bob, "nobody at all")  # makes the indexes
    forget_indexes()
    naming.forget_directories()
    with CaptureQueriesContext(connection) as queries:
        assert len(find_students(bob, "ursula31")) == 1
    assert len(queries) < 10


def test_a_common_name_stops_after_enough_students(bob: User, years: list[Cohort]) -> None:
    find_students(bob, "smith")
    naming.forget_directories()
    with patch.object(naming, "_directory", wraps=naming._directory) as read:
        assert len(list(search(bob, "jane smith"))) == 30
        assert 30 <= read.call_count < N_COHORTS  # of the found ones again, for their rooms
    assert len(find_students(bob, "jane smith")) == N_COHORTS


def test_the_index_misses_nobody_whom_a_search_finds(bob: User) -> None:
    """Random parts of odd names: what the plain search finds, the index lets through."""
    draw = random.Random(5)
    cohort = Cohort.objects.create(
        organisation=bob.organisation, created_by=bob, name="Odd", questions=[], n_students=40
    )
    Student.objects.bulk_create(
        Student(cohort=cohort, number=7000 + k, original_id=f" Ü{k}", answers=[],
                name=f"{draw.choice(ODD)} {draw.choice(ODD)}", preferred=draw.choice(ODD),
                email=draw.choice(["", f"Ø.{k}@X.example"]))
        for k in range(40)
    )  # fmt: skip
    n_found = 0
    for one in directory_of(cohort).by_number.values():
        for text in (one.name, one.preferred, one.original_id, one.email, one.name[:3], "q", ""):
            for typed in (text, text.upper(), " ".join(reversed(text.split()))):
                wanted = Search(typed)
                found = wanted.find(cohort, by_name=True)
                n_found += bool(found)
                assert may_hold(cohort, wanted) or not found, typed
    assert n_found > 300


def test_the_index_follows_new_students_and_the_key(
    bob: User, cohort: Cohort, settings: LazySettings
) -> None:
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    assert find_students(bob, "silva")
    kept = SearchIndex.objects.get()
    first = (kept.key, bytes(kept.digests))
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode(), *settings.ENCRYPTION_KEYS]
    assert find_students(bob, "silva")
    kept.refresh_from_db()
    assert (kept.key, bytes(kept.digests)) != first
    latecomers_add(user=bob, cohort=cohort, rows=[{"id": "LATE-7"}])
    assert [one.original_id for _, one in find_students(bob, "late-7")] == ["LATE-7"]


def test_the_index_goes_with_its_cohort_and_serves_one_organisation(
    alice: User, bob: User, mallory: User, cohort: Cohort
) -> None:
    imported(mallory, "Elsewhere")
    assert len(find_students(bob, "silva")) == 2
    assert {found.organisation_id for found, _ in find_students(mallory, "silva")} == {
        mallory.organisation_id
    }
    assert find_students(alice, "silva") == []
    cohort_purge(user=bob, cohort=cohort, typed_name="First-years")
    forget_indexes()
    assert [index.cohort.name for index in SearchIndex.objects.all()] == ["Elsewhere"]
    assert find_students(bob, "silva") == []
