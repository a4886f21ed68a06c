"""Kill and stop whatever runs, at random, while people and jobs work; then count what is lost.

    python -m benchmarks product faults [--kills 300] [--seed 1] [--hosts 1|3] [--jobs N] [--keep]

With one host: SQLite and the embedded broker under the supervisor; as root also a disk that fills
up and a store that becomes read-only. With three: network namespaces (needs root, PostgreSQL, Redis
and s3rver), where hosts and services are killed and cut off too. Any process may be stopped for
seconds (SIGSTOP) and go on. Meanwhile jobs of two organisations count, with checkpoints, and pair
students; a program imports cohorts and asks for pages. In the end every job must be done once with
the very answer of an undisturbed run, every placement and its export the same as one made in quiet,
every import whole or absent, no answer 500, and no process, file or row left that belongs to
nothing. Ends with 1 if anything is wrong.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.reporting import print_machine
from benchmarks.product.fault_hosts import OneMachine, ThreeHosts, kill, pause
from tests.live.product import name_of

PEOPLE_OF_A_COHORT = 30
STUDENTS = 120  # to be paired, again and again
SETTLE_SECONDS = 180.0  # without one job less

_ENQUEUE = """
import json
import numpy as np
from webapp.accounts.models import User
from webapp.api.services import token_create
from webapp.files import store
from webapp.jobs.services import job_enqueue
store.check()
rng = np.random.default_rng({seed})
people = list(User.objects.filter(username__in=("bob", "mallory")))
for k in range({jobs}):
    kind = "counting.long" if k % 6 == 0 else "counting.sum"
    steps = int(rng.integers(10, 60))
    job_enqueue(user=people[k % 2], kind=kind, seed=k,
                parameters={{"steps": steps, "seconds_a_step": {step}}})
print(token_create(user=people[0], name="faults", may_change=True, days=1)[1])
"""

# Pairs of one cohort by one model, several times over: all must be the same.
_PROPOSE = """
from benchmarks.product.web_load import Filler
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.matching.models import LearnedModel
from webapp.housing.pairs.placing import pairs_create
bob = User.objects.get(username="bob")
model = LearnedModel.objects.filter(name="Model 000").first()
if model is None:
    filler = Filler(bob, scale=0.001)
    filler._model_data()
    filler._cohort("Past", 60, with_pairs=True)
    filler._cohort("To be paired", {students}, with_pairs=False)
    filler._models()
    model = LearnedModel.objects.get(name="Model 000")
cohort = Cohort.objects.get(name="To be paired")
for k in range({count}):
    pairs_create(user=bob, name=f"{name} {{k}}", cohort=cohort, model=model)
"""

_PLACEMENTS = """
import hashlib, json
from webapp.accounts.models import User
from webapp.housing.models import Placement
from webapp.housing.pairs.exports import pairs_export
bob = User.objects.get(username="bob")
print(json.dumps({
    placement.name: [
        hashlib.sha256(
            pairs_export(user=bob, placement=placement, file_format="csv", is_taken=False)[0]
        ).hexdigest(),
        placement.pairs.count(),
        placement.job.state,
    ]
    for placement in Placement.objects.select_related("job")
}))
"""

_LEFT = """
from webapp.jobs.models import Job
print(Job.objects.filter(state__in=("queued", "running")).count())
"""

_FINDINGS = """
import json
from django.db import connection
from webapp.audit.models import AuditLine
from webapp.cohorts.draft_files import draft_path
from webapp.cohorts.models import Cohort, Draft
from webapp.files import orphaned_files, store
from webapp.files.storage import organisation_folder
from webapp.files.store import folder
from webapp.jobs.models import Job
from webapp.accounts.models import Organisation
# What the sweep does to files that a kill left half written or without a row, a day early.
orphaned_files.UNFINISHED_SECONDS = folder.UNFINISHED_SECONDS = -1
store.tidy()
orphaned_files.remove_orphaned_files()
orphans = []
for organisation in Organisation.objects.all():
    for file in store.files(organisation_folder(organisation)):
        kind = file.path.relative_to(organisation_folder(organisation)).parts[0]
        needed = orphaned_files._needed.get(kind, lambda key: ())
        if not any(file.path.name.startswith(str(key)) for key in needed(organisation.pk)):
            orphans.append(str(file.path))
if connection.vendor == "sqlite":
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA integrity_check")
        integrity = cursor.fetchone()[0]
else:
    integrity = "ok"
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT count(*) FROM "{table}"')
finished = {}
for key in AuditLine.objects.filter(verb="finished").values_list("target_id", flat=True):
    finished[key] = finished.get(key, 0) + 1
print(json.dumps({
    "jobs": [[str(job.pk), job.seed, job.parameters, job.state, job.result, job.attempt, job.error]
             for job in Job.objects.filter(kind__startswith="counting.")],
    "finished": finished,
    "cohorts": [
        [c.name, c.n_students, sorted([s.original_id, s.answers] for s in c.students.all())]
        for c in Cohort.objects.filter(name__startswith="Cohort ")
    ],
    "drafts_without_file": [
        str(d.pk)
        for d in Draft.objects.all()
        if not store.store().has(draft_path(d.organisation_id, d.pk))
    ],
    "orphans": orphans,
    "integrity": integrity,
}))
"""


class Program:
    """Somebody who imports cohorts and asks for pages all the time, and comes back after a 503."""

    def __init__(self, urls: list[str], token: str) -> None:
        self.urls = urls
        self.statuses: Counter[int] = Counter()
        self.bad: list[str] = []
        self.imported: list[str] = []
        self._token = token
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the request of now."""
        self._stopped.set()
        self._thread.join(60)

    def _work(self) -> None:
        number = 0
        while not self._stopped.wait(0.3):
            url = self.urls[number % len(self.urls)]
            number += 1
            name = f"Cohort {number}"
            if number % 4 == 0 and self._ask(f"{url}/api/v1/cohorts", _form(name)) in {200, 201}:
                self.imported.append(name)
            else:
                self._ask(f"{url}/api/v1/jobs?limit=5")
                self._ask(f"{url}/accounts/sign-in/")

    def _ask(self, url: str, body: bytes | None = None) -> int:
        headers = {"Authorization": f"Bearer {self._token}"}
        if body:
            headers["Content-Type"] = "multipart/form-data; boundary=bethe"
        try:
            request = urllib.request.Request(url, body, headers)
            with urllib.request.urlopen(request, timeout=15) as answer:
                status = int(answer.status)
        except urllib.error.HTTPError as error:
            status = error.code
            if status == 500:
                self.bad.append(f"{url}: {error.read()[:300]!r}")
        except (urllib.error.URLError, OSError, ValueError):
            status = 0  # the process was killed while it answered
        except Exception:  # http.client: half an answer
            status = 0
        self.statuses[status] += 1
        return status


def _form(name: str) -> bytes:
    rows = [f"N{k},{'Early' if k % 2 else 'Late'},{k % 5 + 1}" for k in range(PEOPLE_OF_A_COHORT)]
    survey = "\r\n".join(["student_id,Bedtime,Tidiness", *rows])
    parts = [
        f'--bethe\r\nContent-Disposition: form-data; name="name"\r\n\r\n{name}\r\n',
        '--bethe\r\nContent-Disposition: form-data; name="file"; filename="s.csv"\r\n'
        f"Content-Type: text/csv\r\n\r\n{survey}\r\n--bethe--\r\n",
    ]
    return "".join(parts).encode()


def break_things(installation: Any, kills: int, rng: np.random.Generator, pace: float) -> Counter:
    """Do ``kills`` faults; return how often each kind of process or fault it was."""
    done: Counter[str] = Counter()
    while sum(done.values()) < kills:
        time.sleep(float(rng.uniform(0.2, 1.8)) * pace)
        fault = str(rng.choice(installation.faults))
        if fault == "cut":
            done[installation.cut(rng).split()[0]] += 1
        elif fault == "host":
            done[installation.end_host(rng).split()[0]] += 1
        elif fault == "disk":
            installation.fill_disk(rng)
            done["full disk"] += 1
        elif fault == "read-only":
            done["read-only store"] += installation.close_store(rng)
        elif fault == "pause":
            targets = installation.targets(rng)
            pid = int(rng.choice(targets)) if targets else 0
            name = _name_of(pid)
            if pid and pause(pid, float(rng.uniform(1, 8))):
                done[f"{name} stopped"] += 1
        else:
            targets = installation.targets(rng)
            pid = int(rng.choice(targets)) if targets else 0
            name = _name_of(pid)
            if pid and kill(pid):
                done[name] += 1
        installation.keep()
        if sum(done.values()) % 20 == 0:
            print(f"{sum(done.values())} faults", file=sys.stderr, flush=True)
    return done


def _name_of(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return "gone"
    for mark in ("valkey", "redis", "postgres", "s3rver", "gunicorn", "celery", "tasks.sweep",
                 "webapp.supervisor"):  # fmt: skip
        if mark in words:
            forked = name_of(pid) if mark == "webapp.supervisor" else "python"
            return mark if forked.startswith("python") else forked
    return words[:30]


def expected_total(job: list[Any]) -> float:
    """The answer of an undisturbed run: the same draws, added in the same order."""
    total = 0.0
    for draw in np.random.default_rng(job[1]).random(job[2]["steps"]):
        total += draw
    return float(total)


def findings_of(installation: Any, program: Program, n_jobs: int) -> list[str]:
    """Compare what there is with what there must be; one line for everything that is wrong."""
    found = json.loads(installation.run(_FINDINGS).splitlines()[-1])
    jobs = found["jobs"]
    wrong = [f"job {job[0]} is {job[3]}: {job[6]}" for job in jobs if job[3] != "succeeded"]
    wrong += [f"{n_jobs - len(jobs)} jobs are gone"] * (len(jobs) != n_jobs)
    wrong += [
        f"job {job[0]}: {job[4]} instead of {expected_total(job)}"
        for job in jobs
        if job[3] == "succeeded" and job[4].get("total") != expected_total(job)
    ]
    wrong += [
        f"job {job[0]} finished {found['finished'].get(job[0], 0)} times"
        for job in jobs
        if found["finished"].get(job[0], 0) != 1
    ]
    names = Counter(cohort[0] for cohort in found["cohorts"])
    wrong += [
        f"{name} was imported and is not there" for name in program.imported if not names[name]
    ]
    first = found["cohorts"][0][2] if found["cohorts"] else []  # all of them are of one file
    wrong += [
        f"{name} is not the file: {len(rows)} of {said} people"
        for name, said, rows in found["cohorts"]
        if not (said == len(rows) == PEOPLE_OF_A_COHORT and rows == first)
    ]
    wrong += [f"the draft {key} has no file" for key in found["drafts_without_file"]]
    wrong += [f"the file {path} has no row" for path in found["orphans"]]
    wrong += [f"integrity: {found['integrity']}"] * (found["integrity"] != "ok")
    wrong += [f"answer 500 of {line}" for line in program.bad]
    attempts = Counter(job[5] for job in jobs)
    print(f"attempts of jobs: {dict(sorted(attempts.items()))}; cohorts: {len(found['cohorts'])}; "
          f"answers: {dict(sorted(program.statuses.items()))}")  # fmt: skip
    return wrong


def placements_that_differ(installation: Any, count: int) -> list[str]:
    """Compare what was placed among faults, as it is exported, with what was placed in quiet."""
    found = json.loads(installation.run(_PLACEMENTS).splitlines()[-1])
    print(f"placements: {found}")
    digest, n_pairs, _ = found.pop("In quiet 0", ["", 0, ""])
    wrong = [f"{count - len(found)} placements are gone"] * (count != len(found))
    wrong += ["the placement in quiet has no pairs"] * (n_pairs != STUDENTS // 2)
    return wrong + [
        f"{name} is {state}, with {n} pairs, and its export is not that in quiet"
        for name, (other, n, state) in found.items()
        if (other, n, state) != (digest, n_pairs, "succeeded")
    ]


def processes_left(marks: list[str]) -> list[str]:
    """What still runs and carries a mark of the installation."""
    left = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                environment = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if set(marks) & set(environment):
                left.append(f"process {folder.name} is left: {_name_of(int(folder.name))}")
    return left


def wait_until_settled(installation: Any) -> None:
    """Wait until no job waits or runs, as long as they become fewer; if some stay, print logs."""
    fewest, since = -1, time.monotonic()
    while time.monotonic() - since < SETTLE_SECONDS:
        installation.keep()
        try:
            left = int(installation.run(_LEFT).splitlines()[-1])
        except (AssertionError, subprocess.TimeoutExpired, IndexError):
            left = fewest  # the database is coming back
        if left == 0:
            return
        if left < fewest or fewest < 0:
            fewest, since = left, time.monotonic()
        time.sleep(3)
    print(f"{fewest} jobs wait or run, as many as before.\n{installation.logs()}", flush=True)


def run(installation: Any, *, kills: int, seed: int, n_jobs: int, pace: float) -> list[str]:
    """Start, break, settle, compare, stop; return what is wrong."""
    installation.start()
    # What placements need first: making it takes a busy machine minutes, in which jobs would end.
    installation.run(_PROPOSE.format(students=STUDENTS, count=0, name="None"))
    token = installation.run(_ENQUEUE.format(seed=seed, jobs=n_jobs, step=0.3 * pace)).splitlines()[
        -1
    ]
    n_placements = max(2, n_jobs // 20)
    installation.run(_PROPOSE.format(students=STUDENTS, count=n_placements, name="Among faults"))
    program = Program([installation.url], token)
    program.start()
    started = time.monotonic()
    done = break_things(installation, kills, np.random.default_rng(seed), pace)
    print(f"{sum(done.values())} faults from seed {seed} in {time.monotonic() - started:.0f} s: "
          f"{dict(done.most_common())}", flush=True)  # fmt: skip
    wait_until_settled(installation)
    program.stop()
    wrong = findings_of(installation, program, n_jobs)
    installation.run(_PROPOSE.format(students=STUDENTS, count=1, name="In quiet"))
    wait_until_settled(installation)
    wrong += placements_that_differ(installation, n_placements)
    installation.stop()
    return wrong + processes_left(installation.marks())


def main() -> int:
    """Run the long form; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hosts", type=int, choices=(1, 3), default=1)
    parser.add_argument("--jobs", type=int, help="150 on one host, 400 on three")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    parser.add_argument("--pause", type=float, default=1.0, help="mean seconds between two faults")
    options = parser.parse_args()
    print_machine()
    n_jobs = options.jobs or {1: 150, 3: 400}[options.hosts]
    with ExitStack() as stack:
        name = tempfile.mkdtemp(dir="/tmp")
        if options.keep:
            print(f"kept in {name}", flush=True)
        else:
            stack.callback(shutil.rmtree, name, ignore_errors=True)
        installation = ThreeHosts(Path(name)) if options.hosts == 3 else OneMachine(Path(name))
        try:
            wrong = run(
                installation,
                kills=options.kills,
                seed=options.seed,
                n_jobs=n_jobs,
                pace=options.pause,
            )
        finally:
            installation.remove()
    print(f"{options.hosts} host(s): {len(wrong)} findings")
    for line in wrong[:50]:
        print(line)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
