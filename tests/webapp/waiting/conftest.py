"""A published placement with a free double, and four students who wait for a bed."""

from collections.abc import Callable

import pytest

from tests.webapp.factories.placed import placed_cohort, publish
from tests.webapp.factories.residents import Resident
from tests.webapp.factories.tries import forget_tries
from webapp.accounts.models import User
from webapp.cohorts.models import Student
from webapp.housing.models import Place, Placement, Room
from webapp.housing.scores import Scores

WAITING = (1006, 1007, 1008, 1009)
YEARS = ("First", "Senior", "Junior", "Senior")


@pytest.fixture(autouse=True)
def no_tries_before() -> None:
    forget_tries()


@pytest.fixture
def placement(bob: User, monkeypatch: pytest.MonkeyPatch) -> Placement:
    """Anna and Ben share 101, Cleo and Dan 102, Eva lives alone, 104 is free, four wait."""
    monkeypatch.setattr(Scores, "of_rooms", lambda self, rooms, stays=None: {})
    monkeypatch.setattr(Scores, "of_members", lambda self, members: dict.fromkeys(members))
    made = placed_cohort(bob)
    made.cohort.constraints = ["Share my e-mail", "Year", "Needs"]
    made.cohort.save(update_fields=["constraints"])
    for k, number in enumerate(WAITING):
        if number > 1006:
            student = Student.objects.create(
                cohort=made.cohort, number=number, original_id=f"+48{k}", answers=[],
                email=f"w{k}@uni.example", name=f"Wait {'GHI'[k - 1]}",
            )  # fmt: skip
            Place.objects.create(placement=made, student=student, number=number)
        attributes = {"Year": YEARS[k], "Needs": "Ground floor" if number == 1008 else ""}
        Student.objects.filter(cohort=made.cohort, number=number).update(attributes=attributes)
    publish(made)
    return made


@pytest.fixture
def free_room(placement: Placement) -> Room:
    return placement.buildings.rooms.get(name="104")


@pytest.fixture
def resident(placement: Placement) -> Callable[..., Resident]:
    def open_link(number: int, language: str = "en") -> Resident:
        return Resident(placement.cohort.students.get(number=number), language)

    return open_link
