"""Whatever our OpenAPI document allows, sent to every endpoint with ids of things that there are.

    python -m benchmarks hunts api_schema [--examples 200] [--seed 1]

schemathesis draws paths, queries, headers and bodies from the document; ids are those of objects of
the sender's organisation, so that requests get behind the first look-up; the sender is an
administrator, and may call as often as it likes. Every request is undone, in an installation of its
own. Prints answers by status; ends with 1 if one is 500 or above, or
took more than ten seconds.
"""

import argparse
import copy
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any
from urllib.parse import quote

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings

from benchmarks.common.reporting import print_machine, print_table
from benchmarks.hunts.mutated_uploads import ALLOWED_SECONDS, new_installation
from benchmarks.hunts.upload_kinds import make_objects

METHODS = ("get", "post", "put", "patch", "delete")


def make_keys(user: Any) -> dict[str, str]:
    """Make objects for one person; return what stands for every parameter of a path.

    ``model_id`` and ``image_id`` mean different things on different paths: see :func:`key_of`.
    """
    from django.utils import timezone

    from tests.webapp.factories.placed import placed_cohort, publish
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
    from webapp.segmentation.models import Segmenter
    from webapp.surveys.models import Participant
    from webapp.webhooks.models import Webhook

    own = {"organisation": user.organisation}
    known = make_objects(user)
    model = LearnedModel.objects.get(name="Model")
    placement = placed_cohort(user)
    publish(placement)
    students = list(placement.cohort.students.all()[:2])
    buildings = BuildingList.everything.create(**own, name="Pairs", is_private=True)
    paired = Placement.objects.create(
        **own, name="Pairs", cohort=placement.cohort, model=model, revision=1, is_pairs=True,
        buildings=buildings,
    )  # fmt: skip
    room = buildings.rooms.create(hall="Pair", name="1", capacity=2)
    for bed, student in enumerate(students, start=1):
        paired.places.create(student=student, number=student.number, room=room, bed=bed)
    pair = paired.pairs.create(
        room=room, first=students[0], second=students[1], score=1.0,
        probability=0.1, multiple=1.0, doubt=1.0, allowed=1.0, doubt_share=0.1,
        first_number=students[0].number, second_number=students[1].number,
    )  # fmt: skip
    wish = RoommateRequest.objects.create(
        cohort=placement.cohort, student=students[0], written="x", source="f"
    )
    event = PlacementEvent.objects.create(placement=placement, before=[], after=[])
    webhook = Webhook.objects.create(
        **own, url="https://127.0.0.1/", events=["job.failed"], nonce="n"
    )
    job = Job.objects.create(**own, created_by=user, kind="roommates.learn", title="J", seed=1)
    letter = template_save(user=user, template=None, name="Letter", subject="S", text="[hall]")
    roster = shape_save(user=user, name="Roster", columns=[("id", ""), ("hall", "")], is_exact=True)
    writer = Participant.objects.create(questionnaire_id=known["questionnaire"], identifier="N1")
    text = writer.written_answers.create(questionnaire_id=known["questionnaire"], key="note")
    now = timezone.now()
    term = Term.objects.create(
        **own, name="Autumn", starts_on=date(2026, 8, 20), ends_on=date(2026, 12, 18)
    )
    found = {
        "roster_id": roster.pk,
        "text_id": text.pk,
        "answers_id": writer.pk,
        "student": students[0].label,
        "placement_id": placement.pk,
        "buildings_id": placement.buildings_id,
        "room_id": placement.buildings.rooms.first().pk,
        "request_id": wish.pk,
        "event_id": event.pk,
        "change_id": ProposedChange.objects.create(placement=placement, price=1.0).pk,
        "draft_id": ProposedChange.objects.create(
            placement=placement, is_by_hand=True, owner=user
        ).pk,
        "number": PlacementVersion.objects.create(
            placement=placement, number=1, origin="run"
        ).number,
        "letter_id": letter.pk,
        "webhook_id": webhook.pk,
        "delivery_id": webhook.deliveries.create(event="job.failed", body="{}").pk,
        "term_id": term.pk,
        "meaning_id": NeedMeaning.objects.create(**own, need="Ramp", key="ramp").pk,
        "round_id": ChoiceRound.objects.create(
            placement=placement,
            name="First",
            opens_at=now,
            closes_at=now + timedelta(days=1),
            minutes=30,
            seed=1,
        ).pk,
        "set_id": known["painted"],
        "file_id": known["image"],
        "prediction_id": known["prediction"],
        "predicted": known["predicted"],
        "job_id": job.pk,
        "cohort_id": placement.cohort_id,
        "proposal_id": paired.pk,
        "pair_id": pair.pk,
        "questionnaire_id": known["questionnaire"],
        "image_model": Segmenter.objects.first().pk,
        "roommate_model": model.pk,
    }
    return {name: str(key) for name, key in found.items()}


def key_of(name: str, path: str, keys: dict[str, str]) -> str | None:
    """Return the key that a parameter of a path means, or None if it is no key."""
    if name == "model_id":
        return keys["image_model" if "image-models" in path else "roommate_model"]
    if name == "image_id":
        return keys["predicted" if path.startswith("/predictions") else "file_id"]
    return keys.get(name)


def with_keys(document: dict[str, Any], keys: dict[str, str]) -> dict[str, Any]:
    """Return the document with real ids as the only values of parameters and of ids in bodies."""
    document = copy.deepcopy(document)
    for path, operations in document["paths"].items():
        for entry in [operations, *(operations[m] for m in METHODS if m in operations)]:
            for parameter in entry.get("parameters", ()):
                key = key_of(parameter["name"], path, keys) if parameter["in"] == "path" else None
                if key is not None:
                    is_number = parameter["schema"].get("type") == "integer"
                    parameter["schema"] = {"enum": [int(key) if is_number else key]}
    uuids = sorted({key for key in keys.values() if len(key) == 36})
    for operations in document["paths"].values():
        for method in METHODS:
            _hang_in(operations.get(method, {}).get("requestBody"), uuids)
    _hang_in(document["components"], uuids)
    return document


def _hang_in(value: Any, uuids: list[str]) -> None:
    if isinstance(value, dict):
        if value.get("format") == "uuid":
            value.clear()
            value["enum"] = uuids
        for item in value.values():
            _hang_in(item, uuids)
    elif isinstance(value, list):
        for item in value:
            _hang_in(item, uuids)


def try_document(
    secret: str, document: dict[str, Any], *, examples: int, first_seed: int
) -> tuple[list[str], Counter[tuple[str, int]]]:
    """Send ``examples`` requests to every endpoint; return findings and answers by method."""
    from django.db import transaction
    from django.test import Client

    client = Client(raise_request_exception=False, headers={"authorization": f"Bearer {secret}"})
    findings: list[str] = []
    statuses: Counter[tuple[str, int]] = Counter()
    operations = [
        found.ok() for found in schemathesis.openapi.from_dict(document).get_all_operations()
    ]
    # Rows that are removed come back when a request is undone, their files do not: these go last.
    for operation in sorted(operations, key=lambda one: one.method.lower() == "delete"):

        def ask(case: Any) -> None:
            began = time.perf_counter()
            with transaction.atomic():
                status = _status(client, case)
                transaction.set_rollback(True)
            statuses[case.method.upper(), status] += 1
            seconds = time.perf_counter() - began
            if status >= 500 or seconds > ALLOWED_SECONDS:
                findings.append(f"{status} in {seconds:.1f} s: {case.as_curl_command()[:500]}")

        _drawn(ask, operation.as_strategy(), examples, first_seed)()
    return findings, statuses


def _drawn(ask: Callable[[Any], None], strategy: Any, examples: int, number: int) -> Any:
    """Return a function that asks for so many cases, the same ones for the same number."""
    limits = settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    return seed(number)(limits(given(strategy)(ask)))


def _status(client: Any, case: Any) -> int:
    """Send one case; a body of a form is sent as one, anything else as JSON."""
    from webapp.api.openapi import PREFIX

    path = case.path
    for name, value in (case.path_parameters or {}).items():
        path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
    options: dict[str, Any] = {"query_params": dict(case.query or {})}
    prepared = case.as_transport_kwargs(base_url="http://testserver")
    if case.media_type and not isinstance(case.body, schemathesis.core.NotSet):
        body, kind = _body(prepared)
        options |= {"data": body, "content_type": kind}
    response = client.generic(case.method.upper(), PREFIX + path, **options)
    try:
        if getattr(response, "streaming", False):
            b"".join(response.streaming_content)
    except Exception:
        return 599
    return int(response.status_code)


def _body(prepared: dict[str, Any]) -> tuple[bytes, str]:
    import requests

    wanted = {name: prepared.get(name) for name in ("data", "json", "files")}
    request = requests.Request("POST", "http://testserver/", **wanted).prepare()
    body = request.body or b""
    kind = request.headers.get("Content-Type", "application/json")
    return body if isinstance(body, bytes) else body.encode(), kind


def main() -> int:
    """Run the long form; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=200, help="of every endpoint")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print_machine()
    os.environ["API_CALLS_A_MINUTE"] = "1000000"
    with tempfile.TemporaryDirectory() as folder:
        user = new_installation(folder)
        user.role = "administrator"
        user.save(update_fields=["role"])
        from webapp.api.openapi import openapi_document
        from webapp.api.services import token_create

        document = with_keys(openapi_document(), make_keys(user))
        _, secret = token_create(user=user, name="schema", may_change=True, days=1)
        findings, statuses = try_document(
            secret, document, examples=options.examples, first_seed=options.seed
        )
    seen = sorted({status for _, status in statuses})
    rows = [
        [method, *(statuses[method, status] for status in seen)]
        for method in sorted({method for method, _ in statuses})
    ]
    print_table("Answers by method and status", ["method", *map(str, seen)], rows)
    print(f"{statuses.total()} requests, {len(findings)} findings")
    for finding in findings[:50]:
        print(finding)
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
