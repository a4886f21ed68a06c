"""500 students choose rooms in one minute over real HTTP, many of them the same rooms.

    python -m benchmarks product room_choice [--students N] [--seconds N] [--seed N]
    bin/with-postgres .venv/bin/python -m benchmarks product room_choice

Starts the product (supervisor, broker, worker, web server) with a cohort, a round whose slots are
all open, and rooms of two with a tenth more beds than students. Every student has opened the
personal link before. In the minute each student looks at the free rooms, asks for one and takes it;
three of four want one of the first rooms of the list. A student whose room is gone, or who gets no
answer, tries another, at most six times. A fifth of the students asked for each other, and one of
each two chooses for both. Counts beds taken twice, rooms over their capacity, groups that were
parted, choices without a room, and answers of 500 and above; prints the seconds of each kind of
page and the processor time of the web server, which holds on a busy machine too.
"""

import argparse
import http.client
import json
import os
import random
import re
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.common.reporting import print_machine, print_table
from benchmarks.product.web import Person, run_all, token_in, web_seconds
from tests.live.product import new_product

TRIES = 6
WANTED = 8  # first rooms of the list, which three of four students want
NO_ANSWER = 599  # counted as the status of an answer that never came
CHECK_SECONDS = 900.0
REST_SECONDS = 1.0  # before another try, as nobody clicks at once
_FILL = """
import json
from datetime import timedelta
from django.utils import timezone
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Student
from webapp.housing.models import BuildingList, Place, Placement, Room, RoommateRequest
from webapp.housing.rules import PlacementRules
from webapp.matching.services.set_models import model_set
from webapp.residents.links import handle_of, page_of, token_of
from webapp.room_choice.services.rounds import round_publish, round_save
bob, count = User.objects.get(username="bob"), {count}
owned = dict(organisation=bob.organisation, created_by=bob)
questions = [dict(name=name, kind="ordinal", levels=["1", "2", "3", "4", "5"])
             for name in ("Sleep", "Noise", "Guests", "Order", "Light", "Study")]
cohort = Cohort.objects.create(name="Everybody", questions=questions, constraints=["Gender"],
                               n_students=count, **owned)
students = Student.objects.bulk_create(
    Student(cohort=cohort, number=1001 + k, original_id=f"N{{k:05d}}",
            name=f"Name{{k}} Family{{k}}", answers=[(k * p) % 5 for p in (1, 2, 3, 7, 11, 13)],
            attributes=dict(Gender="MF"[k // 2 % 2])) for k in range(count))
halls = BuildingList.objects.create(name="Halls", **owned)
Room.objects.bulk_create(
    Room(buildings=halls, hall=("Alder", "Birch", "Cedar")[k % 3], name=str(100 + k), position=k,
         capacity=2) for k in range(-(-count * 11 // 20)))
model = model_set(user=bob, name="M", cohort=cohort, importance=dict(Sleep=2.0, Noise=1.0))
made = Placement.objects.create(
    name="Rooms", cohort=cohort, buildings=halls, model=model, revision=1,
    rules=PlacementRules(same=("Gender",)).to_json(), **owned)
Place.objects.bulk_create(Place(placement=made, student=s, number=s.number) for s in students)
for one, other in list(zip(students[::2], students[1::2]))[::5]:
    for asker, target in ((one, other), (other, one)):
        RoommateRequest.objects.create(cohort=cohort, student=asker, target=target, source="t")
now = timezone.now().replace(microsecond=0)
draft = round_save(user=bob, placement=made, round=None, name="All", minutes=30, seed=7,
                   opens_at=now - timedelta(hours=1), closes_at=now + timedelta(days=1),
                   stays_open=True)
round_publish(user=bob, round=draft, version=draft.version, send_mail=False)
draft.slots.update(starts_at=now - timedelta(minutes=5))
pages = [page_of(student) for student in students]
print(json.dumps([[token_of(page), handle_of(page), page.student.number] for page in pages]))
"""
_CHECK = """
import json
from collections import Counter
from webapp.housing.models import Place, PlacementEvent, RoommateRequest
from webapp.room_choice.models import RoomChoice
living = list(Place.objects.filter(room__isnull=False).select_related("room"))
beds = Counter((place.room_id, place.bed) for place in living)
rooms = Counter(place.room_id for place in living)
capacity = {place.room_id: place.room.capacity for place in living}
where = {place.number: place.room_id for place in living}
asked = RoommateRequest.objects.values_list("student__number", "target__number")
chosen = RoomChoice.objects.values_list("student__number", flat=True)
print(json.dumps({
    "beds taken twice": sum(count > 1 for count in beds.values()),
    "rooms over their capacity": sum(count > capacity[key] for key, count in rooms.items()),
    "groups parted": sum(where.get(a) != where.get(b) for a, b in asked) // 2,
    "choices without a room": len(set(chosen) - set(where)),
    "acts of the history that are missing": PlacementEvent.objects.count()
    - RoomChoice.objects.values("event").distinct().count(),
    "students with a room": len(living),
}))
"""


class Chooser(Person):
    """A student with the personal link open, who chooses at one moment of the minute."""

    def __init__(self, port: int, row: list[Any]) -> None:
        self.token, self.handle, self.number = row
        super().__init__(port, seed=self.number)
        self.answers: Counter[str] = Counter()
        self.has_room = False

    def open_link(self) -> None:
        """Exchange the link for the cookie."""
        _, _ = self.ask("GET", f"/q/{self.token}/")
        status, _ = self.ask("GET", f"/q/{self.token}/")
        assert status == 302, status
        self.rest()

    def choose(self) -> None:
        """Look, ask and take a room, again while the room is gone."""
        for _ in range(TRIES):
            if self._try():
                return
            self.rest()
            time.sleep(REST_SECONDS * self.random.uniform(0.5, 1.5))

    def _try(self) -> bool:
        base = f"/q/mine/home-{self.handle}/rooms/"
        page = self.step("look", "GET", base)
        if "<h2>Your room</h2>" in page:  # the other of two chose for both
            self.has_room = True
            return True
        rooms = list(dict.fromkeys(re.findall(rf"{base}(\d+)/", page)))
        if not rooms:
            return False
        near = self.random.random() < 0.75
        room = self.random.choice(rooms[:WANTED] if near else rooms)
        page = self.step("ask", "GET", f"{base}{room}/")
        seen = re.search(r'name="seen" value="(\w+)"', page)
        if seen is None:
            return False
        form = {"seen": seen[1], "csrfmiddlewaretoken": token_in(page)}
        self.step("take", "POST", f"{base}{room}/", form)
        self.has_room = self.last == 302
        if self.has_room:
            self.step("look after", "GET", base)
        return self.has_room

    def step(self, kind: str, method: str, path: str, body: dict[str, str] | None = None) -> str:
        """Ask for a page; keep its time and count its status."""
        begun = time.perf_counter()
        try:
            self.last, text = self.ask(method, path, body)
        except (OSError, http.client.HTTPException):
            self.rest()
            self.last, text = NO_ANSWER, ""
        self.times[kind].append((begun, time.perf_counter() - begun))
        self.answers[f"{kind} {self.last}"] += 1
        return text


def minute(people: list[Chooser], seconds: float, rng: random.Random) -> None:
    """Let everybody choose, each from a random moment of the given seconds on."""
    starts = {one.number: rng.uniform(0, seconds) for one in people}
    begun = time.monotonic()

    def live(one: Chooser) -> None:
        time.sleep(max(0.0, begun + starts[one.number] - time.monotonic()))
        one.choose()

    threading.stack_size(256 * 1024)
    run_all([lambda one=one: live(one) for one in people])


def report(people: list[Chooser], seconds: float, used: float) -> None:
    """Print the times by page, the answers by status, and the processor time."""
    rows = []
    for kind in ("look", "ask", "take", "look after"):
        taken = sorted(1000 * took for one in people for _, took in one.times[kind])
        if taken:
            p95 = taken[min(len(taken) - 1, 95 * len(taken) // 100)]
            rows.append((kind, len(taken), f"{taken[len(taken) // 2]:.0f}", f"{p95:.0f}",
                         f"{taken[-1]:.0f}"))  # fmt: skip
    print_table("Pages", ("page", "asked", "p50_ms", "p95_ms", "max_ms"), rows)
    answers = sum((one.answers for one in people), Counter[str]())
    total = sum(answers.values())
    errors = sum(n for key, n in answers.items() if int(key.rpartition(" ")[2]) >= 500)
    print("answers:", ", ".join(f"{key}: {n}" for key, n in sorted(answers.items())))
    print(f"answers of 500 and above: {errors} of {total}")
    print(f"students who ended without a room: {sum(not one.has_room for one in people)}")
    print(f"{seconds:.0f} s, {1000 * used / max(1, total):.0f} ms of web processor a request, "
          f"{used:.0f} s in all, load {os.getloadavg()[0]:.1f}", flush=True)  # fmt: skip


def main() -> None:
    """Fill, start, open the links, let everybody choose, check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--students", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print_machine()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        database = {k: os.environ[k] for k in ("DATABASE_URL",) if k in os.environ}
        print("database:", "PostgreSQL" if database else "SQLite")
        product = new_product(folder, LOG_LEVEL="WARNING", **database)
        rows = json.loads(product.run(_FILL.format(count=options.students)).splitlines()[-1])
        product.start()
        stack.callback(product.stop)
        people = [Chooser(product.port, row) for row in rows]
        for one in people:
            one.open_link()
        before, begun = web_seconds(product), time.monotonic()
        minute(people, options.seconds, random.Random(options.seed))
        seconds = time.monotonic() - begun
        report(people, seconds, web_seconds(product) - before)
        found = json.loads(product.run(_CHECK, timeout=CHECK_SECONDS).splitlines()[-1])
        for words, count in found.items():
            print(f"{words}: {count}")


if __name__ == "__main__":
    main()
