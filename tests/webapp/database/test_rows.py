"""Writes of many rows by one statement."""

from datetime import timedelta

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort, Student
from webapp.database.rows import create_rows, update_rows


def test_fields_of_every_kind_are_written_and_others_stay(bob: User) -> None:
    cohort = Cohort.objects.create(
        organisation=bob.organisation, created_by=bob, name="Y", questions=[], n_students=3
    )
    students = Student.objects.bulk_create(
        Student(cohort=cohort, number=k, original_id=f"K{k}", answers=[k], name="Ada")
        for k in range(3)
    )
    for student in students[:2]:
        student.attributes, student.name = (
            {"Gender": f"é {student.number}"},
            f"Zoë {student.number}",
        )
        student.answers, student.number = [9], student.number + 100
    with CaptureQueriesContext(connection) as queries:
        update_rows(students[:2], ["attributes", "name", "number"])
    assert len(queries) == 1
    rows = [(s.number, s.name, s.attributes, s.answers) for s in Student.objects.order_by("pk")]
    assert rows == [
        (100, "Zoë 0", {"Gender": "é 0"}, [0]),
        (101, "Zoë 1", {"Gender": "é 1"}, [1]),
        (2, "Ada", {}, [2]),
    ]


def test_a_reference_is_written_by_its_key(bob: User) -> None:
    cohorts = [
        Cohort.objects.create(organisation=bob.organisation, name=name, questions=[], n_students=0)
        for name in "AB"
    ]
    for cohort in cohorts:
        cohort.created_by = bob
    update_rows(cohorts, ["created_by"])
    assert Cohort.objects.filter(created_by=bob).count() == 2


def test_rows_are_created_with_the_values_that_django_would_give(bob: User) -> None:
    cohort = Cohort.objects.create(
        organisation=bob.organisation, name="Z", questions=[], n_students=3
    )
    rows = [
        Student(cohort=cohort, number=k, original_id=f"é{k}", answers=[k], attributes={"Hall": "Ö"})
        for k in range(3)
    ]
    with CaptureQueriesContext(connection) as queries:
        create_rows(rows)
    assert len(queries) == 1
    lines = [
        AuditLine(organisation=bob.organisation, username="bob", verb="looked", target_type="pair")
    ]
    create_rows(lines)  # whose moment is set as it is created
    assert [(s.number, s.original_id, s.answers, s.attributes) for s in cohort.students.all()] == [
        (k, f"é{k}", [k], {"Hall": "Ö"}) for k in range(3)
    ]
    assert abs(timezone.now() - AuditLine.objects.get(verb="looked").created_at) < timedelta(1)


def test_nothing_is_asked_for_no_rows(db: None) -> None:
    with CaptureQueriesContext(connection) as queries:
        create_rows([])
        update_rows([], ["name"])
    assert not queries
