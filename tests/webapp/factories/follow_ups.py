"""A published placement of doubles, and answers to the questionnaire after a term."""

from datetime import timedelta

from django.utils import timezone

from tests.webapp.factories.placed import placed_cohort, publish
from webapp.accounts.models import User
from webapp.cohorts.models import Student
from webapp.housing.models import Place, Placement, Room
from webapp.surveys.housing_forms import GETTING_ALONG, ROOM_CHANGE, TOGETHER_AGAIN
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import questions_of
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open

ROOMS = 24  # doubles, six in each quarter of the scores


def opened(user: User, title: str = "Follow-up", form: str = "follow-up") -> Questionnaire:
    made = questionnaire_create(user=user, title=title, form=form)
    questionnaire_open(user=user, questionnaire=made, closes_at=timezone.now() + timedelta(days=9))
    made.refresh_from_db()
    return made


def place_doubles(user: User) -> Placement:
    """Place students in doubles with rising scores, and publish the placement."""
    made = placed_cohort(user)
    made.places.all().delete()
    for k in range(ROOMS):
        room = Room.objects.create(
            buildings=made.buildings, hall="Elm", name=f"E{k}", capacity=2, position=50 + k
        )
        for bed in (1, 2):
            student = Student.objects.create(
                cohort=made.cohort, number=2000 + 2 * k + bed, original_id=f"N{k}-{bed}",
                email=f"n{k}-{bed}@uni.example", answers=[],
            )  # fmt: skip
            Place.objects.create(
                placement=made, student=student, number=student.number, room=room, bed=bed,
                score=float(k),
            )  # fmt: skip
    publish(made)
    return made


def answer(
    asked: Questionnaire, number: str, along: int, again: int, change: int, **more: object
) -> None:
    keys = {one.name: one.key for one in questions_of(asked.content)}
    values = {keys[GETTING_ALONG]: along, keys[TOGETHER_AGAIN]: again, keys[ROOM_CHANGE]: change}
    fields = {"identifier": number, "finished_at": timezone.now(), "answers": values} | more
    Participant.objects.create(questionnaire=asked, **fields)
