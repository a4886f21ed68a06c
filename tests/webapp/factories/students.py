"""A small cohort with names, in rooms of a published placement, without any computation."""

from django.utils import timezone

from tests.tabular.file_writers import as_csv
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.cohorts.services.drafts import draft_create
from webapp.cohorts.services.imports import draft_import
from webapp.housing.models import BuildingList, Placement, Preference, Room, RoommateRequest
from webapp.matching.services.set_models import model_set

PEOPLE = [
    ("N01", "Silva", "José", "", "he/him", "jose.silva@northfield.example"),
    ("N02", "Müller", "Zoë", "Zo", "she/her", "zoe@northfield.example"),
    ("N03", "Silva", "Jose Maria", "", "", "jm@northfield.example"),
    ("N04", "Lee", "Ann", "Annie", "they/them", "ann@northfield.example"),
]


NAMES = ("Silva", "José", "Müller", "Zoë", "Ann Lee", "Annie", "northfield.example", "they/them")


def imported(user: User, name: str) -> Cohort:
    """Return a cohort imported from a file whose columns nobody corrected."""
    rows = [["Student ID", "Last name", "First name", "Preferred name", "Pronouns", "E-mail",
             "Bedtime", "Smokes", "Housing needs"]]  # fmt: skip
    rows += [
        [*person, ("Early", "Late")[k % 2], ("Yes", "No")[k // 2], ("Quiet", "")[k > 0]]
        for k, person in enumerate(PEOPLE)
    ]
    data = as_csv(rows)
    draft = draft_create(user=user, filename="s.csv", size=len(data), read=lambda: data)
    return draft_import(user=user, draft=draft, name=name, version=draft.version)


def place_students(user: User, cohort: Cohort) -> Placement:
    """Let José and Zoë share Baker 12, who asked for each other; Jose lives alone, Ann waits."""
    model = model_set(user=user, name="M", cohort=cohort, importance={"Bedtime": 1.0})
    buildings = BuildingList.objects.create(
        organisation=user.organisation, created_by=user, name="Campus"
    )
    double, single = (
        Room.objects.create(buildings=buildings, hall="Baker", name=name, capacity=beds, position=k)
        for k, (name, beds) in enumerate((("12", 2), ("13", 1)))
    )
    made = Placement.objects.create(
        organisation=user.organisation,
        created_by=user,
        name="Autumn",
        cohort=cohort,
        buildings=buildings,
        model=model,
        revision=1,
        published_at=timezone.now(),
    )
    first, second, third, fourth = cohort.students.order_by("number")
    for student, room, bed in (
        (first, double, 1), (second, double, 2), (third, single, 1), (fourth, None, None),
    ):  # fmt: skip
        made.places.create(student=student, number=student.number, room=room, bed=bed)
    made.count_people()
    made.save()
    for asker, target in ((first, second), (second, first), (fourth, first)):
        RoommateRequest.objects.create(cohort=cohort, student=asker, target=target, source="File")
    Preference.objects.create(cohort=cohort, student=first, rank=1, wanted="Baker")
    return made
