"""Students answer at 200 and 500 answers a minute beside 20 staff; then random kills, and a count.

    python -m benchmarks product answers [--rates 200,500] [--answers 2400] [--kills 24] [--store]

Starts the product (SQLite, or what DATABASE_URL names) with 2,400 people who have answered. At
each rate, students answer the questionnaire over real HTTP on loopback, half of them as a phone's
script does, while 20 staff read, search and handle answers, each once in five seconds. The aim is
a 95th percentile of 300 ms, for students and for staff, on two idle cores. Then students give
2,400 answers while the web server, its processes, the worker, the broker and the sweep get
SIGKILL at random. Every acknowledged answer is compared with the database and with the file that
staff download. ``--store`` writes the result to ``stored_answers.json`` beside this file; of a
rate or of kills that this run left out, the stored result stays. Exits with 1 if an answer is lost,
or if a percentile is above the aim although the cores were idle.
"""

import argparse
import csv
import io
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.common.reporting import machine_facts, print_machine
from benchmarks.product.web import EVERY_SECONDS, Person, run_all, signed_in, token_in, web_seconds
from tests.live.crowd import Outcome, Student, run_crowd
from tests.live.product import Product, new_product, seconds_of
from tests.live.student_year import Killer, lost_answers

TARGET_MS = 300
STAFF = 20
QUESTIONS = 11
AT_ONCE = 24
ALONE = 20  # asks of one page after another, for its processor time
IDLE_CORES = 0.3  # what other programs may use of the two cores, so that a time by the clock counts
WARM_SECONDS = 10.0
STORED = Path(__file__).with_name("stored_answers.json")
_FILL = """
import json, random
from datetime import timedelta
from django.utils import timezone
from webapp.accounts.models import User
from webapp.surveys.models import Participant, WrittenAnswer
from webapp.surveys.questions import questions_of
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open
bob, now, rng = User.objects.get(username="bob"), timezone.now(), random.Random(1)
made = questionnaire_create(user=bob, title="Living together", form="own")
questionnaire_open(user=bob, questionnaire=made, closes_at=now + timedelta(days=9))
questions = questions_of(made.content)
def answers():
    scored = {{q.key: rng.randrange(len(q.options)) for q in questions if q.options
              and q.kind != "several"}}
    return scored | {{q.key: "I need a quiet room, please." for q in questions if q.kind == "text"}}
Participant.objects.bulk_create(
    Participant(questionnaire=made, identifier=f"E{{k:05d}}", answers=answers(), opened_at=now,
                updated_at=now, finished_at=now)
    for k in range({people}))
text = next(q.key for q in questions if q.kind == "text")
WrittenAnswer.objects.bulk_create(
    WrittenAnswer(questionnaire=made, participant=one, key=text, handled_at=now if k % 4 else None)
    for k, one in enumerate(made.participants.all()))
print(json.dumps([made.code, str(made.pk), made.participants.first().pk]))
"""


class Staff:
    """Somebody of the housing office: reads texts, searches people, marks what was handled."""

    def __init__(self, person: Person, questionnaire: str, first: int, people: int) -> None:
        self.person, self.base = person, f"/questionnaires/{questionnaire}"
        self._first, self._people = first, people

    def pages(self) -> dict[str, str]:
        """Return the addresses of pages, by what the table calls them."""
        rng, base = self.person.random, self.base
        return {
            "list": "/questionnaires/",
            "progress": f"{base}/",
            "texts": f"{base}/answers/",
            "search texts": f"{base}/answers/?q=stairs&show=all",
            "people": f"{base}/answers/people/?page={rng.randint(1, 20)}",
            "search people": f"{base}/answers/people/?q=E0{rng.randrange(10, 24)}",
            "one person": f"{base}/answers/people/{self._first + rng.randrange(self._people)}/",
            "by question": f"{base}/answers/questions/",
            "requests": f"{base}/answers/requests/",
            "invited people": f"{base}/people/",
        }

    def act(self) -> None:
        """Look at one page; of the texts on a page, mark one as handled every second time."""
        rng, base, pages = self.person.random, self.base, self.pages()
        kind = rng.choice(list(pages))
        page = self.person.timed(kind, "GET", pages[kind])
        texts = re.findall(r'name="text" value="(\d+)"', page) if kind == "texts" else []
        if texts and rng.random() < 0.5:
            form = {"csrfmiddlewaretoken": token_in(page), "text": rng.choice(texts)}
            begun = time.perf_counter()
            status, _ = self.person.ask("POST", f"{base}/answers/handle/", form)
            self.person.times["mark as handled"].append((begun, time.perf_counter() - begun))
            self.person.refused += [f"mark as handled {status}"] * (status != 302)


def main() -> int:
    """Measure each rate, then kill and compare; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rates", default="200,500", help="answers a minute; empty for none")
    parser.add_argument("--seconds", type=float, default=120.0, help="of each rate")
    parser.add_argument("--staff", type=int, default=STAFF)
    parser.add_argument("--people", type=int, default=2_400, help="who have answered before")
    parser.add_argument("--answers", type=int, default=2_400, help="given while processes die")
    parser.add_argument("--kills", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", action="store_true", help="keep the result in the repository")
    options = parser.parse_args()
    print_machine()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        product = new_product(folder, LOG_LEVEL="WARNING")
        code, questionnaire, first = json.loads(product.run(_FILL.format(people=options.people)))
        product.start()
        stack.callback(product.stop)
        staff = [
            Staff(person, questionnaire, first, options.people)
            for person in signed_in(product, options.staff)
        ]
        alone = _processor_ms(product, staff[0], code)
        rates = [int(word) for word in options.rates.split(",") if word]
        loads = [_load(product, staff, code, rate, options) for rate in rates]
        kills = _kills(product, staff[0], code, options) if options.answers else {}
    if options.store:
        _store(options, alone, loads, kills)
    return int(bool(kills.get("lost")) or any(map(_is_slow, loads)))


def _store(
    options: Any, alone: dict[str, float], loads: list[dict[str, Any]], kills: dict[str, Any]
) -> None:
    """Write what was measured into the stored result, each part with its day."""
    day = {"measured": datetime.now(UTC).date().isoformat()}
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    by_rate = {load["rate"]: load for load in stored.get("loads", [])}
    by_rate |= {load["rate"]: day | {"staff_people": options.staff} | load for load in loads}
    result = {
        **machine_facts(["django", "gunicorn"]),
        "answered_before": options.people,
        "processor_ms": day | alone,
        "loads": [by_rate[rate] for rate in sorted(by_rate)],
        "kills": day | kills if kills else stored.get("kills", {}),
    }
    STORED.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _is_slow(load: dict[str, Any]) -> bool:
    """True if a percentile missed the aim on idle cores."""
    slowest = max(load["students"]["p95_ms"], load["staff"]["p95_ms"])
    return bool(load["refused"]) or (slowest > TARGET_MS and load["other_cores"] <= IDLE_CORES)


def _processor_ms(product: Product, one: Staff, code: str) -> dict[str, float]:
    """Return the processor time of every page, asked alone: it hardly depends on other programs."""
    found = {}
    for kind in one.pages():
        before = web_seconds(product)
        for _ in range(ALONE):
            one.person.rest()
            status, _ = one.person.ask("GET", one.pages()[kind])
            assert status == 200, (kind, status)
        found[kind] = round(1e3 * (web_seconds(product) - before) / ALONE, 1)
    before = web_seconds(product)
    seen = _answered(product, _students("A", ALONE * QUESTIONS, code), seed=1, rate=0, at_once=1)
    found["a student's request"] = round(1e3 * (web_seconds(product) - before) / len(seen.times), 1)
    print(json.dumps({"processor_ms": found}), flush=True)
    return found


def _load(
    product: Product, staff: list[Staff], code: str, rate: int, options: Any
) -> dict[str, Any]:
    """Let students give so many answers a minute beside the staff; return how long pages took."""
    students = _students(f"R{rate}", round(rate * options.seconds / 60), code)
    end = threading.Event()
    for one in staff:
        one.person.times.clear()
        one.person.refused.clear()
    assert product.process is not None
    busy, own, web, crowd = _busy(), seconds_of(product.process.pid), web_seconds(product), _self()
    began = time.monotonic()
    seen: list[Outcome] = []

    def answer() -> None:
        seen.append(_answered(product, students, options.seed, rate))
        end.set()

    run_all([answer, *(lambda one=one: _work(one, end) for one in staff)])
    seconds = time.monotonic() - began
    used = seconds_of(product.process.pid) - own
    others = _busy() - busy - used - (_self() - crowd)
    assert not seen[0].failures, seen[0].failures[:3]
    pages = _pages(staff)
    n_requests = len(seen[0].times) + sum(page["asked"] for page in pages.values())
    found = {
        "answers_a_minute": round(60 * seen[0].n_answers / seconds),
        "answers": seen[0].n_answers,
        "students": _summary(seen[0].times),
        "staff": _summary([s for one in staff for f in one.person.times.values() for _, s in f]),
        "staff_pages": pages,
        "web_ms_a_request": round(1e3 * (web_seconds(product) - web) / n_requests, 1),
        "product_cores": round(used / seconds, 2),
        "other_cores": round(max(0.0, others / seconds), 2),
        "refused": sorted({text for one in staff for text in one.person.refused}),
    }
    print(json.dumps({"rate": rate} | found), flush=True)
    return {"rate": rate} | found


def _students(name: str, n_answers: int, code: str) -> list[Student]:
    """Return enough students for so many answers, half of them on phones."""
    return [
        Student(f"{name}-{k:05d}", is_phone=k % 2 == 0, stops_after=None, code=code)
        for k in range(-(-n_answers // QUESTIONS))
    ]


def _answered(
    product: Product, students: list[Student], seed: int, rate: int, at_once: int = AT_ONCE
) -> Outcome:
    host = f"127.0.0.1:{product.port}"
    return run_crowd(host, students, at_once=at_once, seed=seed, a_minute=rate or None)


def _work(one: Staff, end: threading.Event) -> None:
    """Act about every five seconds until the students are done, none in step with another."""
    rng = one.person.random
    while not end.wait(EVERY_SECONDS * rng.uniform(0.5, 1.5)):
        one.person.rest()
        one.act()


def _pages(staff: list[Staff]) -> dict[str, dict[str, Any]]:
    times: dict[str, list[float]] = defaultdict(list)
    for one in staff:
        for kind, found in one.person.times.items():
            times[kind] += [seconds for _, seconds in found]
    return {kind: _summary(found) for kind, found in sorted(times.items())}


def _summary(seconds: list[float]) -> dict[str, Any]:
    ordered = sorted(seconds) or [0.0]
    return {
        "asked": len(seconds),
        "median_ms": round(1e3 * ordered[len(ordered) // 2]),
        "p95_ms": round(1e3 * ordered[min(len(ordered) - 1, 95 * len(ordered) // 100)]),
        "slowest_ms": round(1e3 * ordered[-1]),
    }


def _kills(product: Product, reader: Staff, code: str, options: Any) -> dict[str, Any]:
    """Let students answer while processes die; compare every answer in two ways."""
    students = _students("K", options.answers, code)
    rate = 500
    every = 60.0 * options.answers / rate / max(1, options.kills)
    killer = Killer(product, times=options.kills, every=every, seed=options.seed)
    killer.start()
    seen = _answered(product, students, options.seed, rate)
    killer.stop()
    assert not seen.failures, (seen.failures[:3], killer.killed, print(product.logs()))
    lost = lost_answers(product, students)
    lost += _not_in_file(reader, students)
    found = {
        "answers": sum(len(student.kept) for student in students),
        "killed": {name: killer.killed.count(name) for name in sorted(set(killer.killed))},
        "connections_broken": seen.n_broken,
        "p95_ms": round(1e3 * seen.percentile(0.95)),
        "lost": lost,
    }
    print(json.dumps(found), flush=True)
    return found


def _not_in_file(reader: Staff, students: list[Student]) -> list[str]:
    """Return the answers that the file of all answers, which staff download, does not hold."""
    base = reader.base
    reader.person.rest()
    status, text = reader.person.ask("GET", f"{base}/answers/people.csv")
    assert status == 200, status
    head, *rows = csv.reader(io.StringIO(text.lstrip("\ufeff")))
    by_number = {row[head.index("student number")]: row for row in rows}
    n_before = head.index("language") + 1
    lost = []
    for student in students:
        row = by_number.get(student.identifier, [""] * len(head))
        for number, said in student.kept.items():
            shown = row[n_before + number - 1]
            is_typed = bool(said) and not said[0].isdecimal()
            if (is_typed and shown != said[0]) or bool(said) != bool(shown):
                lost.append(f"{student.identifier}: question {number} in the file: {shown!r}")
    return lost


def _busy() -> float:
    """Processor seconds of this machine that something used, all cores together."""
    fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    user, nice, system, _, _, interrupts, soft, _ = map(int, fields)
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK")


def _self() -> float:
    return time.process_time()


if __name__ == "__main__":
    sys.exit(main())
