"""Files of late arrivals in the wrong slot, and rows at their foot that are no students."""

import pytest

from tests.webapp.api.test_roommates import survey_csv
from tests.webapp.factories.images import upload
from webapp.cohorts.models import Cohort

HEAD = "id,Bedtime,Smoking,Guests\n"
ROWS = "".join(f"u{k},10-11 pm,Yes,Often\n" for k in (101, 102, 103, 104))


@pytest.fixture
def late(program_of, bob):
    """A function that adds late arrivals by a file; returns the answer and their ids."""
    program = program_of(bob)
    made = program.post("/cohorts", file=upload("a.csv", survey_csv(40)), name="2025").data["id"]

    def add(data: str) -> tuple[object, list[str]]:
        file = upload("late.csv", data.encode())
        answer = program.post(f"/cohorts/{made}/latecomers", file=file)
        students = Cohort.objects.get(pk=made).students.filter(number__gt=1040)
        return answer, list(students.values_list("original_id", flat=True))

    return add


@pytest.mark.parametrize("foot", ["Total: 4,,,\n", "4,,,\n", "Total,,,4\n"])
def test_a_total_at_the_foot_is_no_student(late, foot: str) -> None:
    """A student called "Total: 4" was added, with every answer blank."""
    answer, ids = late(HEAD + ROWS + foot)
    assert answer.status_code == 200, answer.data
    assert ids == ["u101", "u102", "u103", "u104"]


@pytest.mark.parametrize("data", ["room,beds\nR1,2\nR2,2\n", "en,es\nYes,Si\nNo,No\n"])
def test_a_file_of_another_kind_adds_nobody(late, data: str) -> None:
    """Rooms and translations became students without an answer."""
    answer, ids = late(data)
    assert answer.status_code == 422
    assert (
        "No column is titled as a question or a rule of 2025, or as ids." in answer.data["detail"]
    )
    assert not ids


@pytest.mark.parametrize(
    "data", ["Student ID,Remark\nu101,by phone\n", "id,email\nu101,a@x.example\n"]
)
def test_ids_alone_are_students_without_answers(late, data: str) -> None:
    answer, ids = late(data)
    assert answer.status_code == 200, answer.data
    assert ids == ["u101"]
