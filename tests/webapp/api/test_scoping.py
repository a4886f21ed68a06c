"""No token opens an object of another organisation, by any endpoint."""

import uuid
from datetime import date, timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.webapp.factories.placed import placed_cohort
from webapp.accounts.models import Role
from webapp.api.openapi import PREFIX
from webapp.api.registry import endpoints
from webapp.api.services import token_create
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort
from webapp.housing.models import (
    BuildingList,
    NeedMeaning,
    Placement,
    PlacementEvent,
    PlacementVersion,
    ProposedChange,
    RoommateRequest,
    Term,
)
from webapp.jobs.models import Job
from webapp.letters.services.templates import template_save
from webapp.matching.models import LearnedModel
from webapp.reports.services import shape_save
from webapp.room_choice.models import ChoiceRound
from webapp.surveys.questions import questions_of
from webapp.surveys.services.answers import answer_save
from webapp.surveys.services.questionnaires import questionnaire_create
from webapp.webhooks.models import Webhook


@pytest.fixture
def keys(bob, image_set, image, segmenter, batch) -> dict[str, str]:
    """One object of Northfield for every kind of parameter."""
    cohort = Cohort.objects.create(
        organisation=bob.organisation, name="2025", questions=[], n_students=2
    )
    model = LearnedModel.objects.create(organisation=bob.organisation, name="Model")
    proposal = Placement.objects.create(
        organisation=bob.organisation, name="Pairs", cohort=cohort, model=model, is_pairs=True,
        buildings=BuildingList.everything.create(
            organisation=bob.organisation, name="Pairs", is_private=True
        ),
    )  # fmt: skip
    placement = placed_cohort(bob)
    letter = template_save(user=bob, template=None, name="Letter", subject="S", text="[hall]")
    wish = RoommateRequest.objects.create(
        cohort=cohort, student=placement.cohort.students.first(), written="x", source="f"
    )
    event = PlacementEvent.objects.create(placement=placement, before=[], after=[])
    change = ProposedChange.objects.create(placement=placement, price=1.0)
    draft = ProposedChange.objects.create(placement=placement, is_by_hand=True, owner=bob)
    version = PlacementVersion.objects.create(placement=placement, number=1, origin="run")
    asked = questionnaire_create(user=bob, title="Asked", form="own")
    wrote = next(q for q in questions_of(asked.content) if q.is_written)
    answering = asked.participants.create(email="anna@northfield.example")
    answer_save(participant=answering, question=wrote, values=["I need a ramp."])
    webhook = Webhook.objects.create(
        organisation=bob.organisation, url="https://127.0.0.1/", events=["job.failed"], nonce="n"
    )
    delivery = webhook.deliveries.create(event="job.failed", body="{}")
    term = Term.objects.create(
        organisation=bob.organisation, name="Autumn", starts_on=date(2026, 8, 20),
        ends_on=date(2026, 12, 18),
    )  # fmt: skip
    meaning = NeedMeaning.objects.create(organisation=bob.organisation, need="Ramp", key="ramp")
    now = timezone.now()
    choice_round = ChoiceRound.objects.create(
        placement=placement, name="First", opens_at=now, closes_at=now + timedelta(days=1),
        minutes=30, seed=1,
    )  # fmt: skip
    return {
        "placement_id": str(placement.pk),
        "buildings_id": str(placement.buildings_id),
        "room_id": str(placement.buildings.rooms.first().pk),
        "request_id": str(wish.pk),
        "event_id": str(event.pk),
        "change_id": str(change.pk),
        "draft_id": str(draft.pk),
        "number": str(version.number),
        "letter_id": str(letter.pk),
        "questionnaire_id": str(asked.pk),
        "answers_id": str(answering.pk),
        "text_id": str(answering.written_answers.get().pk),
        "webhook_id": str(webhook.pk),
        "delivery_id": str(delivery.pk),
        "roster_id": str(shape_save(user=bob, name="R", columns=[("id", "")], is_exact=True).pk),
        "term_id": str(term.pk),
        "meaning_id": str(meaning.pk),
        "round_id": str(choice_round.pk),
        "student": "S-1001",
        "shape": "csv",
        "set_id": str(image_set.pk),
        "file_id": str(image.pk),
        "prediction_id": str(batch.pk),
        "job_id": str(Job.objects.first().pk),
        "cohort_id": str(cohort.pk),
        "proposal_id": str(proposal.pk),
        "pair_id": "1",
        "kind": "mask.png",
        "file_format": "csv",
        "image_model": str(segmenter.pk),
        "roommate_model": str(model.pk),
        "predicted": str(batch.images.first().pk),
    }


def fill(entry, keys: dict[str, str]) -> str:
    path = entry.path
    is_prediction = path.startswith("/predictions")
    values = {
        **keys,
        "model_id": keys["image_model" if "image-models" in path else "roommate_model"],
        "image_id": keys["predicted" if is_prediction else "file_id"],
    }
    for name in entry.path_parameters:
        path = path.replace(f"{{{name}}}", values[name])
    return path


BODIES = {"/predictions/{prediction_id}/images/{image_id}/corrections": {"kind": "delete"}}
"""Bodies of endpoints that read the body before they look for the object, by path."""


def test_another_organisation_finds_nothing(program_of, mallory, keys) -> None:
    """Whatever their role there: not even an administrator learns that something exists."""
    mallory.role = Role.ADMINISTRATOR
    mallory.save()
    program = program_of(mallory)
    tried = 0
    for entry in endpoints():
        if entry.path_parameters:
            body = BODIES.get(entry.path, {}) if entry.body else None
            answer = program.call(entry.method, fill(entry, keys), body)
            assert answer.status_code == 404, f"{entry.method} {entry.path}"
            tried += 1
    assert tried > 20


def test_its_own_organisation_finds_all_of_it(program_of, carol, keys) -> None:
    """The same addresses answer their owner, so what is not found above is not mistyped."""
    program = program_of(carol)
    for entry in endpoints():
        if entry.method == "GET" and entry.path_parameters:
            answer = program.call(entry.method, fill(entry, keys))
            assert answer.status_code != 404, entry.path


def test_lists_of_another_organisation_are_empty(program_of, mallory, keys) -> None:
    mallory.role = Role.ADMINISTRATOR
    mallory.save()
    program = program_of(mallory)
    for entry in endpoints():
        if entry.method == "GET" and not entry.path_parameters and entry.path != "/me":
            assert program.get(entry.path).data["total"] == 0, entry.path


def test_reading_tokens_of_staff_are_refused_every_change(program_of, bob, keys) -> None:
    program = program_of(bob, may_change=False)
    for entry in endpoints():
        if entry.changes:
            answer = program.call(entry.method, fill(entry, keys), {} if entry.body else None)
            assert answer.status_code == 403, f"{entry.method} {entry.path}"


def test_viewers_change_nothing_and_staff_do_not_publish(program_of, alice, bob, keys) -> None:
    ranks = list(Role)
    for person in (alice, bob):
        program = program_of(person)
        for entry in endpoints():
            if ranks.index(entry.role) > ranks.index(person.role):
                answer = program.call(entry.method, fill(entry, keys), {} if entry.body else None)
                assert answer.status_code == 403, f"{entry.method} {entry.path}"
                assert answer.data["detail"] == f"This needs the role {entry.role.value}."


def test_without_a_token_nothing_answers(client, keys) -> None:
    for entry in endpoints():
        url = "/api/v1" + fill(entry, keys)
        assert getattr(client, entry.method.lower())(url).status_code == 401, entry.path


def test_unknown_objects_and_methods(program_of, bob, image_set) -> None:
    program = program_of(bob)
    assert program.get(f"/image-sets/{uuid.uuid4()}").status_code == 404
    assert program.call("PUT", f"/image-sets/{image_set.pk}").status_code == 405
    answer = program.call("PATCH", "/image-sets")
    assert answer["Allow"] == "GET, POST"


def test_head_answers_as_get_and_leaves_no_line(program_of, carol, keys) -> None:
    secret = token_create(user=carol, name="head", days=30, may_change=False)[1]
    client = Client(headers={"authorization": f"Bearer {secret}"})
    tried = 0
    for entry in endpoints():
        address = PREFIX + fill(entry, keys)
        if entry.method != "GET" or client.get(address).status_code != 200:
            continue
        before = AuditLine.objects.count()
        head = client.head(address)
        assert head.status_code == 200, entry.path
        assert not head.getvalue(), entry.path
        assert AuditLine.objects.count() == before, entry.path
        tried += 1
    assert tried > 20
