"""A laboratory's way from unlabelled pictures to counted objects, in Chromium.

    python -m benchmarks product lab_walk [--short] [--data DIR] [--instance DIR] [--screens DIR]

Twelve pictures are dropped in, their classes painted with twenty strokes (the answer after each one
timed), 200 more come in a ZIP; all are predicted, counted, exported, one is corrected by painting,
and the model is learned again. The pictures are those of ``microscope_pictures``, or with --data a
folder's, whose masks lie beside them. Strokes follow the truth, as a person's eye would; how many
pixels the exported label maps have right against it is printed for both models.
"""

import argparse
import csv
import io
import itertools
import json
import re
import statistics
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image
from playwright.sync_api import Locator
from scipy.ndimage import distance_transform_edt

from benchmarks.common.microscope_pictures import CLASSES, KnownPicture, known_in, write_cells
from benchmarks.product.browser_walk import Walk as BrowserWalk
from benchmarks.product.browser_walk import walk_in_chromium

JOB_MS = 3_600_000  # of a machine that others keep busy
ANSWER_MS = 180_000
BRUSH = 12  # pixels across, which the page begins with
LONGEST = 60  # pixels of a stroke
PER_PICTURE = 5  # strokes, before a person goes on to another picture


@dataclass(frozen=True)
class Pictures:
    """What is dropped in and painted on, what comes later, and the names of the classes."""

    first: list[KnownPicture]
    more: list[KnownPicture]
    classes: tuple[str, ...]
    archive: Path


@dataclass
class Walk(BrowserWalk):
    """The walk of a laboratory; ``waits`` are the seconds of answers after strokes."""

    pictures: Pictures | None = None
    waits: list[float] = field(default_factory=list)
    address: str = ""  # of the set
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    @property
    def paint(self) -> Locator:
        """The painting of a picture, once it shows."""
        return self.page.locator("[data-paint][data-ready=true]")


def walk_lab(walk: Walk, *, strokes: int = 20) -> None:
    """Go from pictures to counted objects, correct them, and learn again."""
    pictures = walk.pictures
    with walk.step("make the set"):
        make_set(walk)
    with walk.step("drop the pictures"):
        upload(walk, [picture.path for picture in pictures.first])
    with walk.step("name the classes"):
        name_classes(walk)
    with walk.step("paint"):
        paint(walk, strokes)
    with walk.step("look at doubt"):
        look_at_doubt(walk)
    with walk.step("drop more in a ZIP"):
        walk.page.goto(walk.address)
        upload(walk, [pictures.archive])
    with walk.step("learn and predict"):
        predict(walk)
    with walk.step("count"):
        count(walk)
    with walk.step("export"):
        export(walk, "first model")
    with walk.step("correct"):
        correct(walk)
    with walk.step("learn again"):
        predict(walk)
    with walk.step("export again"):
        export(walk, "second model")
    if walk.waits:
        walk.facts["answers after strokes (s)"] = (
            f"median {statistics.median(walk.waits):.2f}, longest {max(walk.waits):.2f}"
        )


def make_set(walk: Walk, name: str = "Fields of Tuesday") -> None:
    """Make an empty set."""
    page = walk.page
    page.goto("/image-sets/new/")
    walk.type(page.get_by_label("Name"), name)
    walk.type(page.get_by_label("What the masks mark"), walk.pictures.classes[0].lower())
    walk.click(page.get_by_role("button", name="Make the set"), page.locator("#upload-files"))
    walk.address = page.url


def upload(walk: Walk, paths: list[Path]) -> None:
    """Drop files, and wait until each is settled."""
    page = walk.page
    walk.steps[-1].clicks += 1
    begun = time.perf_counter()
    page.locator("#upload-files").set_input_files([str(path) for path in paths])
    page.locator("[data-uploads-close]").wait_for(timeout=JOB_MS)
    walk.steps[-1].seconds += time.perf_counter() - begun
    refused = page.locator("[data-uploads-list] .danger-text").all_inner_texts()
    assert not refused, refused
    page.locator("#set-header", has_text=re.compile(r"\d+ images")).wait_for()
    walk.facts[walk.steps[-1].name] = page.locator(".page-header__facts").first.inner_text()


def name_classes(walk: Walk) -> None:
    """Open the first picture, and add the classes that the set does not begin with."""
    page = walk.page
    walk.click(page.get_by_role("link", name="Paint classes"), walk.paint)
    begins_with = {walk.pictures.classes[0], "Background"}
    for name in (one for one in walk.pictures.classes if one not in begins_with):
        walk.click(page.locator("[data-add-class]"), page.locator("#class-name"))
        walk.type(page.locator("#class-name"), name)
        dialog = page.locator("#class-dialog")
        walk.click(dialog.get_by_role("button", name="Save"))
        page.locator("[data-classes]", has_text=name).wait_for()


def keys_of_classes(walk: Walk) -> list[int]:
    """Return for each class of the pictures the key that picks it."""
    state = json.loads(walk.page.locator("#paint-state").inner_text())
    names = [one["name"].casefold() for one in state["classes"]]
    shown = walk.page.locator("[data-classes] li").all_inner_texts()
    names = [re.split(r"\n", text)[0].strip().casefold() for text in shown] if shown else names
    places = []
    for name in walk.pictures.classes:
        places.append(next(k for k, one in enumerate(names, 1) if name.casefold() in one))
    return places


def paint(walk: Walk, strokes: int) -> None:
    """Paint the classes in turn, five strokes a picture, and wait for the answer of each."""
    keys = keys_of_classes(walk)
    by_name = {picture.path.name: picture for picture in walk.pictures.first}
    for number in range(strokes):
        if number and number % PER_PICTURE == 0:
            go_on(walk)
        picture = by_name[walk.page.locator("h1").inner_text()]
        stroke(walk, picture, number % len(keys), keys)


def go_on(walk: Walk) -> None:
    """Go to the next picture."""
    name = walk.page.locator("h1").inner_text()
    walk.press("j")
    walk.page.locator("h1", has_not_text=name).wait_for()
    walk.paint.wait_for()
    settled(walk)


def settled(walk: Walk) -> None:
    """Wait until the picture that was opened is answered from the strokes on the others."""
    walk.page.locator("[data-badge]", has_text=re.compile("Answered|Waiting")).wait_for(
        timeout=ANSWER_MS
    )


def stroke(walk: Walk, picture: KnownPicture, label: int, keys: list[int]) -> None:
    """Draw one stroke within a class; the answer is waited for, and timed."""
    page = walk.page
    path = stroke_within(picture.labels == label, walk.rng)
    if path is None:
        return
    walk.press(str(keys[label]))
    box = page.locator("[data-canvas]").bounding_box()
    height, width = picture.labels.shape
    scale = min((box["width"] - 24) / width, (box["height"] - 24) / height)
    places = [
        (
            box["x"] + box["width"] / 2 + (x - width / 2) * scale,
            box["y"] + box["height"] / 2 + (y - height / 2) * scale,
        )
        for y, x in path
    ]
    before = page.locator("[data-paint]").get_attribute("data-answers")
    needs_answer = len({*walk.facts.get("painted", "").split(), str(label)}) > 1
    walk.facts["painted"] = f"{walk.facts.get('painted', '')} {label}"
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=3)
    page.mouse.up()
    walk.steps[-1].clicks += 1
    begun = time.perf_counter()
    page.wait_for_function(
        "before => document.querySelector('[data-paint]').dataset.answers != before",
        arg=before,
        polling=20,  # frames come late where nothing moves
        timeout=ANSWER_MS,
    )
    if needs_answer:
        walk.waits.append(time.perf_counter() - begun)
        walk.steps[-1].seconds += walk.waits[-1]


def stroke_within(inside: np.ndarray, rng: np.random.Generator) -> list[tuple[float, float]] | None:
    """Return both ends of a level stroke whose brush stays within a class; None if none fits."""
    room = distance_transform_edt(np.pad(inside, 1))[1:-1, 1:-1]
    fits = room > min(BRUSH / 2 + 1, 0.8 * room.max())
    if not fits.any():
        return None
    rows, columns = np.nonzero(fits)
    pick = rng.integers(len(rows))
    row, column = int(rows[pick]), int(columns[pick])
    left = right = column
    while left > 0 and fits[row, left - 1] and column - left < LONGEST / 2:
        left -= 1
    while right < inside.shape[1] - 1 and fits[row, right + 1] and right - column < LONGEST / 2:
        right += 1
    return [(row + 0.5, left + 0.5), (row + 0.5, right + 0.5)]


def look_at_doubt(walk: Walk) -> None:
    """Show the doubt, and go where the model is least sure."""
    page = walk.page
    walk.click(page.get_by_role("button", name="Doubt", exact=True))
    walk.press("u")
    page.locator("[data-objects]").wait_for(timeout=ANSWER_MS)


def predict(walk: Walk) -> None:
    """Learn from all strokes, predict the whole set, and stay on the prediction's page."""
    page = walk.page
    if "/paint/" not in page.url:
        walk.click(page.get_by_role("link", name="Paint classes"), walk.paint)
    button = page.get_by_role("button", name=re.compile(r"^Predict [\d,]+ images"))
    settled(walk)
    begun = time.perf_counter()
    walk.click(button, page.locator("#segmenter-badge"))
    walk.look(page, f"{walk.steps[-1].name}, learning")
    ended = page.locator("#segmenter-badge", has_text=re.compile("Certified|Stopped|Learned"))
    ended.wait_for(timeout=JOB_MS)
    learned = time.perf_counter()
    walk.facts[f"{walk.steps[-1].name}: learned in (s)"] = f"{learned - begun:.1f}"
    page.reload()
    walk.look(page, f"{walk.steps[-1].name}, learned")
    prediction = page.locator("aside .rows a").first
    walk.click(prediction, page.locator("#prediction-live"))
    page.wait_for_timeout(2_500)
    walk.look(page, f"{walk.steps[-1].name}, predicting")
    page.locator(".badge", has_text=re.compile("^Done")).first.wait_for(timeout=JOB_MS)
    walk.facts[f"{walk.steps[-1].name}: predicted in (s)"] = f"{time.perf_counter() - learned:.1f}"
    walk.steps[-1].seconds += time.perf_counter() - begun
    page.reload()


def count(walk: Walk) -> None:
    """Look at the table of objects."""
    page = walk.page
    walk.click(page.get_by_role("link", name="Objects", exact=True), page.get_by_text("In all"))
    table = page.locator("table").first.locator("tbody tr")
    for row in table.all():
        cells = [text.strip() for text in row.locator("td").all_inner_texts()]
        walk.facts[f"objects of {cells[0]}"] = cells[1]


def export(walk: Walk, model: str) -> None:
    """Download the table and the outlines, then all maps; hold them against the truth."""
    page = walk.page
    batch = re.sub(r"objects/$", "", page.url.split("?")[0])
    page.goto(f"{batch}objects/")
    for name in ("Every object (CSV)", "Outlines (COCO)"):
        walk.click(page.locator("summary", has_text="Download"))
        content = _download(walk, page.get_by_role("link", name=name))
        if name.endswith("(CSV)"):
            rows = list(csv.reader(content.decode("utf-8-sig").splitlines()))
            walk.facts[f"{model}: objects in the CSV"] = f"{len(rows) - 1:,}"
        else:
            walk.facts[f"{model}: outlines in COCO"] = (
                f"{len(json.loads(content)['annotations']):,}"
            )
        page.keyboard.press("Escape")
    page.goto(batch)
    content = _download(walk, page.get_by_role("link", name="Download all (ZIP)"))
    right = _right_in(content, walk.pictures)
    walk.facts[f"{model}: pixels right"] = f"{np.mean(right):.2%} of {len(right)} pictures"


def _download(walk: Walk, link: Locator) -> bytes:
    with walk.page.expect_download(timeout=JOB_MS) as download:
        walk.click(link)
    return Path(download.value.path()).read_bytes()


def _right_in(archive: bytes, pictures: Pictures) -> list[float]:
    """The share of right pixels of every picture that nobody painted on."""
    known = {picture.path.stem: picture.labels for picture in pictures.more}
    shares = []
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        for name in files.namelist():
            stem = Path(name).name.split(".")[0].removesuffix("_labels")
            if not name.endswith(".tif") or stem not in known:
                continue
            with Image.open(io.BytesIO(files.read(name))) as picture:
                found, labels = np.asarray(picture), known[stem]
            # Numbers of classes go by the order in which they were made, not by this walk's.
            best = max(
                np.mean(np.array(order)[labels] == found)
                for order in itertools.permutations(range(1, len(pictures.classes) + 1))
            )
            shares.append(float(best))
    assert shares, "no label map came back"
    return shares


def correct(walk: Walk) -> None:
    """Open the picture with the most doubt, and paint on it where each class is."""
    page = walk.page
    page.goto(f"{page.url.split('?')[0]}?order=entropy")
    more = {picture.path.name: picture for picture in walk.pictures.more}
    links = page.locator("tr[data-row] a[data-open]")
    names = [text.strip() for text in links.all_inner_texts()]
    place = next(k for k, name in enumerate(names) if name in more)
    walk.click(links.nth(place), walk.paint)
    walk.look(page, "predicted picture")
    walk.click(
        page.get_by_role("link", name="Correct by painting"), page.locator("[data-tool=brush]")
    )
    walk.paint.wait_for()
    settled(walk)
    keys = keys_of_classes(walk)
    for number in range(2 * len(keys)):
        stroke(walk, more[names[place]], number % len(keys), keys)


def make_pictures(
    folder: Path, n_first: int, n_more: int, data: Path | None = None, *, side: int = 512
) -> Pictures:
    """Draw the pictures, or take a folder's; those that come later are packed in a ZIP."""
    if data is None:
        made = write_cells(folder, n_first + n_more, seed=3, side=side)
        classes = CLASSES
    else:
        folder.mkdir(parents=True, exist_ok=True)
        made = list(itertools.islice(known_in(data), n_first + n_more))
        classes = ("Object", "Background")
    archive = folder / "more.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for picture in made[n_first:]:
            packed.write(picture.path, picture.path.name)
    return Pictures(made[:n_first], made[n_first:], classes, archive)


def main() -> None:
    """Walk, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--short", action="store_true", help="4 small pictures and 10 more")
    parser.add_argument("--data", type=Path, help="folder of pictures with masks beside them")
    parser.add_argument("--instance", type=Path, help="folder of the installation, kept")
    parser.add_argument("--screens", type=Path, help="folder for pictures of every step")
    options = parser.parse_args()
    sizes = (4, 10) if options.short else (12, 200)
    with TemporaryDirectory(prefix="bh-lab-") as scratch:
        folder = options.instance or Path(scratch) / "instance"
        folder.mkdir(parents=True, exist_ok=True)
        pictures = make_pictures(
            Path(scratch) / "pictures", *sizes, options.data, side=256 if options.short else 512
        )
        walk_in_chromium(
            folder,
            "A laboratory's pictures in Chromium",
            "bob",
            lambda page, look: Walk(page, look, pictures=pictures),
            walk_lab,
            options.screens,
        )


if __name__ == "__main__":
    main()
