"""Uploads that somebody damaged: no answer may be an error of ours, slow, or large in memory.

    python -m benchmarks hunts mutated_uploads [--count 20000] [--seed 1]

Every kind of file that is taken (``upload_kinds``: pictures, masks, annotations, models, strokes,
ZIPs, surveys, pairs, rooms, requests, choices, e-mails as CSV and XLSX, translations, mails that
came back, letters) and the form around it is mutated by seeded random edits and sent through pages
and API, in an installation of its own. A file is damaged as a whole, or in one of the files that it
packs; or it comes under the name of another kind, or packed once more. Each answer of 500 or above,
each of more than ten seconds, each refusal that changed a row all the same, and a peak memory above
2 GB is printed with the seed that makes it again. Ends with 1 if there is any.

``--load N`` keeps N other processes busy meanwhile.
"""

import argparse
import io
import logging
import os
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.common.peak_memory import forget_peak, peak_gigabytes
from benchmarks.common.reporting import print_machine, print_table
from benchmarks.hunts.upload_kinds import Kind, kinds, make_objects

ALLOWED_SECONDS = 10.0
ALLOWED_GIGABYTES = 2.0
_EXTREMES = (b"\x00", b"\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x80", b"\xff" * 8, b"\n", b'"')
_BOUNDARY = "----bethe"
_ZIP = b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class Upload:
    """One request: where it goes, and its body with its type."""

    kind: str
    seed: int
    address: str
    body: bytes
    content_type: str
    is_program: bool  # with a token instead of a session

    @property
    def way(self) -> str:
        """Through what it goes."""
        return "API" if self.is_program else "page"


@dataclass(frozen=True, slots=True)
class Finding:
    """An upload with an answer that must not be."""

    upload: Upload
    what: str

    def __str__(self) -> str:
        upload = self.upload
        return f"{upload.kind} through the {upload.way}, seed {upload.seed}: {self.what}"


@dataclass(frozen=True, slots=True)
class Target:
    """Addresses in an installation that take uploads, and the clients that may send them."""

    person: Any  # django.test.Client, signed in
    program: Any  # the same, with a token
    keys: dict[str, str]  # of what things are sent to, by their names in addresses

    def address(self, kind: Kind, *, is_program: bool) -> str:
        """Address that takes this kind."""
        return (kind.api if is_program else kind.page).format(**self.keys)

    def fields(self, kind: Kind, number: int) -> dict[str, str]:
        """Fields of the form beside the file; a name that must be new has the number in it."""
        version = ""
        if "{version}" in kind.fields.values():
            from webapp.surveys.models import Questionnaire

            questionnaire = Questionnaire.objects.filter(pk=self.keys["questionnaire"])
            version = str(questionnaire.values_list("version", flat=True).get())
        return {
            name: value.format(version=version, number=number)
            for name, value in kind.fields.items()
        }


def whole(target: Target, kind: Kind, number: int, *, is_program: bool) -> Upload:
    """The upload of a file that nobody damaged."""
    content_type = f"multipart/form-data; boundary={_BOUNDARY}" if kind.part else "application/json"
    body = kind.content
    if kind.part:
        body = _form(kind, target.fields(kind, number), kind.content, kind.file_name)
    address = target.address(kind, is_program=is_program)
    return Upload(kind.name, number, address, body, content_type, is_program)


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the bytes after one to six edits: flips, cuts, repeats, swaps, extreme values."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 7))):
        size = max(len(data), 1)
        # Formats keep what steers a reader at both ends: half of all edits go there.
        place = int(rng.integers(size))
        if rng.random() < 0.5:
            place = int(rng.choice([place % 64, max(size - 1 - place % 128, 0)]))
        length = int(rng.integers(1, 33))
        edit = int(rng.integers(7))
        if edit == 0 and data:
            data[min(place, len(data) - 1)] ^= 1 << int(rng.integers(8))
        elif edit == 1:
            data[place : place + length] = rng.bytes(length)
        elif edit == 2:
            del data[place : place + length]
        elif edit == 3:
            data[place:place] = data[place : place + length] * int(rng.integers(1, 4))
        elif edit == 4:
            extreme = _EXTREMES[int(rng.integers(len(_EXTREMES)))]
            data[place : place + len(extreme)] = extreme
        elif edit == 5 and rng.random() < 0.3:
            del data[place:]
        else:
            other = int(rng.integers(size))
            data[place : place + length] = bytes(data[other : other + length])
    return bytes(data)


def damage(kind: Kind, rng: np.random.Generator) -> tuple[bytes, str]:
    """Return the content of a damaged file and its name."""
    content, name = kind.content, kind.file_name
    way = rng.random()
    if way < 0.15 and content.startswith(_ZIP):  # workbooks and models pack files as well
        return _mutate_within(content, rng), name
    if way < 0.22 and name:
        others = [other for other in kinds() if other.file_name]
        return others[int(rng.integers(len(others)))].content, name
    if way < 0.28 and name:
        return _packed([(name, content)]), f"{name}.zip"
    if way < 0.34 and name:
        name = _odd_name(name, rng)
    return mutate(content, rng), name


def _mutate_within(content: bytes, rng: np.random.Generator) -> bytes:
    """Mutate one of the files in an archive, which is whole around it."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = [(name, archive.read(name)) for name in archive.namelist()]
    chosen = int(rng.integers(len(files)))
    name, inner = files[chosen]
    edit = int(rng.integers(5))
    if edit == 0:
        del files[chosen]
    elif edit == 1:
        files.append(files[chosen])  # two of one name
    elif edit == 2:
        files[chosen] = (_odd_name(name, rng), inner)
    else:
        files[chosen] = (name, mutate(inner, rng))
    return _packed(files)


def _packed(files: list[tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w") as archive:
        warnings.simplefilter("ignore")  # of two files with one name
        for name, content in files:
            archive.writestr(name, content)
    return buffer.getvalue()


def _odd_name(name: str, rng: np.random.Generator) -> str:
    """Return a name that a careless or hostile program would give."""
    stem, dot, ending = name.rpartition(".")
    odd = (
        f"../../{name}", f"/etc/{name}", f"{stem}\u202e.{ending}", f"{stem * 120}.{ending}",
        f"{stem}{dot}{ending.upper()}", ending, f".{name}", f"{stem} ", f"C:\\{name}",
        f"{stem}.php.{ending}", f"e\u0301{name}", f"%00{name}",
    )  # fmt: skip
    return odd[int(rng.integers(len(odd)))]


def uploads(target: Target, count: int, seed: int) -> Iterator[Upload]:
    """Yield ``count`` uploads, kinds in turn; each has a seed of its own, from ``seed`` on."""
    for number in range(count):
        kind = kinds()[number % len(kinds())]
        rng = np.random.default_rng(seed + number)
        is_program = bool(rng.random() < 0.5) and bool(kind.api)
        address = target.address(kind, is_program=is_program)
        is_envelope = bool(rng.random() < 0.15)
        content, name = (kind.content, kind.file_name) if is_envelope else damage(kind, rng)
        if kind.part:
            body = _form(kind, target.fields(kind, seed + number), content, name)
            content_type = f"multipart/form-data; boundary={_BOUNDARY}"
        else:
            body, content_type = content, "application/json"
        if is_envelope:
            head = mutate(content_type.encode(), rng).decode("latin-1")
            content_type = head.translate({10: " ", 13: " ", 0: " "})
            body = mutate(body, rng) if rng.random() < 0.5 else body
        yield Upload(kind.name, seed + number, address, body, content_type, is_program)


def _form(kind: Kind, fields: dict[str, str], content: bytes, file_name: str) -> bytes:
    parts = [
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    name = f'; filename="{file_name}"' if file_name else ""
    head = (
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{kind.part}"{name}\r\n'
        + "Content-Type: application/octet-stream\r\n" * bool(name)
        + "\r\n"
    )
    return "".join([*parts, head]).encode() + content + f"\r\n--{_BOUNDARY}--\r\n".encode()


def send(target: Target, upload: Upload) -> tuple[int, float]:
    """Send one upload as a browser or a program would; return the worst status and the seconds.

    A page is followed to where it leads, which reads the stored file again.
    """
    started = time.perf_counter()
    client = target.program if upload.is_program else target.person
    response = client.generic("POST", upload.address, upload.body, content_type=upload.content_type)
    statuses = [_status(response)]
    if response.status_code == 302:
        statuses.append(_status(client.get(response["Location"])))
    return max(statuses), time.perf_counter() - started


def _status(response: Any) -> int:
    """Status of an answer, once all of it was made; 599 where making it failed half-way."""
    if getattr(response, "streaming", False):
        try:
            b"".join(response.streaming_content)
        except Exception:
            return 599
    return int(response.status_code)


def try_uploads(
    target: Target, count: int, seed: int, between: Callable[[int], None] = lambda number: None
) -> tuple[list[Finding], Counter[tuple[str, int]], float]:
    """Send ``count`` uploads; return findings, how often each kind got each status, the slowest."""
    findings: list[Finding] = []
    statuses: Counter[tuple[str, int]] = Counter()
    slowest, rows = 0.0, count_rows()

    def note(what: str) -> None:
        findings.append(Finding(upload, what))
        print(findings[-1], file=sys.stderr, flush=True)  # a run of hours may be cut off

    for number, upload in enumerate(uploads(target, count, seed)):
        status, seconds = send(target, upload)
        statuses[upload.kind, status] += 1
        slowest = max(slowest, seconds)
        before, rows = rows, count_rows()
        changed = {name: n - before[name] for name, n in rows.items() if n != before[name]}
        if status >= 500:
            note(f"answer {status}")
        if status >= 400 and changed:
            note(f"answer {status}, and yet rows changed: {changed}")
        if seconds > ALLOWED_SECONDS:
            note(f"{seconds:.1f} s")
        between(number)
    return findings, statuses, slowest


def count_rows() -> dict[str, int]:
    """Return the number of rows of every table, without those that count visits and failures."""
    from django.apps import apps

    apart = ("sessions", "axes", "audit")
    return {
        model._meta.label: model._default_manager.count()
        for model in apps.get_models()
        if model._meta.app_label not in apart
    }


def make_target(user: Any) -> Target:
    """Make what is uploaded to, owned by this person, and clients."""
    from django.test import Client

    from webapp.api.services import token_create

    _, secret = token_create(user=user, name="mutated", may_change=True, days=1)
    person = Client(raise_request_exception=False)
    person.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    program = Client(raise_request_exception=False, headers={"authorization": f"Bearer {secret}"})
    return Target(person=person, program=program, keys=make_objects(user))


def new_installation(folder: str) -> Any:
    """Set up an installation in a folder; return its one person."""
    os.environ |= {
        "BETHE_HALL_INSTANCE": folder,
        "DJANGO_SETTINGS_MODULE": "webapp.settings",
        "SECURE_COOKIES": "0",
        "ALLOWED_HOSTS": "testserver",
    }
    for name in ("DATABASE_URL", "REDIS_URL", "DEBUG"):
        os.environ.pop(name, None)
    import django

    django.setup()
    logging.disable(logging.WARNING)  # a refusal is what most uploads are for
    from django.core.management import call_command

    from webapp.accounts.models import Organisation, User

    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    organisation = Organisation.objects.create(name="Northfield", department="Housing")
    return User.objects.create_user(username="bob", organisation=organisation, role="staff")


def main() -> int:
    """Run the long form; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--load", type=int, default=0, help="other processes that are busy")
    options = parser.parse_args()
    print_machine()
    with tempfile.TemporaryDirectory() as folder, busy_processes(options.load):
        target = make_target(new_installation(folder))
        forget_peak()
        findings, statuses, slowest = try_uploads(
            target, options.count, options.seed, between=_say_progress
        )
    peak = peak_gigabytes()
    kinds = sorted({kind for kind, _ in statuses})
    seen = sorted({status for _, status in statuses})
    rows = [[kind, *(statuses[kind, status] for status in seen)] for kind in kinds]
    print_table("Answers by kind and status", ["kind", *map(str, seen)], rows)
    print(f"{options.count} uploads from seed {options.seed}: {len(findings)} findings, "
          f"slowest {slowest:.2f} s, peak memory {peak:.2f} GB")  # fmt: skip
    for finding in findings:
        print(finding)
    return int(bool(findings) or peak > ALLOWED_GIGABYTES)


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep other processes busy within."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def _say_progress(number: int) -> None:
    if number % 1000 == 999:
        print(f"{number + 1} sent", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
