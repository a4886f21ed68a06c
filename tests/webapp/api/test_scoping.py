"""No token opens an object of another organisation, by any endpoint."""

import uuid

import pytest

from webapp.api.registry import endpoints
from webapp.cohorts.models import Cohort
from webapp.jobs.models import Job
from webapp.matching.models import LearnedModel, Proposal


@pytest.fixture
def keys(bob, image_set, image, segmenter, batch) -> dict[str, str]:
    """One object of Northfield for every kind of parameter."""
    cohort = Cohort.objects.create(
        organisation=bob.organisation, name="2025", questions=[], n_students=2
    )
    model = LearnedModel.objects.create(organisation=bob.organisation, name="Model")
    proposal = Proposal.objects.create(
        organisation=bob.organisation, name="Proposal", cohort=cohort, model=model
    )
    return {
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


def test_another_organisation_finds_nothing(program_of, mallory, keys) -> None:
    program = program_of(mallory)
    tried = 0
    for entry in endpoints():
        if entry.path_parameters:
            answer = program.call(entry.method, fill(entry, keys), {} if entry.body else None)
            assert answer.status_code == 404, f"{entry.method} {entry.path}"
            tried += 1
    assert tried > 20


def test_its_own_organisation_finds_all_of_it(program_of, bob, keys) -> None:
    """The same addresses answer their owner, so what is not found above is not mistyped."""
    program = program_of(bob)
    for entry in endpoints():
        if entry.method == "GET" and entry.path_parameters:
            answer = program.call(entry.method, fill(entry, keys))
            assert answer.status_code != 404, entry.path


def test_lists_of_another_organisation_are_empty(program_of, mallory, keys) -> None:
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
