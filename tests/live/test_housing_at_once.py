"""Two staff decide about rooms at once, and a worker is killed while it places: the beds hold."""

import contextlib
import json
import os
import random
import re
import signal
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from tests.live.product import Product
from tests.live.test_job_life_cycle import is_over, wait

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc"),
]

TOKEN = "b" * 32
ACTS = 25  # of each person
_PREPARE = """
import json
import numpy as np
from django.test import Client
from django.utils import timezone
from engine import simulate_university, train_roommates
from webapp.accounts.models import User
from webapp.cohorts.demonstration import survey_as_csv
from webapp.cohorts.services.imports import draft_import
from webapp.cohorts.services.drafts import draft_create
from webapp.housing.models import BuildingList, Room
from webapp.housing.rules import PlacementRules
from webapp.housing.services.placements import placement_create
from webapp.matching.models import LearnedModel
bob = User.objects.get(username="bob")
owned = {"organisation": bob.organisation, "created_by": bob}
year = simulate_university(60, 1, rng=np.random.default_rng(3), by_gender=True).cohorts[0]
data = survey_as_csv(year.survey)
draft = draft_create(user=bob, filename="a.csv", size=len(data), read=lambda: data)
cohort = draft_import(user=bob, draft=draft, name="At once", version=draft.version)
model = LearnedModel.objects.create(
    name="At once", questions=cohort.questions, learned_at=timezone.now(), **owned
)
train_roommates([(year.survey, year.pairs)], ridge=10.0).model.save(model.path)
halls = BuildingList.objects.create(name="At once", **owned)
for k in range(40):
    gender = "FM"[k % 2] if k < 34 else ""
    Room.objects.create(buildings=halls, hall="Alder", name=str(100 + k), position=k,
                        capacity=2 if k < 34 else 1, designation=gender)
rules = PlacementRules(designation="Gender", same=("Gender",))
made = placement_create(
    user=bob, name="At once", cohort=cohort, buildings=halls, model=model, rules=rules
)
sessions = []
for name in ("bob", "carol"):
    client = Client()
    client.force_login(
        User.objects.get(username=name), backend="django.contrib.auth.backends.ModelBackend"
    )
    sessions.append(client.cookies["sessionid"].value)
print(json.dumps({"placement": str(made.pk), "job": str(made.job_id), "sessions": sessions}))
"""
_AGAIN = """
from webapp.accounts.models import User
from webapp.housing.models import Placement
from webapp.housing.services.placements import placement_compute
bob = User.objects.get(username="bob")
print(placement_compute(user=bob, placement=Placement.objects.get(pk="{pk}")).job_id)
"""
_CHECK = """
import json
from collections import Counter
from webapp.housing.models import Placement
from webapp.housing.rules import PlacementRules, broken_rule
placement = Placement.objects.get(pk="{pk}")
places = list(placement.places.select_related("room", "student"))
rules = PlacementRules.from_json(placement.rules)
broken = [
    broken_rule(room, [p.student for p in places if p.room_id == room.pk], rules)
    for room in placement.buildings.rooms.all()
]
print(json.dumps({{
    "students": len(places),
    "different": len({{p.student_id for p in places}}),
    "fullest": max(Counter((p.room_id, p.bed) for p in places if p.room_id).values()),
    "broken": [sentence for sentence in broken if sentence],
    "version": placement.version,
    "events": placement.events.count(),
}}))
"""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: object, **kwargs: object) -> None:
        return None


class Staff:
    """Somebody at the page of a placement, who reads it and then decides, as browsers do."""

    def __init__(self, product: Product, made: dict, session: str, seed: int) -> None:
        self.base = f"{product.url}/placements/{made['placement']}/"
        self.cookie = f"sessionid={session}; csrftoken={TOKEN}"
        self.random = random.Random(seed)
        self.opener = urllib.request.build_opener(_NoRedirect)

    def decide(self) -> None:
        for _ in range(ACTS):
            page = self._open(f"{self.base}?view=students").decode()
            version = re.search(r'name="version" value="(\d+)"', page)
            students = sorted(set(re.findall(r"\bS-\d+", page)))
            rooms = re.findall(r'data-room="(\d+)"', page)
            undo = re.findall(rf"{urllib.parse.urlsplit(self.base).path}undo/\d+/", page)
            if undo and self.random.random() < 0.2:
                self._post(undo[-1].rsplit("placements", 1)[1].split("/", 2)[2], {})
                continue
            data = self._act(students, rooms)
            assert version is not None
            self._post("decide/", {"version": version[1], **data})

    def _act(self, students: list[str], rooms: list[str]) -> dict[str, object]:
        kind = self.random.choice(["swap", "swap", "move", "lock", "release", "empty", "accept"])
        if kind == "swap":
            return {"act": "swap", "student": self.random.sample(students, 2)}
        if kind == "move":
            to = f"Alder {100 + self.random.randrange(40)}"
            return {"act": "move", "student": self.random.choice(students), "to": to}
        return {"act": kind, "room": self.random.choice(rooms)}

    def _post(self, path: str, data: dict[str, object]) -> None:
        sent = urllib.parse.urlencode({**data, "csrfmiddlewaretoken": TOKEN}, doseq=True)
        with contextlib.suppress(urllib.error.HTTPError):
            self._open(self.base + path, sent.encode())

    def _open(self, address: str, data: bytes | None = None) -> bytes:
        request = urllib.request.Request(address, data=data, headers={"Cookie": self.cookie})
        with self.opener.open(request, timeout=60) as answer:
            return answer.read()


def test_two_at_once_and_a_killed_worker_break_nothing(product: Product) -> None:
    made = json.loads(product.run(_PREPARE))
    job = wait(product, made["job"], is_over)
    assert job["state"] == "succeeded", product.logs()
    people = [Staff(product, made, session, k) for k, session in enumerate(made["sessions"])]
    threads = [threading.Thread(target=person.decide) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=240)
        assert not thread.is_alive()
    found = json.loads(product.run(_CHECK.format(pk=made["placement"])))
    assert (found["students"], found["different"], found["fullest"]) == (60, 60, 1)
    assert not found["broken"]
    assert found["events"] > ACTS // 3  # they did decide, and were refused when second
    assert found["version"] == 1 + found["events"]  # nothing was overwritten

    pk = product.run(_AGAIN.format(pk=made["placement"]))
    job = wait(product, pk, lambda row: row["state"] == "running" or is_over(row))
    if job["state"] == "running":
        os.kill(int(job["worker"].split(":")[-2]), signal.SIGKILL)
    people[0]._post("decide/", {"act": "empty", "room": "1", "version": found["version"]})
    job = wait(product, pk, is_over)
    assert job["state"] == "succeeded", product.logs()
    found = json.loads(product.run(_CHECK.format(pk=made["placement"])))
    assert (found["students"], found["different"], found["fullest"]) == (60, 60, 1)
    assert not found["broken"]
