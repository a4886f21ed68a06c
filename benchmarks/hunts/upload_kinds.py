"""Every kind of file that the product takes: a small whole one of each, and where it is sent."""

import io
import json
import zipfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import h5py
import numpy as np
import roifile
from PIL import Image

PICTURES = {
    "JPEG": "jpg", "PNG": "png", "TIFF": "tif", "GIF": "gif",
    "WEBP": "webp", "BMP": "bmp", "PPM": "ppm",
}  # fmt: skip
SHAPE = (24, 36)  # of every picture
HEIC = Path(__file__).resolve().parents[2] / "tests/datasets/data/plain.heic"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of file: its name and content, page and API address, and the form around it.

    Addresses and fields are filled in from the target: {cohort} is the key of a cohort. ``api`` is
    empty where only people send it; ``part`` is the field of the form, empty for a body of JSON.
    """

    name: str
    file_name: str
    content: bytes
    page: str
    api: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    part: str = "file"


@cache
def kinds() -> tuple[Kind, ...]:
    """Return a small whole file of every kind, by name."""
    found = [*_images(), *_tables(), *_texts()]
    return tuple(sorted(found, key=lambda kind: kind.name))


def kind_named(name: str) -> Kind:
    """Return one of them."""
    return next(kind for kind in kinds() if kind.name == name)


def _images() -> list[Kind]:
    sets = ("/image-sets/{image_set}/files/", "/api/v1/image-sets/{image_set}/files")
    pixels = np.random.default_rng(0).integers(0, 256, (*SHAPE, 3), dtype=np.uint8)
    files = {name: (f"a.{suffix}", _picture(pixels, name)) for name, suffix in PICTURES.items()}
    deep = (pixels[:, :, 0].astype(np.uint16) << 8) + 7
    files["16-bit TIFF"] = ("deep.tif", _picture(deep, "TIFF"))
    files["HEIC"] = ("phone.heic", HEIC.read_bytes())
    files["stack"] = ("stack.tif", _stack(pixels))
    files["mask"] = ("a.mask.png", _picture((pixels[:, :, 0] > 128).astype(np.uint8), "PNG"))
    files["class map"] = ("a_labels.png", _picture(pixels[:, :, 0] // 80, "PNG"))
    for name, packing in (("ZIP", zipfile.ZIP_DEFLATED), ("stored ZIP", zipfile.ZIP_STORED)):
        files[name] = ("a.zip", _zip([files["JPEG"], files["mask"], files["PNG"]], packing))
    square = [4, 4, 20, 4, 20, 14, 4, 14]
    coco = {
        "images": [{"id": 7, "file_name": "img/a.png", "width": SHAPE[1], "height": SHAPE[0]}],
        "categories": [{"id": 3, "name": "Nucleus"}],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 3, "segmentation": [square]},
            {"id": 2, "image_id": 7, "category_id": 3,
             "segmentation": {"counts": [100, 9, 755], "size": list(SHAPE)}},
        ],
    }  # fmt: skip
    shapes = [
        {"label": "Nucleus", "points": [[4, 4], [20, 14]], "shape_type": "rectangle"},
        {"label": "Gap", "points": [[30, 2], [30, 20]], "shape_type": "linestrip"},
    ]
    labelme = {"version": "5.4.1", "shapes": shapes, "imagePath": "a.png",
               "imageWidth": SHAPE[1], "imageHeight": SHAPE[0]}  # fmt: skip
    files["COCO"] = ("anno.json", json.dumps(coco).encode())
    files["labelme"] = ("a.json", json.dumps(labelme).encode())
    _annotations(files, square)
    stroke = {"tool": "brush", "value": 1, "radius": 3, "points": [4, 4, 10, 9]}
    classes = [{"value": 1, "name": "Leaf", "colour": "#aa3300"},
               {"value": 2, "name": "Soil", "colour": "#003399"}]  # fmt: skip
    corrected = _picture((pixels[:, :, 1] > 128).astype(np.uint8) * 255, "PNG")
    painting = "/image-sets/{painted}/paint/"
    return [
        *(Kind(name, *file, *sets) for name, file in files.items()),
        Kind("corrected mask", "m.png", corrected,
             "/predictions/{prediction}/{predicted}/correct/", part="mask"),
        Kind("stroke", "", json.dumps({"strokes": [stroke]}).encode(),
             painting + "{image}/strokes/", part=""),
        Kind("classes", "", json.dumps(classes).encode(), painting + "classes/", part=""),
        *(Kind(name, "leaf.npz", content, "/image-models/import/",
               fields={"name": "Leaf", "foreground": "leaf", "digest": ""})
          for name, content in _models().items()),
    ]  # fmt: skip


def _annotations(files: dict[str, tuple[str, bytes]], square: list[int]) -> None:
    """Add annotations of a.png as other programs write them, probabilities, and ZIPs of ZIPs."""
    points = ";".join(f"{x},{y}" for x, y in zip(square[::2], square[1::2], strict=True))
    cvat = (
        f'<annotations><version>1.1</version><image id="0" name="a.png" width="{SHAPE[1]}" '
        f'height="{SHAPE[0]}"><polygon label="Nucleus" points="{points}"/></image></annotations>'
    )
    files["CVAT"] = ("annotations.xml", cvat.encode())
    region = {
        "shape_attributes": {"name": "rect", "x": 4, "y": 4, "width": 16, "height": 10},
        "region_attributes": {"class": "Nucleus"},
    }
    via = {"a.png1": {"filename": "a.png", "size": 1, "regions": [region], "file_attributes": {}}}
    files["VIA"] = ("via.json", json.dumps(via).encode())
    ring = [list(pair) for pair in zip(square[::2], square[1::2], strict=True)]
    shape = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
    named = {"classification": {"name": "Nucleus", "color": [200, 0, 0]}}
    feature = {"type": "Feature", "geometry": shape, "properties": named}
    collection = {"type": "FeatureCollection", "features": [feature]}
    files["QuPath"] = ("a.geojson", json.dumps(collection).encode())
    roi = roifile.ImagejRoi.frompoints(np.array(ring)).tobytes()
    files["ImageJ"] = ("a.roi", roi)
    files["ZIP of regions"] = ("a_rois.zip", _zip([("1.roi", roi), ("2.roi", roi)], 0))
    files["ilastik"] = ("p.ilp", _ilastik())
    chance = io.BytesIO()
    np.save(chance, np.random.default_rng(1).random((*SHAPE, 2), dtype=np.float32))
    files["probabilities"] = ("a_probabilities.npy", chance.getvalue())
    inner = _zip([files["JPEG"], files["mask"]], zipfile.ZIP_DEFLATED)
    files["ZIP in a ZIP"] = ("outer.zip", _zip([("inner.zip", inner), files["PNG"]], 0))


def _ilastik() -> bytes:
    labels = np.zeros((*SHAPE, 1), np.uint8)
    labels[2:4, 3:6], labels[8] = 1, 2
    stream = io.BytesIO()
    with h5py.File(stream, "w") as file:
        group = file.create_group("PixelClassification")
        group["LabelNames"] = np.array([b"Cell", b"Rest"])
        group["LabelColors"] = np.array([[255, 0, 0], [0, 0, 255]])
        block = group.create_dataset("LabelSets/labels000/block0000", data=labels, compression=4)
        block.attrs["blockSlice"] = f"[0:{SHAPE[0]},0:{SHAPE[1]},0:1]"
        about = file.create_group("Input Data/infos/lane0000/Raw Data")
        about["filePath"], about["nickname"] = "pictures/a.png", "a"
        about["axistags"] = json.dumps({"axes": [{"key": key} for key in "yxc"]})
    return stream.getvalue()


def _tables() -> list[Kind]:
    """Files of rows; each as CSV and as a workbook."""
    survey = survey_rows()
    late = [survey[0], *([f"L{k}", *row[1:]] for k, row in enumerate(survey[1:7]))]
    pairs = [["student_a", "student_b"], *([f"N{k}", f"N{k + 1}"] for k in range(0, 12, 2))]
    roster = [["Hall", "Room", "Student"], *(["Elm", str(k // 2), f"N{k}"] for k in range(12))]
    rooms = [["Hall", "Floor", "Room", "Beds", "Rent", "For", "Step-free"]]
    rooms += [["Elm", "1", f"{k}", "2", "1,200.50", "FM"[k % 2], "yes"] for k in range(12)]
    wishes = [["student", "wants", "or"], *([f"N{k}", f"N{k + 1}", "N20"] for k in range(12))]
    halls = [["student", "first", "second"], *([f"N{k}", "Elm", "Oak"] for k in range(12))]
    mails = [["id", "e-mail", "name"], *([f"N{k}", f"n{k}@uni.example", "Ö"] for k in range(12))]
    cohort, api = "/cohorts/{cohort}", "/api/v1/cohorts/{cohort}"
    named, change = {"name": "Mutated {number}"}, f"{cohort}/requests/import/"
    tables = {
        "survey": (survey, "/cohorts/import/", "/api/v1/cohorts", named),
        "latecomers": (late, f"{cohort}/add/", f"{api}/latecomers", {}),
        "pairs": (pairs, f"{cohort}/pairs/", f"{api}/pairs", {}),
        "roster": (roster, f"{cohort}/pairs/", f"{api}/pairs", {}),
        "rooms": (rooms, "/buildings/new/", "/api/v1/buildings", named),
        "requests": (wishes, f"{change}requests/", f"{api}/requests", {}),
        "choices of halls": (halls, f"{change}preferences/", f"{api}/preferences", {}),
        "e-mails": (mails, "/placements/{placement}/letters/addresses/", f"{api}/addresses", {}),
    }  # fmt: skip
    return [
        Kind(f"{name} {shape}", f"{name}.{shape.lower()}", make(rows), *rest)
        for name, (rows, *rest) in tables.items()
        for shape, make in (("CSV", csv_file), ("XLSX", workbook))
    ]


def _texts() -> list[Kind]:
    """Files and long texts that people hand in beside them."""
    words = [["text", "es"], ["Housing", "Alojamiento"], ["When do you go to bed?", "¿Cuándo?"]]
    people = "".join(f"N{k}, n{k}@uni.example\r\n" for k in range(12)).encode()
    letter = b"Dear [name],\r\nyou live in [hall], room [room], with [roommates].\r\n"
    asked = "/questionnaires/{questionnaire}/"
    return [
        Kind("translations", "words.csv", csv_file(words), asked + "languages/",
             fields={"action": "file", "version": "{version}"}),
        Kind("bounces", "back.mbox", _BOUNCE, asked + "people/bounces/"),
        Kind("people", "", people, asked + "people/add/", part="people"),
        Kind("letter", "", letter, "/letters/new/", part="text",
             fields={"name": "Mutated {number}", "subject": "Your room", "contact": ""}),
    ]  # fmt: skip


_BOUNCE = b"""From MAILER-DAEMON Sat Nov 21 10:00:00 2026
From: MAILER-DAEMON@mail.example
To: housing@uni.example
Subject: Undelivered Mail Returned to Sender
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain; charset=utf-8

The mail could not be delivered.
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mail.example

Final-Recipient: rfc822; n1@uni.example
Action: failed
Status: 5.1.1
--b--
"""


def _picture(pixels: np.ndarray, kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


def _stack(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    planes = [Image.fromarray(pixels[:, :, k]) for k in range(3)]
    planes[0].save(buffer, "TIFF", save_all=True, append_images=planes[1:])
    return buffer.getvalue()


def _zip(files: list[tuple[str, bytes]], packing: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return buffer.getvalue()


def _models() -> dict[str, bytes]:
    """Files of each kind of segmentation model; the weights are noise, or learned from noise."""
    from engine import train_boosted_segmentation, train_class_segmentation
    from engine.learning.segmentation.model import N_PARAMETERS, Detail, make_segmentation_model

    rng = np.random.default_rng(0)
    theta = rng.normal(0, 0.2, N_PARAMETERS)
    noise = rng.integers(0, 256, (*SHAPE, 3), dtype=np.uint8)
    labels, names = noise[:, :, 0] // 86, ["soil", "leaf", "stem"]
    quick = {"loss": "trees", "max_seconds": 1.0}
    models = {
        "model": make_segmentation_model(theta, ridge=1.0, rho=0.5, detail=Detail(40)),
        "model of trees": train_boosted_segmentation([noise], [labels > 0], **quick).model,
        "model of classes": train_class_segmentation([noise], [labels], names, **quick).model,
    }
    found = {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "leaf.npz"
        for name, model in models.items():
            model.save(path)
            found[name] = path.read_bytes()
    return found


def survey_rows() -> list[list[str]]:
    """Return a survey of 24 students with its header."""
    answers = (("Early", "Late"), ("Yes", "No"), ("1", "2", "3", "4", "5"))
    rows = [["student_id", "Bedtime", "Smokes", "Tidiness", "Gender"]]
    for k in range(24):
        rows.append([f"N{k}", *(row[k % len(row)] for row in answers), "FM"[k % 2]])
    return rows


def csv_file(rows: list[list[str]]) -> bytes:
    """Return rows as CSV; a cell with a comma is quoted."""
    lines = [",".join(f'"{cell}"' if "," in cell else cell for cell in row) for row in rows]
    return "".join(f"{line}\r\n" for line in lines).encode()


def workbook(rows: list[list[str]]) -> bytes:
    """Return rows as an XLSX file."""
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    for row in rows:
        sheet.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def make_objects(user: Any) -> dict[str, str]:
    """Make what uploads are sent to, for one person; return the keys by their names in addresses.

    ``version`` is that of the questionnaire, which every taken file of translations raises.
    """
    from webapp.cohorts.services.drafts import draft_create
    from webapp.cohorts.services.imports import draft_import
    from webapp.housing.models import BuildingList, Placement
    from webapp.jobs.models import Job, JobState
    from webapp.matching.models import LearnedModel
    from webapp.segmentation.models import PredictionBatch
    from webapp.segmentation.services.image_sets import image_set_create
    from webapp.segmentation.services.model_files import segmenter_import
    from webapp.segmentation.services.uploads import image_file_add
    from webapp.surveys.services.questionnaires import questionnaire_create

    data = kind_named("survey CSV").content
    draft = draft_create(user=user, filename="s.csv", size=len(data), read=lambda: data)
    cohort = draft_import(user=user, draft=draft, name="Whole", version=draft.version)
    own = {"organisation": user.organisation, "created_by": user}
    placement = Placement.objects.create(
        **own,
        name="Rooms",
        cohort=cohort,
        buildings=BuildingList.objects.create(**own, name="Campus"),
        model=LearnedModel.objects.create(**own, name="Model"),
    )
    image_set = image_set_create(user=user, name="Mutated", foreground="thing")
    others = image_set_create(user=user, name="Painted", foreground="thing")
    whole = kind_named("PNG").content
    for target in (image_set, others):
        image_file_add(user=user, image_set=target, name="kept.png", chunks=[whole])
    segmenter = segmenter_import(
        user=user, name="Leaf", foreground="leaf", file_name="leaf.npz", digest="",
        chunks=[kind_named("model").content],
    )  # fmt: skip
    job = Job.objects.create(
        **own, kind="segmentation.predict", title="Predict", seed=1, state=JobState.RUNNING
    )
    batch = PredictionBatch.objects.create(
        **own, name="Prediction", segmenter=segmenter, image_set=others, job=job
    )
    return {
        "cohort": str(cohort.pk),
        "placement": str(placement.pk),
        "image_set": str(image_set.pk),
        "painted": str(others.pk),
        "image": str(others.files.get().pk),
        "prediction": str(batch.pk),
        "predicted": str(_predicted(batch).pk),
        "questionnaire": str(questionnaire_create(user=user, title="Asked", form="own").pk),
    }


def _predicted(batch: Any) -> Any:
    """Return the one image of a prediction, predicted as a job would."""
    from engine import load_segmentation_model
    from webapp.segmentation.models import PredictedImage
    from webapp.segmentation.services.predictions import predict_image

    file = batch.image_set.files.get()
    row = PredictedImage.objects.create(
        batch=batch,
        file=file,
        name=file.name,
        image_digest=file.digest,
        width=file.width,
        height=file.height,
    )
    predict_image(model=load_segmentation_model(batch.segmenter.path), row=row, job=batch.job)
    type(batch.job).objects.update(state="succeeded", parameters={"batch": str(batch.pk)})
    return row
