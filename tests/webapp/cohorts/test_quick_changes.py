"""Every kind of change at the preview answers within 300 ms, at the sizes of real files."""

import gc
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse

from engine.tabular.choices import Role
from tests.tabular.file_writers import PEOPLE, as_csv, qualtrics_rows
from webapp.accounts.models import User
from webapp.cohorts.models import Draft
from webapp.cohorts.services.drafts import draft_create, draft_review
from webapp.collector import freeze_loaded_objects

# Aimed at are 300 ms on the whole. Measured is the processor's part, on whatever machine: .01 to
# .13 s where this was written; starting over, which looks at all columns as an upload does, .2. A
# busy machine whose memory earlier tests have scattered takes three times as long; on a slower one
# the limits grow with the time that reading the file takes.
SECONDS = 0.5
SECONDS_FROM_SCRATCH = 1.2
READING_SECONDS = 0.5  # .3 where this was written


@pytest.fixture(autouse=True)
def spared() -> Iterator[None]:
    """Collect garbage as web processes do: a walk over all that tests left takes two seconds."""
    threshold = gc.get_threshold()
    freeze_loaded_objects()
    yield
    gc.set_threshold(*threshold)
    gc.unfreeze()


OPINIONS = ("Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree")


def qualtrics_year() -> list[list[str]]:
    """2,562 rows and 33 columns of a Qualtrics export; 60 people answered twice."""
    rng = random.Random(2)
    people = [
        replace(PEOPLE[k % len(PEOPLE)], number=f"N{k % 2_502:05d}", tidy=str(rng.randint(1, 5)),
                sleep=4 + rng.randrange(30) / 4, comments=f"Remark {rng.random()}" * (k % 3))
        for k in range(2_562)
    ]  # fmt: skip
    table = qualtrics_rows(people, headers=3, person="question")
    for k, row in enumerate(table):
        more = 33 - len(table[0]) if k == 0 else 33 - len(row)
        head = k < 3
        row += [
            (f"Q{20 + j}", f"Opinion number {j}?", f'{{"ImportId": "QID{20 + j}"}}')[k]
            if head else rng.choice(OPINIONS)
            for j in range(more)
        ]  # fmt: skip
    return table


def wide_year() -> list[list[str]]:
    """1,010 rows and 150 columns: scales, words, numbers and texts by turns."""
    rng = random.Random(3)
    table = [["Student ID", "Gender", *(f"Item {j}" for j in range(148))]]
    for k in range(1_010):
        row = [f"N{k}", rng.choice(("female", "male"))]
        for j in range(148):
            row.append(
                str(rng.randint(1, 5)) if j % 10 < 7
                else rng.choice(OPINIONS) if j % 10 < 9
                else f"{rng.randint(150, 199)}"
            )  # fmt: skip
        table.append(row)
    return table


YEARS = {"2,562 x 33": qualtrics_year, "1,010 x 150": wide_year}


def presses(draft: Draft) -> Iterator[dict[str, str]]:
    """Every kind of button that the page has, one after the other, with its fields."""
    columns = draft_review(draft).preview.columns
    questions = [c for c in columns if c.choice.role is Role.QUESTION] or [
        c for c in columns if len(c.choice.levels) > 2
    ]
    many = max(questions, key=lambda c: len(c.choice.levels))
    column = str(many.index)
    person = next(str(c.index) for c in columns if c.choice.role is Role.ID)
    for role in ("question", "ignore", "constraint", "question", "email", "name", "question"):
        yield {"action": "role", "column": column, "value": role}
    yield {"action": "rename", "column": column, "value": "Another name"}
    yield {"action": "kind", "column": column, "value": "nominal"}
    yield {"action": "reverse", "column": column}
    yield {"action": "move", "column": column, "position": "0", "value": "down"}
    level = many.choice.levels[0]
    yield {"action": "meaning", "column": column, "answer": level, "value": many.choice.levels[1]}
    yield {"action": "open", "column": column}
    yield {"action": "undo"}
    yield {"action": "leave_out", "row": "50"}
    yield {"action": "role", "column": str(questions[1].index), "value": "id"}
    yield {"action": "role", "column": person, "value": "id"}
    yield {"action": "keep_best", "value": "20"}
    for key in [cause.key for cause in draft_review(draft).causes if cause.is_open]:
        yield {"action": "fix", "value": key}
    yield {"action": "start_over"}
    yield {"action": "fix_all"}


@pytest.mark.parametrize("year", YEARS)
def test_every_kind_of_change_is_quick(
    year: str, bob: User, client_of: Callable[[User], Client]
) -> None:
    data = as_csv(YEARS[year]())
    begun = time.process_time()
    draft = draft_create(user=bob, filename="a.csv", size=len(data), read=lambda: data)
    slower = max(1.0, (time.process_time() - begun) / READING_SECONDS)
    client, address = client_of(bob), reverse("cohorts:draft-change", args=[draft.pk])
    client.get(reverse("cohorts:draft", args=[draft.pk]))
    slow = {}
    for fields in presses(draft):
        draft.refresh_from_db()
        begun = time.process_time()
        answer = client.post(
            address, {**fields, "version": str(draft.version)}, headers={"HX-Request": "true"}
        )
        seconds = time.process_time() - begun
        assert answer.status_code == 200, fields
        limit = SECONDS_FROM_SCRATCH if fields["action"] == "start_over" else SECONDS
        if seconds > limit * slower:
            slow[str(fields)] = seconds
    assert not slow
