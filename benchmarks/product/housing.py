"""Server time of every housing page and act at 2,500 students and some 1,400 rooms.

    python -m benchmarks product housing [--repeats N] [--only letters changes]
    bin/with-postgres .venv/bin/python -m benchmarks product housing

Fills a database of its own (SQLite in a temporary folder, or what DATABASE_URL names) from files
of ``housing_university`` by the services that uploads go through, seats everybody in the order of
the file, and asks every page and does every act in process. Prints CPU milliseconds of the process:
the aim is 200 for each page and each decision. Uploads, files and acts upon everybody are printed
without an aim. The placement is not optimised, which no page's time depends on; four of them stand
side by side, one is published and has late changes, checks and letters.
"""

import argparse
import logging
import os
import re
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from benchmarks.common.reporting import print_machine, print_table
from benchmarks.product.housing_university import FULL, Size, write_year
from tests.patience import wait_for

TARGET_MS = 200
NAMES_OF_NOBODY = 40  # requests that name nobody for sure
SCENARIOS = 4  # placements side by side, the most that the page shows
VERSIONS = 3  # of each: one in force, two more in its history


def main() -> None:
    """Fill, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="pages whose names hold a word")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="bh-housing-") as folder:
        os.environ |= {
            "BETHE_HALL_INSTANCE": folder,
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
            "SECURE_COOKIES": "0",
            "ALLOWED_HOSTS": "testserver",
        }
        import django
        from django.core.management import call_command

        django.setup()
        from webapp.collector import freeze_loaded_objects

        call_command("migrate", verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        print_machine()
        keys = fill(Path(folder))
        logging.disable(logging.INFO)  # a line a request would hide the table
        freeze_loaded_objects()
        times = measure(keys, options.repeats, options.only)
        heavy = {} if options.only else measure_heavy(keys)
    rows = [
        [name, f"{ms:.0f}", str(queries), "yes" if ms <= TARGET_MS else "NO"]
        for name, (ms, queries) in times.items()
    ]
    header = ["page", "ms", "queries", f"within {TARGET_MS}"]
    print_table("CPU of one page or act, 2,500 students", header, rows)
    if heavy:
        rows = [[name, f"{ms:.0f}", str(queries), ""] for name, (ms, queries) in heavy.items()]
        print_table("Uploads, files and acts upon everybody", [*header[:3], ""], rows)
    sys.exit(0 if max(ms for ms, _ in times.values()) <= TARGET_MS else 1)


def fill(folder: Path, size: Size = FULL, name: str = "housing") -> dict[str, Any]:
    """Make people, cohort, rooms, requests, a model and placements; return what was made."""
    from benchmarks.product.web_load import learned_year
    from engine import question_weights
    from webapp.accounts.models import Organisation, User
    from webapp.cohorts.models import Cohort
    from webapp.cohorts.services.drafts import draft_create
    from webapp.cohorts.services.imports import draft_import
    from webapp.housing.models import RoommateRequest
    from webapp.housing.rules import PlacementRules
    from webapp.housing.services.buildings import building_draft_create, building_draft_import
    from webapp.housing.services.publication import placement_publish
    from webapp.housing.services.requests import requests_import
    from webapp.matching.models import LearnedModel
    from webapp.matching.results import learning_figures, weight_rows

    year = write_year(folder / name, size)
    organisation = Organisation.objects.create(name=f"Benchmark of {name}")
    user = User.objects.create_user(
        username=name, password=None, organisation=organisation, role="administrator"
    )

    def upload(path: Path) -> dict[str, Any]:
        data = path.read_bytes()
        return {"filename": path.name, "size": len(data), "read": lambda: data}

    draft = draft_create(user=user, **upload(year.survey))
    cohort = draft_import(user=user, draft=draft, name="First-years", version=draft.version)
    rooms = building_draft_create(user=user, **upload(year.rooms))
    buildings = building_draft_import(user=user, draft=rooms, name="Campus")
    requests_import(user=user, cohort=cohort, **upload(year.requests))
    asked = cohort.students.values_list("pk", flat=True)[:NAMES_OF_NOBODY]
    RoommateRequest.objects.bulk_create(
        RoommateRequest(cohort=cohort, student_id=key, written=f"friend no. {key} of mine")
        for key in asked
    )
    past, trained = learned_year()
    model = LearnedModel.objects.create(
        organisation=organisation,
        created_by=user,
        name="Returning",
        questions=[
            {"name": q.name, "kind": q.kind, "levels": list(q.levels)}
            for q in past.survey.questionnaire.questions
        ],
        sources=[],
        options={},
        learned_at=cohort.created_at,
        figures=learning_figures(trained, 1e-4),
        weights=weight_rows(question_weights(trained.model)),
    )
    trained.model.save(model.path)
    cohort = Cohort.objects.get(pk=cohort.pk)
    rules = PlacementRules(designation="Gender", same=("Gender",), needs=(), mutual="wish")
    placement, *_ = [seat(user, cohort, buildings, model, rules) for _ in range(SCENARIOS)]
    beside = _beside(user, placement, year)
    placement.refresh_from_db()
    placement_publish(user=user, placement=placement, version=placement.version)
    return {
        "user": user,
        "placement": placement,
        "cohort": cohort,
        "buildings": buildings,
        "year": year,
        **beside,
    }


def _beside(user: Any, placement: Any, year: Any) -> dict[str, Any]:
    """Make what stands beside a placement: addresses, a letter, a check, late changes, a draft."""
    from webapp.common.events import EVENTS
    from webapp.housing.services.buildings import building_draft_create
    from webapp.housing.services.decisions import students_withdraw
    from webapp.jobs.models import ACTIVE_STATES, Job
    from webapp.jobs.runner import run_job
    from webapp.letters.services.addresses import addresses_import
    from webapp.letters.services.templates import FIRST_SUBJECT, FIRST_TEXT, template_save
    from webapp.reports import figures
    from webapp.reports.services import check_start, shape_save
    from webapp.webhooks.models import Webhook

    data = year.addresses.read_bytes()
    addresses_import(
        user=user, cohort=placement.cohort, filename="a.csv", size=len(data), read=lambda: data
    )
    letter = template_save(
        user=user, template=None, name="Rooms", subject=FIRST_SUBJECT, text=FIRST_TEXT
    )
    shape = shape_save(user=user, name="Roster", columns=[("id", ""), ("room", "")], is_exact=True)
    check = check_start(user=user, placement=placement)
    with mock.patch.multiple(figures, DOUBT_SECONDS=2.0, DRIFT_SECONDS=2.0):
        run_job(check.job_id, watched=False)
    over = Job.objects.filter(pk=check.job_id).exclude(state__in=ACTIVE_STATES)
    job = wait_for(lambda: over.all().first())  # a worker of a running product may have been first
    assert job.state == "succeeded", job.error
    others = placement.places.filter(room__isnull=False).exclude(
        student__original_id__in=year.withdrawn
    )
    shared = others.filter(room__capacity=2).order_by("number")
    gone = list(shared.values_list("number", flat=True)[: len(year.withdrawn)])
    students_withdraw(user=user, placement=placement, numbers=gone, version=placement.version)
    propose_swaps(placement)
    webhook = Webhook.objects.create(
        organisation=user.organisation,
        url="https://127.0.0.1/",
        events=[*EVENTS],
        nonce="n",
        is_paused=True,
    )
    rooms_file = year.rooms.read_bytes()
    draft = building_draft_create(
        user=user, filename="r.csv", size=len(rooms_file), read=lambda: rooms_file
    )
    return {"letter": letter, "shape": shape, "webhook": webhook, "draft": draft}


def propose_swaps(placement: Any) -> None:
    """Propose late changes in which twenty pairs of students of one designation swap rooms."""
    from webapp.housing.models import ProposedChange

    placement.refresh_from_db()
    ProposedChange.objects.filter(placement=placement, is_by_hand=False).delete()
    doubles = placement.places.filter(room__capacity=2, room__designation="F", has_left=False)
    asked = placement.cohort.requests.values_list("student_id", "target_id")
    bound = {key for pair in asked for key in pair}
    places = [place for place in doubles if place.student_id not in bound][:40]
    swapped = [
        [a.student_id, a.room_id, b.room_id]
        for one, other in zip(places[::2], places[1::2], strict=False)
        for a, b in ((one, other), (other, one))
    ]
    rooms = dict(placement.places.values_list("student_id", "room_id"))
    rooms |= {student: room for student, _, room in swapped}
    ProposedChange.objects.create(
        placement=placement,
        price=0.5,
        version=placement.version,
        is_ready=True,
        rows=swapped,
        rooms={str(student): room for student, room in rooms.items()},
        curve=[[price, 4 + k, 100.0 - k, 0] for k, price in enumerate((0.1, 0.5, 1.0))],
    )


def seat(user: Any, cohort: Any, buildings: Any, model: Any, rules: Any) -> Any:
    """Make a placement whose rooms are filled in the order of the file, by the rules."""
    from webapp.housing.models import Placement
    from webapp.housing.services.versions import computed_version, version_store

    placement = Placement.objects.create(
        organisation=user.organisation,
        created_by=user,
        name="First-years",
        cohort=cohort,
        buildings=buildings,
        model=model,
        rules=rules.to_json(),
    )
    waiting: dict[str, list[int]] = defaultdict(list)
    for student in cohort.students.order_by("-number"):
        waiting[student.attributes["Gender"]].append(student.pk)
    chosen: dict[int, int | None] = {}
    for room in buildings.rooms.filter(state="open").order_by("-capacity"):
        pool = waiting[room.designation or max(waiting, key=lambda g: len(waiting[g]))]
        for _ in range(min(room.capacity, len(pool))):
            chosen[pool.pop()] = room.pk
    chosen |= {key: None for pool in waiting.values() for key in pool}
    for _ in range(VERSIONS):
        version = computed_version(
            placement=placement,
            job=None,
            user=user,
            rules=placement.rules,
            rooms=chosen,
            doubts=dict.fromkeys(chosen, 0.6),
            figures={"relative_gap": 0.01, "score": 1.0, "conflicts": [], "has_converged": True},
            outcomes=_figures_of(placement),
        )
        version_store(version)
        swap_some(chosen)
    return Placement.objects.get(pk=placement.pk)


def _figures_of(placement: Any) -> dict[str, Any]:
    from webapp.housing.models import Placement
    from webapp.housing.selectors.outcomes import outcome
    from webapp.housing.selectors.placements import PlacementRooms

    return {**outcome(PlacementRooms(Placement.objects.get(pk=placement.pk))), "moved": 0}


def swap_some(rooms: dict[int, int | None]) -> None:
    """Let every tenth student swap rooms with the next one; what cannot be is left out."""
    keys = [key for key, room in rooms.items() if room is not None]
    for one, other in zip(keys[::20], keys[1::20], strict=False):
        rooms[one], rooms[other] = rooms[other], rooms[one]


def pages_of(keys: dict[str, Any]) -> dict[str, str]:
    """Return the address of every page of housing, letters, reports and webhooks by its name."""
    placement, cohort, letter = keys["placement"], keys["cohort"], keys["letter"]
    base, buildings = f"/placements/{placement.pk}/", keys["buildings"]
    room = placement.places.filter(room__capacity=4).first().room_id
    letters = f"{base}letters/?letter={letter.pk}"
    last = placement.places.filter(room__isnull=False).order_by("number").last().number
    return {
        "home": "/",
        "placements": "/placements/",
        "rooms of one hall": base,
        "rooms of all halls": f"{base}?hall=all",
        "rooms undecided, all halls": f"{base}?hall=all&look=undecided",
        "120 rooms at once": f"{base}?hall=Alder&designation=F",
        "a whole floor": f"{base}?hall=Alder&whole=Alder|1",
        "table": f"{base}?view=table&hall=all&sort=score",
        "students": f"{base}?view=students&hall=all&sort=doubt",
        "search for a student": f"{base}?q=1042",
        "page with a room open": f"{base}?room={room}",
        "rules": f"{base}rules/",
        "history": f"{base}history/",
        "a version against now": f"{base}versions/{VERSIONS}/",
        "late changes": f"{base}changes/",
        "scenarios, four": f"/cohorts/{cohort.pk}/scenarios/",
        "requests": f"/cohorts/{cohort.pk}/requests/",
        "requests, all mutual": f"/cohorts/{cohort.pk}/requests/?show=mutual",
        "requests by their cost": f"/cohorts/{cohort.pk}/requests/?show=one-sided&sort=cost",
        "asking about requests": f"/cohorts/{cohort.pk}/requests/ask/",
        "add students": f"/cohorts/{cohort.pk}/add/",
        "cohort's students": f"/cohorts/{cohort.pk}/?tab=students",
        "building lists": "/buildings/",
        "buildings": f"/buildings/{buildings.pk}/",
        "one room by hand": f"/buildings/{buildings.pk}/rooms/{room}/",
        "building draft": f"/buildings/drafts/{keys['draft'].pk}/",
        "new placement": f"/placements/new/?cohort={cohort.pk}",
        "letters of a placement": letters,
        "letters, another student": f"{letters}&student=S-{last}",
        "letters": "/letters/",
        "a letter": f"/letters/{letter.pk}/",
        "checks: doubt": f"{base}checks/",
        "checks: veto": f"{base}checks/?tab=veto",
        "checks: groups": f"{base}checks/?tab=parity",
        "checks: drift": f"{base}checks/?tab=drift",
        "report by hall": f"{base}report/",
        "rosters": f"{base}rosters/",
        "roster, CSV": f"{base}export.csv",
        "webhooks": "/webhooks/",
        "a webhook": f"/webhooks/{keys['webhook'].pk}/",
    }


def measure(
    keys: dict[str, Any], repeats: int, only: Sequence[str] | None = None
) -> dict[str, tuple[float, int]]:
    """Return the median CPU milliseconds of every page and act, and its number of queries.

    With ``only``, of the pages whose names hold one of these words.
    """
    client = _client(keys)
    placement = keys["placement"]
    base, htmx = f"/placements/{placement.pk}/", {"hx-request": "true", "hx-target": "drawer"}
    room = placement.places.filter(room__capacity=4).first().room_id
    times = {
        name: _median(lambda path=path: _ok(client.get(path)), repeats)
        for name, path in pages_of(keys).items()
        if not only or any(word in name for word in only)
    }
    if only:
        return times
    drawer = f"{base}?room={room}"
    times["drawer of a quad"] = _median(lambda: _ok(client.get(drawer, headers=htmx)), repeats)
    return times | _acts(client, placement, base, room, repeats)


def _client(keys: dict[str, Any]) -> Any:
    from django.test import Client

    client = Client()
    client.force_login(keys["user"], backend="django.contrib.auth.backends.ModelBackend")
    return client


def measure_heavy(keys: dict[str, Any]) -> dict[str, tuple[float, int]]:
    """Return what uploads, files and acts upon everybody take, each done once."""
    client, placement, year = _client(keys), keys["placement"], keys["year"]
    base, cohort = f"/placements/{placement.pk}/", keys["cohort"]
    letter = keys["letter"].pk

    def send(address: str, **data: Any) -> None:
        placement.refresh_from_db()
        sent = {"version": placement.version, "price": "0.5", **data}
        _done(client.post(address, sent))

    def upload(address: str, path: Path, **data: Any) -> None:
        with path.open("rb") as file:
            answer = client.post(address, {"file": file, **data})
        _done(answer)
        if "/files/" in answer.url:  # the preview, which is imported as it stands
            _done(client.post(f"{answer.url}confirm/", {"version": 1}))

    def accept_all() -> None:
        placement.refresh_from_db()
        sent = {"version": placement.version, "act": "accept", "scope": "matching"}
        sent["back"] = "hall=all"
        question = client.post(f"{base}decide/", sent).content.decode()
        for name in ("count", "confirmed"):
            (sent[name],) = set(re.findall(rf'name="{name}" value="(\d+)"', question))
        _done(client.post(f"{base}decide/", sent))

    files = {
        "roster, XLSX": f"{base}export.xlsx",
        "rooms, CSV": f"{base}export.csv?by=room",
        "roster of one's own": f"{base}rosters/{keys['shape'].pk}.csv",
        "report, XLSX": f"{base}report.xlsx",
        "mail merge, CSV": f"{base}letters/file/?letter={letter}",
        "mail merge, XLSX": f"{base}letters/file/?letter={letter}&shape=xlsx",
    }
    times = {
        name: _median(lambda path=path: _ok(client.get(path)), 1) for name, path in files.items()
    }
    propose_swaps(placement)
    change = placement.proposed_changes.get(is_by_hand=False).pk
    people = placement.places.filter(room__isnull=False).count

    def import_requests() -> None:
        cohort.requests.all().delete()  # a file of known requests imports nothing
        upload(f"/cohorts/{cohort.pk}/requests/import/requests/", year.requests)

    acts: dict[str, Callable[[], None]] = {
        "keep late changes of 40": lambda: send(f"{base}changes/keep/", change=change),
        "draft 14 withdrawals": lambda: send(
            f"{base}changes/withdraw/", students="\n".join(year.withdrawn)
        ),
        "begin late changes": lambda: send(f"{base}changes/propose/", price="0.5"),
        "discard them": lambda: send(f"{base}changes/discard/"),
        "accept all": accept_all,
        "send 2,500 letters": lambda: send(f"{base}letters/send/", letter=letter),
        "stop them": lambda: send(f"{base}letters/stop/", letter=letter),
        "2,500 addresses": lambda: upload(
            f"{base}letters/addresses/", year.addresses, letter=letter
        ),
        "420 requests": import_requests,
        "1,412 rooms": lambda: upload("/buildings/new/", year.rooms),
        "import them": lambda: send(f"/buildings/drafts/{keys['draft'].pk}/import/", name="B"),
        "9 latecomers": lambda: upload(f"/cohorts/{cohort.pk}/add/", year.latecomers),
        "withdraw the publication": lambda: send(
            f"{base}publish/", action="withdraw", people=people()
        ),
        "publish": lambda: send(f"{base}publish/"),
    }
    return times | {name: _median(step, 1) for name, step in acts.items()}


def _acts(
    client: Any, placement: Any, base: str, room: int, repeats: int
) -> dict[str, tuple[float, int]]:
    def act(**data: Any) -> None:
        placement.refresh_from_db()
        sent = {"version": placement.version, "back": f"room={room}", **data}
        _ok(client.post(f"{base}decide/", sent, headers={"hx-request": "true"}))

    def undo() -> None:
        event = placement.events.filter(kind="locked", undone_at=None).first()
        _ok(client.post(f"{base}undo/{event.pk}/", headers={"hx-request": "true"}))

    people = list(placement.places.filter(room__designation="F", room__capacity=2)[:40])
    a = people[0]
    b = next(p for p in people if p.room_id != a.room_id)
    acts: dict[str, Callable[[], None]] = {
        "accept a room": lambda: act(act="accept", room=room),
        "lock a room": lambda: act(act="lock", room=room),
        "release a room": lambda: act(act="release", room=room),
        "draft a swap": lambda: act(act="swap", student=[a.label, b.label]),
        "draft an empty room": lambda: act(act="empty", room=room),
        "undo": undo,
    }
    return {name: _median(step, 1 if name in _ONCE else repeats) for name, step in acts.items()}


_ONCE = ("lock a room", "release a room", "draft an empty room", "undo")


def _ok(response: Any, code: int = 200) -> None:
    assert response.status_code == code, response.status_code
    b"".join(response) if response.streaming else response.content


def _done(response: Any) -> None:
    from django.contrib.messages import ERROR, get_messages

    assert response.status_code == 302, response.status_code
    said = [str(m) for m in get_messages(response.wsgi_request) if m.level == ERROR]
    assert not said, said


def _median(step: Callable[[], None], repeats: int) -> tuple[float, int]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    found, asked = [], 0
    for k in range(repeats + (repeats > 1)):
        begun = time.process_time()
        if k or repeats == 1:  # the first one warms what a process keeps, and counts
            step()
            found.append(1000 * (time.process_time() - begun))
        else:
            with CaptureQueriesContext(connection) as queries:
                step()
            asked = len(queries)
    return statistics.median(found), asked


if __name__ == "__main__":
    main()
