"""Every text of a page for staff is in the language of staff, or data."""

import re
from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.pseudo_language import bare_texts, untranslated
from tests.webapp.test_addresses import LINKED
from webapp.accounts.models import User
from webapp.housing.models import BuildingList
from webapp.jobs.models import Job, JobState
from webapp.jobs.registry import Queue, kinds_of
from webapp.jobs.services import job_enqueue

# Pages that are not in the language of staff, each with the reason.
ELSEWHERE = {
    **dict.fromkeys(LINKED, "students choose its language"),
    "surveys:preview": "students choose its language",
    "api:docs": "for programmers, in English",
    "audit:log": "the audit log is in English",
}
# Texts of single pages that stay as they are, each with the reason.
ALLOWED = {
    # what the engine says of rows of a file
    "cohorts:pairs-draft": re.compile(
        r"Row \d+: .*|.* are in no pair\.|\d+ more rows with such problems\."
        r"|They are left out when.*|Smokes|Tidiness|student_id"
    ),
    # names of the columns of a file; what the engine says of its rows
    "cohorts:draft": re.compile(r"E-mail|Smokes|Tidiness|student_id|\d+ rows =.*"),
    "cohorts:student-file": re.compile(r"student|wants"),
    "housing:building-draft": re.compile(r"Hall|Room|Beds|open"),
    # labels of the fields for a text in another language: the text itself, cut short
    "surveys:languages": re.compile(r".* \(es\)"),
    # names and content of the columns of a file; a language in the list of their uses
    "surveys:languages-draft": re.compile(
        r"text|fr|Asked, Nothing of it|Enquête(?:, Rien)?|Afrikaans"
    ),
    # names of queues and of a machine
    "operations:page": re.compile(r"\b(?:short|long|hall)\b"),
    # Django's own form, in its own languages
    "accounts:password": re.compile(
        r"(?:Old|New) password(?: confirmation)?|Your password (?:can’t|must) .*|Enter the same .*"
    ),
    # an example of how a system writes a day
    "reports:rosters": re.compile(r"20-AUG-2026"),
}


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("<p>⟦Two rooms⟧ in Alder</p>", ["in Alder"]),
        ('<button title="Open">⟦Open ⟦the placement⟧⟧</button>', ["Open"]),
        ('<input type="submit" value="Save"><input value="Alder">', ["Save"]),
        ("<td>⟦cut off…</td><td>Suite 201</td>", ["Suite 201"]),
        ("<p>⟦<b>bold</b> and⟧ 12</p><script>let text;</script>", []),
    ],
)
def test_the_reader_finds_texts_outside_of_brackets(page: str, found: list[str]) -> None:
    assert list(bare_texts(page)) == found


def jobs_of(user: User) -> dict[str, str]:
    """Return the addresses of a job of each kind, each with the plot of a run."""
    found = {}
    for queue in Queue:
        for kind in kinds_of(queue):
            job = job_enqueue(user=user, kind=kind, parameters={}, title="First-years")
            for k in range(3):
                job.trace.create(iteration=k, seconds=k, objective=3 - k, lower_bound=k - 3, gap=1)
            Job.objects.filter(pk=job.pk).update(state=JobState.RUNNING, seconds_left=60)
            found[f"job {kind}"] = reverse("jobs:job", args=[job.pk])
    return found


@pytest.mark.any_database
@pytest.mark.usefixtures("pseudo_language")
def test_every_text_is_translated_or_data(
    client_of: Callable[[User], Client],
    carol: User,
    bob: User,
    urls: dict[str, str],
    campus: BuildingList,
) -> None:
    User.objects.filter(pk=carol.pk).update(is_operator=True)
    campus.rooms.update(suite="201", extra_beds=1)
    pages = {name: url for name, url in urls.items() if name not in ELSEWHERE} | jobs_of(bob)
    count, found = untranslated(client_of(carol), pages, ALLOWED)
    assert count > 120
    assert not found, "\n".join(found)
