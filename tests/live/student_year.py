"""A year of a questionnaire on a running product: invited, reminded, answered, placed in rooms.

Staff act through the services, as their pages do; students only through HTTP. The live test runs a
short year, ``benchmarks.product.students`` a whole one.
"""

import contextlib
import json
import os
import random
import re
import signal
import threading
import time
from collections.abc import Sequence
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

from tests.live.crowd import Outcome, Student, make_students, run_crowd
from tests.live.product import Product, children_of

_OPEN = """
import sys
from datetime import timedelta
from django.utils import timezone
from webapp.accounts.models import User
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open
from webapp.surveys.services.invitations import invitations_add, mails_queue
bob = User.objects.get(username="bob")
made = questionnaire_create(user=bob, title="Housing 2027", form="housing")
until = timezone.now() + timedelta(days=1)
questionnaire_open(user=bob, questionnaire=made, closes_at=until)
people = "\\n".join("n%05d@northfield.example" % k for k in range({invited}))
invitations_add(user=bob, questionnaire=made, text=people)
common = dict(user=bob, questionnaire=made, base="http://localhost")
mails_queue(**common, is_reminder=False, texts={"en": "Hello [link]"})
print(made.code)
"""
_REMIND = """
from webapp.accounts.models import User
from webapp.surveys.models import Questionnaire
from webapp.surveys.services.invitations import mails_queue
bob, made = User.objects.get(username="bob"), Questionnaire.objects.get()
common = dict(user=bob, questionnaire=made, base="http://localhost")
print(mails_queue(**common, is_reminder=True, texts={"en": "Again [link]"}))
"""
_PLACE = """
import json
from contextlib import suppress
from webapp.accounts.models import User
from webapp.housing.models import Room
from webapp.housing.rules import PlacementRules
from webapp.housing.services.buildings import building_list_create
from webapp.housing.services.placements import placement_create
from webapp.matching.services.set_models import VALUES, model_set
from webapp.surveys.models import Questionnaire
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.services.clashes import answers_choose_all
from webapp.surveys.services.cohorts import cohort_from_answers
bob, made = User.objects.get(username="bob"), Questionnaire.objects.get()
with suppress(QuestionnaireError):  # nobody answered twice
    answers_choose_all(user=bob, questionnaire=made, which="latest")
cohort = cohort_from_answers(user=bob, questionnaire=made, name="First-years 2027")
matters = {{q["name"]: max(VALUES) for q in cohort.questions}}
model = model_set(user=bob, name="By hand", cohort=cohort, importance=matters)
house = building_list_create(user=bob, name="Campus")
count = -(-cohort.n_students // 2)
Room.objects.bulk_create(
    Room(buildings=house, hall="Elm", name=str(k), capacity=2, position=k) for k in range(count)
)
placed = placement_create(user=bob, name="Rooms", cohort=cohort, buildings=house, model=model,
                          rules=PlacementRules())
print(json.dumps([cohort.n_students, str(placed.pk)]))
"""
_BY_FILE = """
import json, time
import numpy as np
from tests.webapp.surveys.same_year import as_qualtrics, import_file, scores_of
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.surveys.models import Questionnaire
from webapp.surveys.questions import questions_of
bob, made = User.objects.get(username="bob"), Questionnaire.objects.get()
asked = Cohort.objects.get(name="First-years 2027")
questions = questions_of(made.content)
data = as_qualtrics(questions, made.participants.all())
Cohort.objects.filter(name="By file").delete()  # of a run that was cut off
began = time.monotonic()
read = import_file(bob, data)
seconds = time.monotonic() - began
ids = sorted(asked.students.values_list("original_id", "answers"), key=lambda row: row[1])
order = [key for key, _ in ids][: len(ids) // 2 * 2]  # who answers alike shares a room
one, other = scores_of(asked, order), scores_of(read, order)
print(json.dumps([read.n_students, seconds, float(abs(one - other).max()), float(one.std())]))
"""
TARGETS = ("web", "a web process", "a web process", "worker", "broker", "sweep")
_ON_THEIR_WAY = "SELECT count(*) FROM surveys_mail WHERE state IN ('waiting', 'sending')"
_DONE = """
import json
from webapp.housing.models import Placement
found = Placement.objects.select_related("job").get()
print(json.dumps([found.job.state if found.job else "", found.job.error if found.job else ""]))
"""


def open_questionnaire(product: Product, *, invited: int) -> tuple[str, list[str]]:
    """Open the housing survey and invite by mail; return its code and the links of the mails."""
    code = product.run(_OPEN.replace("{invited}", str(invited)))
    return code, wait_for_links(product, invited)


def remind(product: Product) -> int:
    """Send a reminder to who has not finished; return how many mails went out, all of them."""
    count = int(product.run(_REMIND))
    deadline = time.monotonic() + 1200
    while waiting := product.rows(_ON_THEIR_WAY)[0][0]:
        assert time.monotonic() < deadline, f"{waiting} of {count} mails wait"
        time.sleep(1)
    wait_for_links(product, 1, subject="Reminder")
    return count


def wait_for_links(product: Product, count: int, subject: str = "Housing") -> list[str]:
    """Wait until mails lie in the instance folder; return their links in the order of people."""
    deadline = time.monotonic() + 1200
    while time.monotonic() < deadline:
        links = _links(product.instance / "mail", subject)
        if len(links) >= count:
            return [links[who] for who in sorted(links)]
        time.sleep(1)
    raise AssertionError(f"{len(links)} of {count} mails were sent\n{product.logs()}")


def _links(folder: Path, subject: str) -> dict[str, str]:
    found = {}
    for path in folder.glob("*.log") if folder.exists() else ():
        for part in path.read_bytes().split(b"-" * 79 + b"\n"):
            mail = message_from_bytes(part, policy=policy.default)
            link = re.search(
                r"http://\S+/q/\S+/", mail.get_body(("plain",)).get_content() if mail["To"] else ""
            )
            if link and str(mail["Subject"]).startswith(subject):
                found[str(mail["To"])] = link.group()
    return found


class Killer(threading.Thread):
    """Sends SIGKILL to something of the product, so many times at random moments of a crowd.

    Each of ``targets`` is the web server, one of its processes, the worker, broker or sweep.
    """

    def __init__(
        self,
        product: Product,
        *,
        times: int,
        every: float,
        seed: int,
        targets: Sequence[str] = TARGETS,
    ) -> None:
        super().__init__(daemon=True)
        self._product, self._left, self._every = product, times, every
        self._targets = targets
        self._rng = random.Random(seed)
        self._stopped = threading.Event()
        self.killed: list[str] = []

    def run(self) -> None:
        """Kill until asked to stop or done."""
        while self._left and not self._stopped.wait(self._every * self._rng.uniform(0.5, 1.5)):
            name = self._rng.choice(self._targets)
            try:
                pid = self._product.pid_of("web" if name == "a web process" else name)
            except AssertionError:
                continue  # it is being started again
            if name == "a web process":
                pid = self._rng.choice(children_of(pid) or [pid])
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.killed.append(name)
                self._left -= 1

    def stop(self) -> None:
        """End after the present pause."""
        self._stopped.set()
        self.join()


def lost_answers(product: Product, students: Sequence[Student]) -> list[str]:
    """Return what was acknowledged to a student and is not what the database holds.

    Every answer is compared. An answer that a student never gave counts as well.
    """
    rows = product.rows("SELECT id, answers, finished_at FROM surveys_participant")
    held = {row["id"]: (json.loads(row["answers"]), row["finished_at"]) for row in rows}
    content = json.loads(product.rows("SELECT content FROM surveys_questionnaire")[0]["content"])
    keys = [q["key"] for section in content["sections"] for q in section["questions"]]
    lost = []
    for student in students:
        answers, finished = held[int(student.path.split("/")[2].partition(".")[0])]
        given = {number: _as_sent(answers.get(key)) for number, key in enumerate(keys, start=1)}
        for number, said in student.kept.items():
            if given[number] != said:
                lost.append(f"{student.identifier}: question {number}")
        if student.is_finished:
            others = [n for n, said in given.items() if said and n not in student.kept]
            lost += [f"{student.identifier}: never answered question {n}" for n in others]
            lost += [f"{student.identifier}: finished"] * (not finished)
    return lost


def _as_sent(value: Any) -> list[str]:
    """Return a kept answer as the form of a student sends it."""
    if value is None:
        return []
    return [str(one) for one in (value if isinstance(value, list) else [value])]


def make_placement(product: Product, *, seconds: float) -> int:
    """Make a cohort and a placement of it, and wait for it; return the number of students."""
    count, _ = json.loads(product.run(_PLACE.replace("{{", "{").replace("}}", "}")))
    deadline = time.monotonic() + seconds
    state = error = ""
    while time.monotonic() < deadline and state != "succeeded":
        state, error = json.loads(product.run(_DONE))
        assert state not in ("failed", "cancelled"), error
        time.sleep(1)
    assert state == "succeeded", state
    return int(count)


def same_year_by_file(product: Product) -> tuple[int, float, float, float]:
    """Import the year again as Qualtrics' file, and learn from both.

    Returns students, seconds of the import, the largest difference between the two scores of a
    pair, and how far scores of pairs lie apart (their standard deviation).
    """
    found = json.loads(product.run(_BY_FILE, timeout=1500))
    return int(found[0]), float(found[1]), float(found[2]), float(found[3])


def crowd_of(
    product: Product, count: int, *, code: str, links: Sequence[str], seed: int
) -> list[Student]:
    """Return the crowd of a year."""
    return make_students(count, code=code, links=links, seed=seed)


def answer(product: Product, students: Sequence[Student], *, at_once: int, **pace: Any) -> Outcome:
    """Let students answer; ``pace`` is what :func:`tests.live.crowd.run_crowd` takes."""
    host = f"127.0.0.1:{product.port}"
    return run_crowd(host, students, at_once=at_once, seed=7, **pace)
