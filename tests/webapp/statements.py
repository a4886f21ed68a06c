"""Notes of the statements that each test sends, and a choice of tests that send all of them.

Every test of the web runs on SQLite. On another database it is enough that every statement of the
product, and every error that one ends with, comes from some test: those that ran on SQLite left
notes of theirs, from which the tests for the other database are chosen.
"""

import hashlib
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.db import connection

from tests.made_once import shared_folder

_LIST = re.compile(r"(?:(?:, )?\((?:%s(?:, )?)+\))+|\b\d+\b")
_OF_A_TEST = ("SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN", "PRAGMA", "SELECT sqlite_version")


@dataclass(frozen=True, slots=True)
class Sent:
    """Digests of the statements that one test sent, and its CPU seconds."""

    statements: frozenset[str]
    seconds: float


@lru_cache(maxsize=20_000)  # most statements are sent again and again
def shape_of(sql: str) -> str:
    """Return a statement without what differs from call to call: numbers and lengths of lists."""
    return _LIST.sub("()", sql)


@contextmanager
def noted(test: str) -> Iterator[None]:
    """Leave a note of the statements that a test sends in the folder of the run."""
    found: set[str] = set()

    def note(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        shape = shape_of(sql)
        try:
            answer = execute(sql, *rest)
        except Exception as error:
            shape += f" ends with {type(error).__name__}"
            raise
        finally:
            if not shape.startswith(_OF_A_TEST):
                found.add(hashlib.md5(shape.encode(), usedforsecurity=False).hexdigest()[:12])
        return answer

    begun = time.process_time()
    with connection.execute_wrapper(note):
        yield
    row = {"test": test, "seconds": time.process_time() - begun, "statements": sorted(found)}
    with _notes_of_this_process().open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def read_notes() -> dict[str, Sent]:
    """Return the notes of the run so far, by test; empty if nothing ran on SQLite before."""
    found: dict[str, Sent] = {}
    for path in sorted(shared_folder().glob("statements-*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            found[row["test"]] = Sent(frozenset(row["statements"]), row["seconds"])
    return found


def covering(notes: Mapping[str, Sent]) -> set[str]:
    """Return tests that together send every statement of all of them: quick ones first."""
    kept: dict[str, frozenset[str]] = {}
    covered: Counter[str] = Counter()
    for test in sorted(notes, key=lambda name: (notes[name].seconds, name)):
        statements = notes[test].statements
        if any(not covered[one] for one in statements):
            kept[test] = statements
            covered.update(statements)
    # What later tests send as well needs no test of its own; the slowest go first.
    for test in reversed(list(kept)):
        if all(covered[one] > 1 for one in kept[test]):
            covered.subtract(kept.pop(test))
    return set(kept)


def _notes_of_this_process() -> Path:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    return shared_folder() / f"statements-{worker}.jsonl"
