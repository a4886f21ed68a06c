"""Texts about people in questionnaires, letters and requests: encrypted, found, and migrated."""

from collections.abc import Callable
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.apps.registry import Apps
from django.conf import LazySettings
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.db.migrations.state import StateApps
from django.urls import reverse

from tests.webapp.earlier_versions import MigrateTo
from tests.webapp.encryption.test_encryption import database
from webapp.accounts.models import User
from webapp.housing.models import Placement, RoommateRequest
from webapp.identity.students import SignedInStudent
from webapp.letters.models import Letter, LetterTemplate, RequestQuestion
from webapp.surveys.content import Content
from webapp.surveys.models import Mail, Participant, Questionnaire
from webapp.surveys.services.answers import participant_of_student
from webapp.surveys.services.invitations import bounces_mark

ONE, TWO = Fernet.generate_key().decode(), Fernet.generate_key().decode()
TEXTS = ("walrus@sea.example", "Wally Walrus", "NUM-77", "sub-4711", "tusk@sea.example",
         "Dear Wally, you live with Otter", "Rooms of Wally", "otter from my school",
         "550 walrus")  # fmt: skip


def filled(opened: Questionnaire, placement: Placement) -> None:
    """Store one row of everything that names a person."""
    person = Participant.objects.create(
        questionnaire=opened, email=TEXTS[0], name=TEXTS[1], identifier=TEXTS[2],
        subject=TEXTS[3], bounce=TEXTS[8],
    )  # fmt: skip
    Mail.objects.create(participant=person, subject="[title]", text="[link]", address=TEXTS[4])
    student = placement.cohort.students.all()[0]
    template = LetterTemplate.objects.create(
        organisation=opened.organisation, name="Rooms", subject="Hello", text="[name]"
    )
    Letter.objects.create(
        template=template, placement=placement, student=student, address=TEXTS[0], place=[],
        subject=TEXTS[6], text=TEXTS[5], state=Letter.SENT,
    )  # fmt: skip
    asked = RoommateRequest.objects.create(
        cohort=placement.cohort, student=student, written=TEXTS[7], source="File"
    )
    RequestQuestion.objects.create(request=asked, subject=TEXTS[6], text="[typed]",
                                   address=TEXTS[0])  # fmt: skip


def held() -> set[str]:
    kept = database()
    return {text for text in TEXTS if text.encode() in kept}


def read(of: Apps = apps) -> set[str]:
    """Return the texts as the product reads them, or a version of it."""
    person, mail, letter, question = (
        of.get_model(name).objects.get()
        for name in (
            "surveys.Participant", "surveys.Mail", "letters.Letter", "letters.RequestQuestion"
        )
    )  # fmt: skip
    request = of.get_model("housing.RoommateRequest").objects.exclude(source="")
    return {
        person.email, person.name, person.identifier, person.subject, person.bounce, mail.address,
        letter.address, letter.subject, letter.text, request.get(target=None).written,
        question.address,
    }  # fmt: skip


def test_nothing_about_a_person_lies_open_where_a_key_is_set(
    settings: LazySettings,
    opened: Questionnaire,
    placement: Placement,
) -> None:
    settings.ENCRYPTION_KEYS = [ONE]
    filled(opened, placement)
    assert held() == set()
    assert read() == set(TEXTS)


def test_a_key_is_set_changed_and_removed(
    settings: LazySettings,
    opened: Questionnaire,
    placement: Placement,
) -> None:
    filled(opened, placement)
    assert held() == set(TEXTS)
    for keys in ([ONE], [TWO, ONE], [TWO]):
        settings.ENCRYPTION_KEYS = keys
        assert read() == set(TEXTS)
        call_command("encrypt_again")
        call_command("encrypt_again")  # cut off and started again, it changes nothing
        assert held() == set(), keys
        assert read() == set(TEXTS), keys


def test_people_are_found_by_address_and_sign_in_under_old_and_new_keys(
    settings: LazySettings,
    bob: User,
    opened: Questionnaire,
    placement: Placement,
) -> None:
    settings.ENCRYPTION_KEYS = [ONE]
    filled(opened, placement)
    settings.ENCRYPTION_KEYS = [TWO, ONE]
    person = Participant.objects.get()
    student = SignedInStudent(bob.organisation_id, TEXTS[3], TEXTS[2], TEXTS[0])
    assert participant_of_student(questionnaire=opened, student=student) == person
    assert person.mails.filter(address=TEXTS[4]).exists()
    owned = Questionnaire.objects.all()
    assert bounces_mark(user=bob, questionnaires=owned, addresses={TEXTS[0]: "gone"}) == 1
    person.refresh_from_db()
    assert person.bounce == "gone"


def test_an_address_is_invited_once_and_no_address_many_times(
    settings: LazySettings,
    opened: Questionnaire,
) -> None:
    settings.ENCRYPTION_KEYS = [ONE]
    for _ in range(3):
        Participant.objects.create(questionnaire=opened, identifier="N")
    Participant.objects.create(questionnaire=opened, email="a@x.example")
    with pytest.raises(IntegrityError), transaction.atomic():
        Participant.objects.create(questionnaire=opened, email="a@x.example")
    assert opened.participants.exclude(email="").count() == 1


def test_letters_are_found_by_name_number_and_part_of_an_address(
    settings: LazySettings,
    alice: User,
    bob: User,
    client_of: Callable,
    opened: Questionnaire,
    placement: Placement,
) -> None:
    settings.ENCRYPTION_KEYS = [ONE]
    filled(opened, placement)
    address = reverse("letters:placement", args=[placement.pk])
    for typed in ("WALRUS@", "sea.exa", "S-1001", "josé", "N01"):
        page = client_of(bob).get(address, {"q": typed})
        assert len(page.context["listing"].rows) == 1, typed
    for typed in ("nobody", "zoë", "S-1002"):
        assert not client_of(bob).get(address, {"q": typed}).context["listing"].rows, typed
    assert client_of(alice).get(address).status_code == 403


BEFORE = (
    ("surveys", "0008_seal_file_names"),
    ("letters", "0002_questions_about_requests"),
    ("housing", "0004_versions_and_drafts"),
)
AFTER = (
    ("surveys", "0009_seal_texts_about_people"),
    ("letters", "0003_seal_texts_about_people"),
    ("housing", "0005_seal_texts_about_people"),
)


def filled_before(old: StateApps) -> None:
    """Store the rows of ``filled`` in a database of the version before."""

    def make(app: str, model: str, **values: Any) -> Any:
        return old.get_model(app, model).objects.create(**values)

    owner = {"organisation": make("accounts", "Organisation", name="Northfield")}
    year = make("cohorts", "Cohort", **owner, name="2026", questions=[], n_students=1)
    student = make("cohorts", "Student", cohort=year, number=1, answers=[])
    asked = make("surveys", "Questionnaire", **owner, title="Rooms", content=Content())
    person = make("surveys", "Participant", questionnaire=asked, email=TEXTS[0], name=TEXTS[1],
                  identifier=TEXTS[2], subject=TEXTS[3], bounce=TEXTS[8])  # fmt: skip
    make("surveys", "Mail", participant=person, subject="[title]", text="[link]", address=TEXTS[4])
    template = make("letters", "LetterTemplate", **owner, name="Rooms", subject="Hello")
    make("letters", "Letter", template=template, student=student, address=TEXTS[0], place=[],
         subject=TEXTS[6], text=TEXTS[5],
         error="The mail server refused the address: 550 <walrus@sea.example>")  # fmt: skip
    request = make("housing", "RoommateRequest", cohort=year, student=student, written=TEXTS[7],
                   source="File")  # fmt: skip
    make("letters", "RequestQuestion", request=request, subject=TEXTS[6], text="[typed]",
         address=TEXTS[0])  # fmt: skip


@pytest.mark.every_database
@pytest.mark.parametrize("keys", [pytest.param([], marks=pytest.mark.any_database), [ONE]])
def test_the_migration_encrypts_what_is_there(
    migrate_to: MigrateTo, settings: LazySettings, keys: list[str]
) -> None:
    """Rows of the version before, plain in columns of plain text."""
    filled_before(migrate_to(*BEFORE))
    settings.ENCRYPTION_KEYS = keys
    new = migrate_to(*AFTER)
    assert read(new) == set(TEXTS)
    assert "walrus" not in new.get_model("letters", "Letter").objects.get().error
    with connection.cursor() as cursor:
        cursor.execute("SELECT email, name FROM surveys_participant")
        (row,) = cursor.fetchall()
        cursor.execute("SELECT address, text FROM letters_letter")
        (letter,) = cursor.fetchall()
    assert all(text.startswith("siv:") == bool(keys) for text in (*row, *letter))
    people = new.get_model("surveys", "Participant").objects
    with pytest.raises(IntegrityError), transaction.atomic():
        people.create(questionnaire_id=people.get().questionnaire_id, email=TEXTS[0])
