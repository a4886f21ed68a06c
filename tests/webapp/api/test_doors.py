"""The same bytes give the same answer, or the same refusal, from every door.

Doors are a file, standard input, GZIP, a byte order mark, Windows' line ends, the page, the API
and the command line. Each row of a table is one kind of file that some door read otherwise.
"""

import gzip
import io
import json
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine import InvalidProblemError, Rooms
from engine.cli.main import main
from engine.datasets import read_image, read_mask
from engine.datasets.annotations.outlines import read_outlines
from engine.datasets.room_files import read_requests_csv, read_roommates_csv, read_rooms_csv
from engine.datasets.room_rule_files import read_room_rules_csv
from engine.datasets.survey_csv import infer_questionnaire, read_survey_csv
from tests.webapp.factories.images import upload
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.surveys import cohort_survey
from webapp.housing.models import BuildingList
from webapp.housing.services.buildings import building_draft_create, building_draft_file
from webapp.segmentation.models import ImageFile
from webapp.segmentation.services.image_sets import image_set_create
from webapp.segmentation.services.known_labels import painted_labels
from webapp.segmentation.services.painting import classes_of
from webapp.segmentation.services.uploads import upload_take

Read = Callable[[str], Any]

SURVEY = (
    "Student ID;Bedtime;Noise;Smokes\n"
    "00123;late;“I mind, a lot”;Yes\n00124;early;fine;No\n00125;late;fine;No\n"
    "00126;early;“I mind, a lot”;Yes\n"
)
ROOMS = (
    "Building;Room Number;Bed Count;Gender Designation;ADA Accessible;Status\n"
    "Elm;101;2;Woman;Yes;Open\nElm;102;3;Co-ed;;Out of service\nÄsche;101;1;;;RA\n"
)
BEDS = "Hall,Room,Bed,Features\nElm,1,A,Quiet; Lift\nElm,1,B,Lift;Quiet\nOak,1,A,\n"
TWICE = "Hall,Room,Beds\nElm,1,2\nelm,1,3\n"


def doors(content: bytes, folder: Path, ending: str, monkeypatch: Any) -> dict[str, str]:
    """The names under which one text comes in through every door of the command line."""
    crlf = content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    forms = {
        "file": content,
        "gzip": gzip.compress(content),
        "bom": b"\xef\xbb\xbf" + content,
        "crlf": crlf,
        "cr": crlf.replace(b"\r\n", b"\r"),
        "utf-16": content.decode().encode("utf-16"),
    }
    found = {}
    for name, form in forms.items():
        (folder / name).mkdir()
        (folder / name / f"a{ending}").write_bytes(form)
        found[name] = str(folder / name / f"a{ending}")
    stream = type("Stream", (), {"buffer": io.BytesIO(content)})()
    monkeypatch.setattr("sys.stdin", stream)
    return {"stdin": "-"} | found


def outcome(read: Read, path: str) -> Any:
    """Return the values of a reader, or its refusal without the name of the source."""
    try:
        return read(path)
    except InvalidProblemError as error:
        return re.sub(r"^(standard input|-|\S*a\.\w+)(, |: | )", "", str(error)).lower()


def survey_of(path: str) -> Any:
    """Both readings of standard input get the same bytes."""
    content = sys.stdin.buffer.read() if path == "-" else b""
    sys.stdin.buffer = io.BytesIO(content)
    questions = infer_questionnaire([path])
    sys.stdin.buffer = io.BytesIO(content)
    return facts_of(read_survey_csv(path, questions))


def facts_of(survey: Any) -> Any:
    levels = [(q.name, q.levels) for q in survey.questionnaire.questions]
    return levels, survey.answers.tolist()


def rooms_of(path: str) -> Any:
    rooms = read_rooms_csv(path)
    return rooms.ids, rooms.capacities.tolist(), dict(rooms.attributes)


def known_survey(tmp_path: Path) -> Any:
    path = tmp_path / "known.csv"
    path.write_text("id,Bedtime\n" + "".join(f"a{k},{'ab'[k % 2]}\n" for k in range(6)))
    return read_survey_csv(path, infer_questionnaire([path]))


KINDS = {
    "survey": (SURVEY, survey_of),
    "survey without answers": ("id,a\nx,\ny,\n", survey_of),
    "rooms": (ROOMS, rooms_of),
    "beds": (BEDS, rooms_of),
    "a room twice": (TWICE, rooms_of),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_one_table(kind, tmp_path, monkeypatch) -> None:
    text, read = KINDS[kind]
    paths = doors(text.encode(), tmp_path, ".csv", monkeypatch)
    answers = {door: outcome(read, path) for door, path in paths.items()}
    assert all(answer == answers["file"] for answer in answers.values()), answers


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("student_a,student_b\na0,a1\na2,a3\n", read_roommates_csv),
        ("Student,Room\na0,R1\na1,R1\na2,R1\na3,R2\na4,R2\n", read_roommates_csv),
        ("a0,a1\na2,zz\n", read_roommates_csv),
        ("student,wants,kind\na0,a1,must\na2,a3,\n", read_requests_csv),
        ("student,wants\na0,a0\n", read_requests_csv),
        ("lock,a0,a1\nforbid,a2,a3\n", lambda path, survey: read_room_rules_csv(
            path, survey, Rooms(("R1",), np.array([6])))),
    ],
)  # fmt: skip
def test_a_file_about_students_is_one_file(text, read, tmp_path, monkeypatch) -> None:
    survey = known_survey(tmp_path)
    paths = doors(text.encode(), tmp_path, ".csv", monkeypatch)

    def said(path: str) -> str:
        return str(read(path, survey))

    answers = {door: outcome(said, path) for door, path in paths.items()}
    assert all(answer == answers["file"] for answer in answers.values()), answers


@pytest.mark.parametrize(
    ("words", "ending", "text"),
    [
        (["match"], ".csv", "u,v,weight\n1,2,3\n2,3,-0.0\n3,4,0.1\n"),
        (["match"], ".edge", "c a graph\np edge 4 3\ne 1 2 3\ne 2 3 5\ne 3 4 1e3\n"),
        (["match"], ".csv", "u,v,weight\n1,1,3\n"),
        (["match", "--kind", "any"], ".csv", "u,v,weight\n1,2,nan\n"),
        (["uai", "map"], ".uai", "MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 4\n"),
        (["uai", "pr"], ".uai", "MARKOV 1 2 1 1 0 2 0.5 -1\n"),
    ],
)
def test_a_graph_is_one_graph(words, ending, text, tmp_path, monkeypatch, capsys) -> None:
    answers = {}
    for door, path in doors(text.encode(), tmp_path, ending, monkeypatch).items():
        if door in {"cr", "utf-16"}:
            continue  # graphs are UTF-8, and lines end with \n
        code = main([*words[: 1 + (words[0] == "uai")], path, *words[1 + (words[0] == "uai") :],
                     "--json"])  # fmt: skip
        captured = capsys.readouterr()
        answer = json.loads(captured.out.strip().splitlines()[-1])
        answer.pop("seconds", None)
        if "error" in answer:
            answer = re.sub(r"(standard input|\S*a\.\w+)", "FILE", answer["error"])
        answers[door] = code, answer
    assert all(answer == answers["file"] for answer in answers.values()), answers


# -- The page and the API ------------------------------------------------------------------------


@pytest.mark.parametrize("text", [ROOMS, BEDS, TWICE, "Hall,Beds\nElm,2\n", "Room,Beds\n,2\n"])
def test_a_building_list_is_one_list_at_every_door(
    text, bob, program_of, tmp_path, monkeypatch
) -> None:
    """The command line refused the columns of housing systems, which the page read."""
    content = text.encode()
    answers = {}
    for door, path in doors(content, tmp_path, ".csv", monkeypatch).items():
        answers[door] = outcome(lambda path: rooms_of(path)[1], path)
        if path == "-":
            continue
        data = Path(path).read_bytes()
        draft = building_draft_create(
            user=bob, filename="a.csv", size=len(data), read=lambda data=data: data
        )
        found = building_draft_file(draft)
        page = found.problems[0].sentence.lower() if found.problems else [
            room.capacity for room in found.rooms
        ]  # fmt: skip
        made = program_of(bob).post("/buildings", name=door, file=upload("a.csv", data))
        if made.status_code == 201:
            rooms = BuildingList.objects.get(name=door).rooms.order_by("position")
            api = [room.capacity for room in rooms]
        else:
            api = made.data["problems"][0].lower()
        answers[f"{door}, page"], answers[f"{door}, API"] = page, api
    assert all(answer == answers["file"] for answer in answers.values()), answers


def test_a_survey_is_one_survey_at_every_door(bob, program_of, tmp_path, monkeypatch) -> None:
    for door, path in doors(SURVEY.encode(), tmp_path, ".csv", monkeypatch).items():
        if path == "-":
            continue
        data = Path(path).read_bytes()
        made = program_of(bob).post("/cohorts", name=door, file=upload("a.csv", data))
        expected = outcome(survey_of, path)
        if isinstance(expected, str):  # the command line refuses what the page would ask
            assert made.status_code == 422, door
            continue
        assert made.status_code == 201, made.data
        assert facts_of(cohort_survey(Cohort.objects.get(name=door))) == expected, door


# -- Pictures, masks and outlines ----------------------------------------------------------------


def scene() -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 255, (24, 36, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def encoded(picture: Image.Image, kind: str) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, kind)
    return stream.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "BMP", "GIF"])
def test_a_picture_is_one_picture_at_every_door(kind, bob, tmp_path) -> None:
    content = encoded(scene(), kind)
    path = tmp_path / f"a.{kind.lower()}"
    path.write_bytes(content)
    image_set = image_set_create(user=bob, name="Set", foreground="cell")
    assert [r.outcome for r in take(bob, image_set, path.name, content)] == ["added"]
    file = image_set.files.get()
    page = read_image(file.store.fetch(file.digest), name=file.name, view=file.view)
    np.testing.assert_array_equal(page, read_image(path))
    np.testing.assert_array_equal(page, read_image(content, name=path.name))


@pytest.mark.parametrize("numbers", [(0, 255), (0, 1), (0, 1, 2, 3, 4, 5, 6, 7)])
def test_a_mask_is_one_mask_at_every_door(numbers, bob, tmp_path) -> None:
    values = np.zeros((24, 36), dtype=np.uint8)
    for place, number in enumerate(numbers):
        values[2 * place : 2 * place + 2, 5:20] = number
    content = encoded(Image.fromarray(values), "PNG")
    path = tmp_path / "a.mask.png"
    path.write_bytes(content)
    image_set = image_set_create(user=bob, name="Set", foreground="cell")
    take(bob, image_set, "a.png", encoded(scene(), "PNG"))
    take(bob, image_set, "a.mask.png", content)
    mask = ImageFile.objects.get(name="a.mask.png")
    page = read_mask(mask.store.fetch(mask.digest), name=mask.name)
    np.testing.assert_array_equal(page, read_mask(path))
    np.testing.assert_array_equal(page, read_mask(content, name=path.name))


def take(user: Any, image_set: Any, name: str, content: bytes) -> list[Any]:
    return list(upload_take(user=user, image_set=image_set, uploaded=upload(name, content)))


SQUARE, TRIANGLE = [4, 4, 20, 4, 20, 14, 4, 14], [22, 2, 34, 2, 34, 20]
COCO = {
    "images": [{"id": "7", "file_name": "train/a.png", "width": 36, "height": 24}],
    "categories": [{"id": 1, "name": "Zelle é"}, {"id": 2, "name": "Gap"}],
    "annotations": [
        {"id": 1, "image_id": 7, "category_id": 1, "segmentation": [SQUARE]},
        {"id": 2, "image_id": 7, "category_id": 2, "segmentation": [TRIANGLE]},
    ],
}
LABELME = {
    "imagePath": "a.png",
    "shapes": [
        {"label": "Cell", "shape_type": "rectangle", "points": [[4, 4], [20, 14]]},
        {"label": "Gap", "shape_type": "circle", "points": [[28, 10], [30, 10]]},
        {"label": "Dots", "shape_type": "points", "points": [[1, 1], [34, 1], [1, 22]]},
    ],
}
GEOJSON = {
    "type": "Feature",
    "properties": {"classification": {"name": "Tumor"}},
    "geometry": {
        "type": "Polygon",
        "coordinates": [
            [[4, 4], [20, 4], [20, 20], [4, 20], [4, 4]],
            [[8, 8], [12, 8], [12, 12], [8, 12], [8, 8]],
        ],
    },
}
VIA = {
    "a.png1": {
        "filename": "a.png",
        "regions": [
            {
                "shape_attributes": {"name": "rect", "x": 3, "y": 3, "width": 9, "height": 5},
                "region_attributes": {"label": "Cell"},
            }
        ],
    }
}
CVAT = (
    "<?xml version='1.0'?>\n<annotations><version>1.1</version>"
    "<image name='a.png' width='36' height='24'>\n"
    "<polygon label='Cell' points='4,4;20,4;20,14;4,14'/>\n"
    "<ellipse label='Gap' cx='28' cy='10' rx='4' ry='6'/></image></annotations>"
)
VOC = "<annotation><object><name>cell</name><bndbox/></object></annotation>"
BOX = COCO | {"annotations": [{"id": 9, "image_id": 7, "category_id": 1, "bbox": [1, 2, 3, 4]}]}
SMALL = COCO | {"images": [{"id": 7, "file_name": "a.png", "width": 9, "height": 9}]}
OTHER = COCO | {"images": [{"id": 7, "file_name": "z.png"}]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("all.json", json.dumps(COCO, ensure_ascii=False, indent=1)),
        ("a.json", json.dumps(LABELME, indent=1)),
        ("a.geojson", json.dumps(GEOJSON, indent=1)),
        ("via.json", json.dumps(VIA, indent=1)),
        ("annotations.xml", CVAT),
        ("voc.xml", VOC),
        ("box.json", json.dumps(BOX)),
        ("small.json", json.dumps(SMALL)),
        ("other.json", json.dumps(OTHER)),
        ("cut.json", json.dumps(COCO)[:-9]),
    ],
)
def test_outlines_are_the_same_at_every_door(name, text, bob, tmp_path) -> None:
    """The command line refused annotation files, which the page read."""
    content = text.encode()
    forms = {
        "file": (name, content),
        "bom": (name, b"\xef\xbb\xbf" + content),
        "crlf": (name, content.replace(b"\n", b"\r\n")),
        "zip": ("notes.zip", packed(name, content)),
    }
    answers: dict[str, Any] = {}
    for door, (called, data) in forms.items():
        folder = tmp_path / door
        folder.mkdir()
        (folder / called).write_bytes(data)
        try:
            found = read_outlines([folder / called], {"a.png"}, lambda picture: (36, 24))
            labels = found.labels("a.png", (36, 24), found.classes)
            answers[door] = of_classes(labels, found.classes)
        except InvalidProblemError as error:
            answers[door] = str(error).rpartition("can be used: ")[2]
        image_set = image_set_create(user=bob, name=door, foreground="cell")
        take(bob, image_set, "a.png", encoded(scene(), "PNG"))
        (result,) = take(bob, image_set, called, data)
        if result.outcome == "added":
            classes = classes_of(image_set.__class__.objects.get(pk=image_set.pk))
            labels = painted_labels(image_set.files.get(name="a.png"), classes)
            answers[f"{door}, page"] = of_classes(labels, [one["name"] for one in classes])
        else:
            answers[f"{door}, page"] = result.sentence
    assert all(answer == answers["file"] for answer in answers.values()), answers


def of_classes(labels: Any, names: Any) -> dict[str, list[int]]:
    """The painted pixels by class; one without any does not count."""
    places = {name: np.flatnonzero(labels == k).tolist() for k, name in enumerate(names)}
    return {name: pixels for name, pixels in places.items() if pixels}


def packed(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(f"annotations/{name}", content)
    return stream.getvalue()
