"""A cohort of six students with names and e-mails, placed in rooms without any computation."""

from django.utils import timezone

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Student
from webapp.housing.models import BuildingList, Place, Placement, Room
from webapp.matching.models import LearnedModel

NAMES = ("Anna Ash", "Ben Birch", "Cleo Cedar", "Dan Dogwood", "Eva Elm", "Finn Fir")


def placed_cohort(user: User, name: str = "First-years") -> Placement:
    """A cohort of six: two doubles, a single, and one student without a room."""
    cohort = Cohort.objects.create(
        organisation=user.organisation,
        created_by=user,
        name=name,
        questions=[],
        constraints=["Share my e-mail"],
        n_students=6,
    )
    students = Student.objects.bulk_create(
        Student(
            cohort=cohort,
            number=1001 + k,
            original_id=f"+47{k}",
            email=f"{full.split()[0].lower()}@uni.example",
            name=full,
            answers=[],
            attributes={"Share my e-mail": "yes" if k % 2 else "no"},
        )
        for k, full in enumerate(NAMES)
    )
    buildings = BuildingList.objects.create(
        organisation=user.organisation, created_by=user, name=f"Campus of {name}"
    )
    rooms = [
        Room.objects.create(
            buildings=buildings, hall="Alder", floor="1", name=label, capacity=beds, position=k
        )
        for k, (label, beds) in enumerate((("101", 2), ("102", 2), ("103", 1), ("104", 2)))
    ]
    placement = Placement.objects.create(
        organisation=user.organisation,
        created_by=user,
        name=f"Rooms of {name}",
        cohort=cohort,
        buildings=buildings,
        model=LearnedModel.objects.create(organisation=user.organisation, name=f"M {name}"),
        revision=1,
    )
    where = [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (None, None)]
    Place.objects.bulk_create(
        Place(
            placement=placement,
            student=student,
            number=student.number,
            room=None if room is None else rooms[room],
            bed=bed,
        )
        for student, (room, bed) in zip(students, where, strict=True)
    )
    placement.count_people()
    placement.save()
    return placement


def publish(placement: Placement) -> None:
    placement.published_at, placement.published_by = timezone.now(), "carol"
    placement.save(update_fields=["published_at", "published_by"])


def move(placement: Placement, number: int, label: str, bed: int = 1) -> None:
    """Put somebody elsewhere, as a late change does."""
    room = placement.buildings.rooms.get(name=label)
    placement.places.filter(number=number).update(room=room, bed=bed)
