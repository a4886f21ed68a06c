"""A rooms file, a roster or a survey in the wrong place is recognised and moved."""

from collections.abc import Callable

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from engine.tabular.file_kinds import FileKind, kind_of_file
from engine.tabular.reading import read_table
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.cohorts.models import Cohort, Draft, Student
from webapp.housing.models import BuildingDraft

ClientOf = Callable[[User], Client]

ROOMS = {
    "capacities": "Building,Floor,Room Number,Beds,Gender,Features,Status\n"
    + "".join(f"Elm House,1,{n},2,Woman,Ground floor,Open\n" for n in range(101, 120)),
    "beds": "Hall,Room,Bed,Designation\n"
    + "".join(f"Chapin House,{n},{bed},Men\n" for n in range(1, 9) for bed in "AB"),
    "kinds": "Residence;Zimmer;Room type\n"
    + "".join(f"Haus {n % 2};{n};Double\n" for n in range(1, 9)),
    "needs": "Building,Room,Capacity,Ground floor,Wheelchair,Visual alarm,RA e-mail\n"
    + "".join(f"Elm,{n},2,Yes,,Yes,{'ra@x.edu' if n == 1 else ''}\n" for n in range(1, 9)),
}
ROSTERS = {
    "e-mails": "Hall,Room,Bed,Email\n"
    + "".join(f"Elm,{n // 2},{'AB'[n % 2]},p{n}@x.edu\n" for n in range(8)),
    "names": "Last name,First name,Building,Room\n"
    + "".join(f"{'ABCDEFGH'[n]}lee,Ann,Elm House,{n // 2}\n" for n in range(8)),
    "numbers": "Student ID,Room Space,Gender,Class\n"
    + "".join(f"9000{n},Elm-{n // 2},Woman,Senior\n" for n in range(8)),
}
_ANSWERS = ("Never", "Often", "Always")
SURVEYS = {
    "forms": "Timestamp,Email Address,Full name,Gender,Bedtime,Tidy,Guests,Smoke\n"
    + "".join(
        f"05/0{n + 1}/2025 09:21:00,q{n}@x.edu,Ann {'ABCDEFGH'[n]}lee,Woman,"
        f"{('Early', 'Late')[n % 2]},{n % 5 + 1},{_ANSWERS[n % 3]},{('Yes', 'No')[n % 2]}\n"
        for n in range(8)
    ),
    "with halls": "Student ID,Hall,Bedtime,Tidy,Guests,Smoke\n"
    + "".join(
        f"X{n},Elm,{('Early', 'Late')[n % 2]},{n % 5 + 1},{_ANSWERS[n % 3]},"
        f"{('Yes', 'No')[n % 2]}\n"
        for n in range(8)
    ),
}
OTHERS = {
    "requests": "Email,Requested roommate\n"
    + "".join(f"a{n}@x.edu,b{n}@x.edu\n" for n in range(8)),
    "choices": "Email,First choice\n" + "".join(f"a{n}@x.edu,Elm\n" for n in range(8)),
    "needs": "Student ID,Need\n" + "".join(f"X{n},Ground floor\n" for n in range(8)),
    "pairs": "Resident 1,Resident 2\n" + "".join(f"Ann L{n},Bob K{n}\n" for n in range(8)),
    "e-mails": "id,E-mail,Name\n" + "".join(f"X{n},a{n}@x.edu,Ann Lee\n" for n in range(8)),
}
FILES = [
    *((FileKind.ROOMS, text) for text in ROOMS.values()),
    *((FileKind.ROSTER, text) for text in ROSTERS.values()),
    *((FileKind.SURVEY, text) for text in SURVEYS.values()),
]
QUESTIONS = {
    FileKind.ROOMS: "These are rooms. Import as a building list?",
    FileKind.ROSTER: "This is a roster of students and rooms. Import as past roommates?",
    FileKind.SURVEY: "This is a survey. Import as a cohort?",
}


@pytest.mark.parametrize(("kind", "text"), [*FILES, *((None, text) for text in OTHERS.values())])
def test_the_kind_of_a_file_is_recognised(kind: FileKind | None, text: str) -> None:
    assert kind_of_file(read_table(text.encode())) is kind


@pytest.fixture
def cohort(bob: User) -> Cohort:
    """Four students of this year whom no file names."""
    made = Cohort.objects.create(
        organisation=bob.organisation,
        created_by=bob,
        name="This year",
        questions=[{"name": "Tea", "kind": "binary", "levels": ["No", "Yes"]}],
        n_students=4,
    )
    Student.objects.bulk_create(
        Student(cohort=made, number=1001 + k, original_id=f"T{k}", answers=[0]) for k in range(4)
    )
    return made


SLOTS = {
    "survey": ("/cohorts/import/", {}),
    "pairs": ("/cohorts/{}/pairs/", {}),
    "requests": ("/cohorts/{}/requests/import/requests/", {}),
    "choices": ("/cohorts/{}/requests/import/preferences/", {}),
    "needs": ("/cohorts/{}/requests/import/needs/", {}),
    "late arrivals": ("/cohorts/{}/add/", {}),
    "buildings": ("/buildings/new/", {}),
}
RIGHT = {"survey": FileKind.SURVEY, "pairs": FileKind.ROSTER, "buildings": FileKind.ROOMS}


def text_of(kind: FileKind) -> str:
    return next(text for one, text in FILES if one is kind)


@pytest.mark.parametrize("slot", SLOTS)
@pytest.mark.parametrize("kind", FileKind)
def test_a_file_in_the_wrong_slot_is_moved(
    bob: User, cohort: Cohort, client_of: ClientOf, slot: str, kind: FileKind
) -> None:
    client, (address, sent) = client_of(bob), SLOTS[slot]
    file = SimpleUploadedFile("f.csv", text_of(kind).encode())
    answer = client.post(address.format(cohort.pk), {**sent, "file": file})
    assert answer.status_code == 302, answer.content.decode()[:500]
    page = Page(client.get(answer.url))
    if RIGHT.get(slot) is kind:
        assert not any(page.says(question) for question in QUESTIONS.values())
        return
    if (slot, kind) == ("late arrivals", FileKind.SURVEY):
        return  # a survey of other students is what late arrivals come in
    move = page.one("status", QUESTIONS[kind]).one("form").address
    answer = client.post(move, {"to": kind, "cohort": cohort.pk})
    assert client.get(answer.url).status_code == 200
    place = {
        FileKind.ROOMS: "/buildings/drafts/",
        FileKind.ROSTER: f"/cohorts/{cohort.pk}/pairs/",
        FileKind.SURVEY: "/cohorts/import/",
    }[kind]
    assert answer.url.startswith(place)
    assert Draft.objects.count() + BuildingDraft.objects.count() == 1, "the first is discarded"


def test_only_staff_of_the_organisation_move_files(
    alice: User, bob: User, mallory: User, cohort: Cohort, client_of: ClientOf
) -> None:
    client = client_of(bob)
    rooms = SimpleUploadedFile("r.csv", text_of(FileKind.ROOMS).encode())
    first = client.post("/cohorts/import/", {"file": rooms}).url
    survey = SimpleUploadedFile("s.csv", text_of(FileKind.SURVEY).encode())
    second = client.post("/buildings/new/", {"file": survey}).url
    for user, status in ((alice, 403), (mallory, 404)):
        for address in (first, second):
            assert client_of(user).post(f"{address}move/", {"to": "rooms"}).status_code == status
    for sent in ({"to": "nonsense"}, {}, {"to": "roster"}):
        assert client_of(bob).post(f"{first}move/", sent).url == first
    assert (Draft.objects.count(), BuildingDraft.objects.count()) == (1, 1)
