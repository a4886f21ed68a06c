"""A published placement of six students with names and e-mails, and a mail server that says no."""

import socketserver
import threading
from collections.abc import Iterator

import pytest
from django.conf import LazySettings
from django.utils import timezone

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Student
from webapp.housing.models import BuildingList, Place, Placement, Room
from webapp.letters.models import LetterTemplate
from webapp.letters.services.templates import FIRST_SUBJECT, FIRST_TEXT, template_save
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
    return placement


def publish(placement: Placement) -> None:
    placement.published_at, placement.published_by = timezone.now(), "carol"
    placement.save(update_fields=["published_at", "published_by"])


def move(placement: Placement, number: int, label: str, bed: int = 1) -> None:
    """Put somebody elsewhere, as a late change does."""
    room = placement.buildings.rooms.get(name=label)
    placement.places.filter(number=number).update(room=room, bed=bed)


@pytest.fixture
def placement(bob: User) -> Placement:
    made = placed_cohort(bob)
    publish(made)
    return made


@pytest.fixture
def template(bob: User) -> LetterTemplate:
    return template_save(
        user=bob,
        template=None,
        name="Rooms",
        subject=FIRST_SUBJECT,
        text=FIRST_TEXT,
        contact="agreed",
        consent_column="Share my e-mail",
    )


class Mailbox(socketserver.ThreadingTCPServer):
    """An SMTP server: refuses addresses of nobody, is busy for later, cuts off cut."""

    allow_reuse_address = daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Talk)
        self.taken: list[tuple[str, str]] = []


class _Talk(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        self.say("220 hello")
        to = ""
        while line := self.rfile.readline().decode().strip():
            word = line[:4].upper()
            if word == "RCPT":
                to = line.split("<")[1].split(">")[0]
                if to.startswith("cut"):
                    return
                code = {"nobody": "550 no such user", "later": "451 busy"}
                self.say(code.get(to.split("@")[0], "250 ok"))
            elif word == "DATA":
                self.say("354 go on")
                lines = []
                while (text := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                    lines.append(text)
                self.server.taken.append((to, "\n".join(lines)))
                self.say("250 taken")
            elif word == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 ok")

    def say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@pytest.fixture
def mailbox(settings: LazySettings) -> Iterator[Mailbox]:
    server = Mailbox()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = server.server_address
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
    settings.EMAIL_TIMEOUT = 5
    yield server
    server.shutdown()
    server.server_close()
