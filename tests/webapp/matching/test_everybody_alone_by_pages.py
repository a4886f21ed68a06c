"""A year in which everybody lives alone, by the pages: every step answers or says why."""

import csv
import io
from collections.abc import Callable

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import CharField, Value
from django.db.models.functions import Cast, Concat
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.university import run_waiting
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Draft
from webapp.housing.models import Placement
from webapp.jobs.models import Job
from webapp.matching.models import LearnedModel

PAIRS = {"buildings": "pairs", "same": ["Gender"]}
LEARN = {"ridge": "100.0", "gap": "0.0001", "rho": "1.0", "method": "auto"}


@pytest.fixture
def staff(bob: User, client_of: Callable[[User], Client]) -> Client:
    return client_of(bob)


def words(answer: object) -> str:
    return Page(answer, status=answer.status_code).text


def test_a_roster_of_single_rooms_says_that_nobody_has_a_roommate(
    staff: Client, first_years: Cohort
) -> None:
    first_years.students.update(original_id=Concat(Value("N"), Cast("number", CharField())))
    ids = first_years.students.values_list("original_id", flat=True)
    rows = "".join(f"{one},R{k}\n" for k, one in enumerate(ids))
    file = SimpleUploadedFile("roster.csv", f"Student,Room\n{rows}".encode())
    page = staff.post(
        reverse("cohorts:pairs-upload", args=[first_years.pk]), {"file": file}, follow=True
    )
    said = "Nobody in this roster has a roommate."
    assert said in words(page)
    draft = Draft.objects.get(cohort=first_years)
    confirm = reverse("cohorts:pairs-confirm", args=[first_years.pk, draft.pk])
    page = staff.post(confirm, {"version": draft.version}, follow=True)
    assert f"{said} Nothing was imported." in words(page)
    first_years.refresh_from_db()
    assert first_years.n_pairs == 0


def test_nothing_is_learned_from_people_who_live_alone(
    staff: Client, first_years: Cohort, returning: Cohort
) -> None:
    new = reverse("matching:model-new")
    assert "First-years" not in words(staff.get(new)), "it is not offered"
    page = staff.post(new, {**LEARN, "name": "M", "cohort": [str(first_years.pk)]})
    assert page.status_code == 422
    assert "Choose at least one cohort" in words(page)
    Cohort.objects.filter(pk=returning.pk).update(n_pairs=1)
    page = staff.post(new, {**LEARN, "name": "M", "cohort": [str(returning.pk)]})
    assert page.status_code == 422
    assert "Returning 2024 has 1 pair; at least 2 are needed" in words(page)
    assert not LearnedModel.objects.exists()
    assert not Job.objects.exists()


def test_a_model_is_not_checked_on_people_who_live_alone(
    staff: Client, first_years: Cohort, learned: LearnedModel
) -> None:
    address = reverse("matching:model", args=[learned.pk])
    assert "First-years" not in words(staff.get(address)), "it is not offered"
    check = reverse("matching:model-check", args=[learned.pk])
    page = staff.post(check, {"cohort": str(first_years.pk)}, follow=True)
    assert "First-years has 0 pairs; at least 2 are needed to check." in words(page)
    assert not Job.objects.exists()


def test_pairs_are_proposed_to_people_who_live_alone(
    staff: Client, first_years: Cohort, learned: LearnedModel
) -> None:
    fields = {"cohort": str(first_years.pk), "model": str(learned.pk), "name": "Next year"} | PAIRS
    page = staff.post(reverse("housing:placement-new"), fields, follow=True)
    assert page.status_code == 200
    assert [job.state for job in run_waiting()] == ["succeeded"]
    made = Placement.objects.get()
    assert made.pairs.count() == 16
    assert "Next year" in words(staff.get(reverse("housing:placement", args=[made.pk])))
    export = staff.get(reverse("housing:pairs-export", args=[made.pk, "csv"]))
    data = b"".join(export) if export.streaming else export.content
    assert len(list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))) == 17


def test_weights_set_by_hand_serve_people_who_live_alone(
    staff: Client, first_years: Cohort
) -> None:
    assert "Placements" in words(staff.get(reverse("housing:placements")))
    fields = {"name": "Ours", "cohort": str(first_years.pk)}
    page = staff.post(reverse("matching:model-set"), fields, follow=True)
    assert page.status_code == 200
    model = LearnedModel.objects.get()
    intervals = reverse("matching:model-intervals", args=[model.pk])
    page = staff.post(intervals, follow=True)
    assert page.status_code == 200
    assert not Job.objects.exists()
    fields = {"cohort": str(first_years.pk), "model": str(model.pk), "name": "P"} | PAIRS
    staff.post(reverse("housing:placement-new"), fields)
    assert [job.state for job in run_waiting()] == ["succeeded"]
