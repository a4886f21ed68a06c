"""Another process holds the only write lock of SQLite: pages are read, changes wait."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
import requests

from tests.live.product import Product
from tests.live.test_silent_broker import _TOKEN
from tests.live.visitor import PATIENCE, Visitor
from tests.patience import busyness, wait_for

pytestmark = pytest.mark.slow

WRITERS = 60  # many more than there are threads
MOST_WAIT = 16  # half of the threads of each of two to four processes
READ_SECONDS = 4.0  # on an idle machine


@contextmanager
def held(product: Product) -> Iterator[None]:
    """Hold the write lock, as a shell or a copy does that somebody forgot."""
    path = product.instance / "bethe_hall.sqlite3"
    with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            connection.execute("ROLLBACK")


def test_pages_are_read_while_another_process_holds_the_database(product: Product) -> None:
    visitor = Visitor(product)
    token = product.run(_TOKEN).splitlines()[-1]
    program = {"Authorization": f"Bearer {token}"}
    pages = visitor.pages()
    assert len(pages) > 15
    limit = READ_SECONDS * busyness()
    with held(product):
        # The page that makes a secret for a second factor writes it into the session.
        for path in pages.keys() - {"/accounts/second-factor/"}:
            answer = visitor.get(path, timeout=limit)
            assert answer.status_code == 200, product.logs()
        answer = requests.get(f"{product.url}/api/v1/jobs", headers=program, timeout=limit)
        assert answer.status_code == 200
        ready = requests.get(f"{product.url}/readyz", timeout=limit)
        assert (ready.status_code, ready.json()["database"]) == (200, "slow")


def test_many_who_wait_to_write_leave_room_for_those_who_read(product: Product) -> None:
    visitor = Visitor(product)
    forms = [{"steps": "1"} | visitor.token_of(visitor.get("/counting/")) for _ in range(WRITERS)]
    with ThreadPoolExecutor(WRITERS) as threads:
        with held(product):
            posts = [threads.submit(visitor.post, "/counting/", form) for form in forms]
            # Those who find no room to wait are turned away; the others hold their threads.
            assert wait_for(lambda: sum(post.done() for post in posts) >= WRITERS - MOST_WAIT)
            for path in ("/", "/jobs/", "/cohorts/", "/healthz"):
                # On a connection of its own: the server may be closing one that posts left.
                page = requests.get(
                    product.url + path, cookies=visitor.session.cookies, timeout=PATIENCE
                )
                assert page.status_code == 200
                assert "sign-in" not in page.url
                assert not all(post.done() for post in posts), "the page waited as they did"
        answers = [post.result() for post in posts]
    assert {answer.status_code for answer in answers} <= {200, 503}
    assert all(
        int(answer.headers["Retry-After"]) > 0 for answer in answers if answer.status_code == 503
    )
