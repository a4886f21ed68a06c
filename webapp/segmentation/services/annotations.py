"""Taking annotations of other programs into a set: they become strokes on its images."""

import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path

from django.db import transaction

from engine.datasets.image_names import mask_stem, picture_stem, picture_stems, prefixed_stem
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.segmentation.annotations import Annotation, Shape
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.models import ImageFile, ImageSet
from webapp.segmentation.services.painting import COLOURS, MOST_CLASSES, stroke_add

ROI_ENDING = ".roi"
_OF_A_MANAGER = "roiset"


def image_of_roi(image_set: ImageSet, name: str, archive: str) -> str:
    """Return the image that an ImageJ ROI is of: named as itself, or as the ZIP that it came in.

    ImageJ names the ROIs of one picture by numbers, in a ZIP that people name after the picture:
    a.zip, a_rois.zip, RoiSet_a.zip.

    Raises
    ------
    SegmentationError
        If there is no image of either name.
    """
    named = image_set.files.filter(role=ImageFile.Role.IMAGE).values_list("name", flat=True)
    images = {picture_stem(image): image for image in named}
    stem = picture_stem(archive)
    for part in (_OF_A_MANAGER, "rois", "roi"):
        stem = stem.removesuffix(part).removeprefix(part).strip("_- .")
    for found in (
        images.get(picture_stem(name)),
        images.get(picture_stem(archive)),
        images.get(stem),
    ):
        if found:
            return found
    called = f"{archive} as a_rois.zip" if archive else f"{name} as a.roi"
    raise SegmentationError(
        f"{name} does not say which picture it is of; name {called}, where the picture is a.png."
    )


def annotations_take(
    *, user: User, image_set: ImageSet, name: str, annotations: list[Annotation]
) -> str:
    """Paint what was annotated; all or nothing. Return one sentence of what became of it.

    Raises
    ------
    SegmentationError
        If an image is not in the set, has another size, or there are too many classes.
    """
    annotations = [one for one in annotations if one.shapes]
    if not annotations:
        raise SegmentationError(f"{name} has no annotations. Nothing was saved.")
    others = image_set.files.filter(role=ImageFile.Role.IMAGE).exclude(name=name)
    images = {file.name.casefold(): file for file in others}
    stems = _by_stem(images.values())
    n_shapes, painted = 0, set()
    with transaction.atomic():
        image_set = ImageSet.objects.select_for_update().get(pk=image_set.pk)
        values = _values(image_set, annotations)
        for annotation in annotations:
            file = _image_of(annotation.image, images, stems)
            _check_image(annotation, file, name)
            file.image_set = image_set
            painted.add(file.name)
            for shape in annotation.shapes:
                stroke = _stroke(shape, values[shape.name.casefold()])
                stroke_add(user=user, file=file, stroke=stroke)
                n_shapes += 1
        audit(user, "annotated", image_set, file=name, images=len(annotations), shapes=n_shapes)
    n_classes = len({shape.name for one in annotations for shape in one.shapes})
    where = painted.pop() if len(painted) == 1 else f"{len(painted)} images"
    return f"Recognised: {n_classes} class{'es'[: 2 * (n_classes != 1)]}, painted on {where}"


def _by_stem(images: Iterable[ImageFile]) -> dict[str, ImageFile]:
    """Images by the stems that annotations may name them by."""
    found, shorter = {}, {}
    for file in images:
        own, *others = picture_stems(file.name)
        found[own] = file
        shorter |= dict.fromkeys(others, file)
    return shorter | found


def _image_of(
    name: str, images: Mapping[str, ImageFile], stems: Mapping[str, ImageFile]
) -> ImageFile | None:
    """The image that a name in an annotation means, by all of it or by its stem."""
    name = unicodedata.normalize("NFC", name)
    prefixed = prefixed_stem(name, stems)
    return images.get(name.casefold()) or stems.get(_stem(name)) or stems.get(prefixed or "")


def _stem(name: str) -> str:
    """The picture that a name means: of a_labels.png and a_scribbles1.png it is a."""
    stem = mask_stem(name) or picture_stem(name)
    head, _, tail = stem.rpartition("_")
    return head if head and tail.startswith("scribble") else stem


def _check_image(annotation: Annotation, file: ImageFile | None, name: str) -> None:
    if file is None:
        about = annotation.image if annotation.image != name else f"an image {_stem(name)}"
        raise SegmentationError(
            f"{name} is about {about}, which is not in this set. Upload it first."
        )
    if annotation.size not in (None, (file.width, file.height)):
        width, height = annotation.size or (0, 0)
        raise SegmentationError(
            f"{name}: {annotation.image} has {width} x {height} pixels there, but {file.name} has "
            f"{file.width} x {file.height} here."
        )


def _values(image_set: ImageSet, annotations: list[Annotation]) -> dict[str, int]:
    """Numbers of the classes by name in lower case; new names become classes of the set."""
    classes = list(image_set.classes)
    values = {one["name"].casefold(): one["value"] for one in classes}
    for shape in (shape for one in annotations for shape in one.shapes):
        key = shape.name.casefold()
        if key in values:
            continue
        taken = set(values.values())
        free = [value for value in range(1, MOST_CLASSES + 1) if value not in taken]
        if not shape.name.strip():
            raise SegmentationError("A shape has no label. Name it where it was drawn.")
        if not free:
            raise SegmentationError(f"A set has {MOST_CLASSES} named classes at most.")
        colour = shape.colour or COLOURS[(free[0] - 1) % len(COLOURS)]
        values[key] = free[0]
        classes.append({"value": free[0], "name": shape.name.strip()[:40], "colour": colour})
    image_set.classes = classes
    image_set.save(update_fields=["classes"])
    return values


def _stroke(shape: Shape, value: int) -> dict[str, object]:
    return {
        "value": value,
        "tool": shape.tool,
        "points": shape.points,
        "radius": shape.radius,
        "radii": [],
    }


def is_annotation(name: str) -> bool:
    """Whether a name is that of annotations, which are read after all pictures."""
    return Path(name).suffix.casefold() in {".json", ".geojson", ROI_ENDING}
