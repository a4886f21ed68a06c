"""Students as a crowd: browsers without scripts and phones with them, over real HTTP.

A student is polite as a browser is: a connection that breaks is tried again, a page that does not
answer is loaded again. What was acknowledged is written down, to be compared with the database.
"""

import http.client
import queue
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from tests.patience import PATIENCE_SECONDS

TOKEN = "c" * 32
PHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
    "Gecko) Version/19.0 Mobile/15E148 Safari/604.1"
)
DESK = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
# One name in each of twenty languages; a number makes them different people.
NAMES = (
    "Olivia Smith", "Lucía Fernández", "Chloé Lefèvre", "Jürgen Weiß", "João Gonçalves",
    "Zoë van den Berg", "Åsa Öberg", "Łukasz Żółć", "Dvořáková Běla", "Erzsébet Őszi",
    "Ioană Șerban", "Çağla Işık", "Αθηνά Παπαδοπούλου", "Олександр Їжак", "יעל כהן",
    "فاطمة الزهراء", "अनन्या शर्मा", "Nguyễn Thị Hồng", "王小明", "佐藤 陽葵",
)  # fmt: skip
WAIT = 0.25  # seconds before something is tried again
TRIES = int(PATIENCE_SECONDS / WAIT)


@dataclass
class Student:
    """One person: who they are, how they behave, and what was acknowledged to them."""

    identifier: str
    is_phone: bool
    stops_after: int | None
    code: str = ""
    link: str = ""
    kept: dict[int, list[str]] = field(default_factory=dict)
    is_finished: bool = False

    @property
    def path(self) -> str:
        """Where their link leads, without the host."""
        return urlsplit(self.link).path


class Browser:
    """Asks one server, keeps the time of every answer, and tries again what broke."""

    def __init__(self, host: str, agent: str, times: list[float]) -> None:
        self._host, self._agent, self._times = host, agent, times
        self._cookies = {"csrftoken": TOKEN}
        self._connection: http.client.HTTPConnection | None = None
        self.broken = 0

    def get(self, path: str) -> tuple[int, str, str]:
        """Return (status, where it leads, text)."""
        return self._ask("GET", path, None, {})

    def post(
        self, path: str, fields: Iterable[tuple[str, str]], *, script: bool = False
    ) -> tuple[int, str, str]:
        """Send a form; with ``script`` as the page's script does, which stays on the page."""
        body = urlencode([*fields, ("csrfmiddlewaretoken", TOKEN)])
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._ask(
            "POST", path, body, headers | {"X-Requested-With": "fetch"} if script else headers
        )

    def _ask(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> tuple[int, str, str]:
        cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        headers = headers | {"User-Agent": self._agent, "Cookie": cookies}
        for _ in range(TRIES):
            began = time.monotonic()
            try:
                if self._connection is None:
                    self._connection = http.client.HTTPConnection(self._host, timeout=60)
                self._connection.request(method, path, body, headers)
                answer = self._connection.getresponse()
                text = answer.read().decode("utf-8", "replace")
            except (OSError, http.client.HTTPException):
                self._drop()
                self.broken += 1
                time.sleep(WAIT)
                continue
            if answer.status in (502, 503):
                time.sleep(WAIT)
                continue
            self._times.append(time.monotonic() - began)
            for name, value in answer.getheaders():
                if name.lower() == "set-cookie":
                    key, _, rest = value.partition("=")
                    self._cookies[key] = rest.partition(";")[0]
            if answer.getheader("Connection", "").lower() == "close":
                self._drop()
            return answer.status, answer.getheader("Location") or "", text
        raise AssertionError(f"{method} {path} was never answered")

    def token_of(self, there: str) -> str:
        """Return the token that the cookie of an address keeps."""
        return self._cookies[f"link-{there.split('/')[3]}"]

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def make_students(count: int, *, code: str, links: Sequence[str], seed: int) -> list[Student]:
    """Return the crowd: half on phones, 3 % who stop half-way, 5 % who answer twice by the code.

    As many as there are links come by their link, the others by the code.
    """
    rng = random.Random(seed)
    made = []
    for k in range(count):
        name = NAMES[k % len(NAMES)]
        stops = rng.randrange(3, 11) if rng.random() < 0.03 else None
        link = links[k] if k < len(links) else ""
        made.append(
            Student(f"N{k:05d} {name}", k % 2 == 0, stops, code="" if link else code, link=link)
        )
    by_code = [one for one in made if one.code and one.stops_after is None]
    for one in rng.sample(by_code, min(len(by_code), round(0.05 * count))):
        made.append(Student(one.identifier, not one.is_phone, None, code=code))
    return made


def answer_all(
    browser: Browser, student: Student, rng: random.Random, say: Callable[[], None]
) -> None:
    """Go through the questionnaire as this student would; what is there already is not asked."""
    if student.code and not student.link:
        begin = f"/q/code/{student.code}/"
        status, _, _ = browser.get(begin)
        assert status == 200, status
        status, there, _ = browser.post(begin, [("identifier", student.identifier)])
        assert status == 302, status
        student.link = f"/q/{browser.token_of(there)}/"
    status, here, _ = browser.get(student.path)
    assert status == 302, (status, here)
    there = here
    while True:
        status, _, text = browser.get(there)
        assert status == 200, (status, text[:300])
        number = re.search(r'name="n" value="(\d+)"', text)
        if number is None:
            break
        n = int(number.group(1))
        if "data-question" not in text:  # the introduction, which leads to the first question
            there = f"{here.partition('?')[0]}?n={n}"
            continue
        if student.stops_after is not None and n > student.stops_after:
            return
        chosen = _choose(text, rng, student)
        fields = [("n", str(n)), *(("answer", one) for one in chosen), ("action", "next")]
        if student.is_phone:  # the script saves what is chosen, then Next goes on
            status, _, text = browser.post(here, [*fields, ("stays", "1")], script=True)
            assert (status, '"next"' in text) == (200, True), (status, text[:300])
        status, there, text = browser.post(here, fields)
        assert status == 302, (status, text[:300])
        student.kept[n] = chosen
        say()
    status, _, text = browser.post(here, [("action", "finish")])
    assert status == 302, (status, text[:300])
    student.is_finished = True


def _choose(text: str, rng: random.Random, student: Student) -> list[str]:
    """Return an answer to the question of a page: what is written is different for everybody."""
    options = re.findall(r'type="(radio|checkbox)" name="answer" value="(\w+)"', text)
    if options:
        values = [value for _, value in options]
        is_several = options[0][0] == "checkbox"
        return sorted(rng.sample(values, rng.randint(1, len(values)) if is_several else 1))
    if 'type="time"' in text:
        return [f"{rng.randrange(20, 24)}:{rng.randrange(60):02d}"]
    if "<textarea" in text:
        return [f"{student.identifier} cannot climb {rng.randrange(10**6)} stairs."]
    return []


@dataclass
class Outcome:
    """What the crowd saw: seconds of every answer, answers kept, connections that broke."""

    seconds: float
    times: list[float]
    n_answers: int
    n_broken: int
    failures: list[str]

    def percentile(self, share: float) -> float:
        """Return the time below which this share of the answers came."""
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def run_crowd(
    host: str,
    students: Sequence[Student],
    *,
    at_once: int,
    seed: int,
    a_minute: float | None = None,
    students_a_minute: float | None = None,
    on_answer: Callable[[int], None] = lambda count: None,
) -> Outcome:
    """Let students answer, so many at once; return what was seen.

    ``a_minute`` paces single answers, ``students_a_minute`` who begins. ``on_answer`` is told how
    many answers there were, from any thread.
    """
    waiting: queue.SimpleQueue[tuple[int, Student]] = queue.SimpleQueue()
    for k, student in enumerate(students):
        waiting.put((k, student))
    times: list[float] = []
    failures: list[str] = []
    counts = {"answers": 0, "broken": 0}
    lock = threading.Lock()
    began = time.monotonic()

    def say() -> None:
        with lock:
            counts["answers"] += 1
            due = began + counts["answers"] * 60.0 / a_minute if a_minute else 0.0
        on_answer(counts["answers"])
        time.sleep(max(0.0, due - time.monotonic()))

    def work() -> None:
        while True:
            try:
                k, student = waiting.get_nowait()
            except queue.Empty:
                return
            if students_a_minute:
                time.sleep(max(0.0, began + k * 60.0 / students_a_minute - time.monotonic()))
            browser = Browser(host, PHONE if student.is_phone else DESK, times)
            try:
                answer_all(browser, student, random.Random(f"{seed} {k}"), say)
            except Exception as error:
                failures.append(f"{student.identifier}: {error!r}")
            with lock:
                counts["broken"] += browser.broken

    threads = [threading.Thread(target=work, daemon=True) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - began
    return Outcome(seconds, times, counts["answers"], counts["broken"], failures)
