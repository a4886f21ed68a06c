"""What is encrypted at rest: read as the database holds it, with keys that change."""

from collections.abc import Callable

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.core.exceptions import FieldError, ImproperlyConfigured
from django.core.management import call_command
from django.db import connection

from tests.webapp.factories.questionnaires import Student
from webapp.accounts.models import User
from webapp.cohorts.models import Student as CohortStudent
from webapp.identity.models import IdentityProvider
from webapp.identity.second_factor import second_factor_begin
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.services.cohorts import cohort_from_answers
from webapp.surveys.services.questionnaires import questionnaire_create

SECRET = "I snore like a walrus"
ONE, TWO = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def database() -> bytes:
    """All that the database holds now: the bytes of SQLite's file, or every row of every table."""
    if connection.vendor == "sqlite":
        return connection.connection.serialize()
    rows = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            name = connection.ops.quote_name(table)
            cursor.execute(f"SELECT held::text FROM {name} AS held")
            rows.extend(row[0] for row in cursor.fetchall())
    return "\n".join(rows).encode()


def answered(opened: Questionnaire) -> Participant:
    return Participant.objects.create(
        questionnaire=opened, identifier="N1", answers={"a1": SECRET, "b2": [0, 2], "c3": None}
    )


def test_without_a_key_the_database_holds_what_was_said(opened: Questionnaire) -> None:
    answered(opened)
    assert SECRET.encode() in database()


def test_with_a_key_it_does_not_and_people_read_it_all_the_same(
    settings: LazySettings,
    opened: Questionnaire,
) -> None:
    settings.ENCRYPTION_KEYS = [ONE]
    row = answered(opened)
    assert SECRET.encode() not in database()
    found = Participant.objects.get(pk=row.pk)
    assert found.answers == {"a1": SECRET, "b2": [0, 2], "c3": None}
    assert list(Participant.objects.values_list("answers", flat=True)) == [found.answers]


def test_what_was_there_before_is_read_and_encrypted_by_the_command(
    settings: LazySettings,
    opened: Questionnaire,
) -> None:
    row = answered(opened)
    settings.ENCRYPTION_KEYS = [ONE]
    assert Participant.objects.get(pk=row.pk).answers["a1"] == SECRET
    call_command("encrypt_again")
    with connection.cursor() as cursor:
        cursor.execute("SELECT answers FROM surveys_participant")
        assert cursor.fetchone()[0].startswith("fernet:")
    assert Participant.objects.get(pk=row.pk).answers["a1"] == SECRET


def test_a_key_is_changed_without_losing_anything(
    settings: LazySettings,
    opened: Questionnaire,
) -> None:
    settings.ENCRYPTION_KEYS = [ONE]
    row = answered(opened)
    settings.ENCRYPTION_KEYS = [TWO, ONE]
    call_command("encrypt_again")
    settings.ENCRYPTION_KEYS = [TWO]
    assert Participant.objects.get(pk=row.pk).answers["a1"] == SECRET
    for keys in ([ONE], []):
        settings.ENCRYPTION_KEYS = keys
        with pytest.raises(ImproperlyConfigured, match="does not hold"):
            Participant.objects.get(pk=row.pk)
    settings.ENCRYPTION_KEYS = ["not a key"]
    with pytest.raises(ImproperlyConfigured, match="no Fernet key"):
        Participant.objects.get(pk=row.pk)


def test_cohorts_providers_and_second_factors_are_encrypted_too(
    settings: LazySettings,
    bob: User,
    student: Callable[..., Student],
    opened: Questionnaire,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.ENCRYPTION_KEYS = [ONE]
    for k in range(3):
        student(f"N{k}").say_all(k)
    cohort = cohort_from_answers(user=bob, questionnaire=opened, name="Sealed")
    IdentityProvider.objects.create(
        organisation=bob.organisation, name="P", protocol="openid_connect", secret="client-hush"
    )
    monkeypatch.setattr("webapp.identity.second_factor.validate_totp_code", lambda *_: True)
    second_factor_begin(user=bob, secret="JBSWY3DPEHPK3PXP", code="123456")
    held = database()
    assert b"client-hush" not in held
    assert b"JBSWY3DPEHPK3PXP" not in held
    with connection.cursor() as cursor:
        cursor.execute("SELECT answers FROM cohorts_student")
        assert all(row[0].startswith("fernet:") for row in cursor.fetchall())
    assert len(CohortStudent.objects.filter(cohort=cohort).first().answers) == 13


def test_nothing_searches_in_it(bob: User) -> None:
    made = questionnaire_create(user=bob, title="T", form="own")
    with pytest.raises(FieldError):
        made.participants.filter(answers={}).exists()
