"""Import of other programs' annotations, which become strokes on the images of a set."""

from django.db import transaction
from django.utils.translation import gettext as _

from engine.datasets.annotations.pictures import (
    FindPicture,
    annotations_by_picture,
    named_classes,
)
from engine.datasets.annotations.shapes import Annotation
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.formats import counted
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.models import ImageSet
from webapp.segmentation.services.painting import (
    COLOURS,
    MOST_CLASSES,
    export_number,
    stroke_add,
)


def annotations_take(
    *,
    user: User,
    image_set: ImageSet,
    name: str,
    annotations: list[Annotation],
    find: FindPicture = lambda reference: None,
) -> str:
    """Paint annotations, all or nothing. Return one sentence about the result.

    Parameters
    ----------
    find : finds images by their paths in the archive that the annotations came in

    Raises
    ------
    InvalidProblemError, SegmentationError
        If an image is not in the set or has another size, if there are too many classes, or if two
        images of the file are one image of the set.
    """
    others = image_set.files.images().exclude(name=name)
    images = {file.name: file for file in others}
    named = annotations_by_picture(
        annotations,
        images,
        name,
        size_of=lambda picture: (images[picture].width, images[picture].height),
        find=find,
    )
    annotations = [annotation for _, annotation in named]
    n_shapes = 0
    with transaction.atomic():
        image_set = ImageSet.objects.select_for_update().get(pk=image_set.pk)
        values = _values(image_set, annotations)
        for picture, annotation in named:
            file = images[picture]
            file.image_set = image_set
            for shape in annotation.shapes:
                value = 0 if shape.name is None else values[shape.name.casefold()]
                stroke_add(user=user, file=file, stroke=shape.stroke(value))
                n_shapes += 1
        audit(user, "annotated", image_set, file=name, images=len(annotations), shapes=n_shapes)
    classes = {shape.name for one in annotations for shape in one.shapes}
    n_classes = len(classes - {None})
    painted = {picture for picture, _annotation in named}
    where = named[0][0] if len(painted) == 1 else counted(len(painted), "image")
    words = _("Recognised: %(classes)s, painted on %(where)s")
    if None in classes:
        words = _(
            "Recognised: %(classes)s, painted on %(where)s; what is to be ignored was left "
            "unpainted"
        )
    return words % {"classes": counted(n_classes, "class"), "where": where}


def _values(image_set: ImageSet, annotations: list[Annotation]) -> dict[str, int]:
    """Return the numbers of classes by name in lower case; new names become classes of the set.

    A class keeps the number of its file if that is free; otherwise the number is kept for exported
    label files.
    """
    classes = list(image_set.classes)
    values = {one["name"].casefold(): one["value"] for one in classes}
    exported = {export_number(one) for one in classes}
    named = named_classes(annotations)
    new = {key: shape for key, shape in named.items() if key not in values}
    wanted = {shape.number for shape in new.values()} - {None}
    for key, shape in new.items():
        taken = set(values.values())
        free = [value for value in range(1, MOST_CLASSES + 1) if value not in taken]
        if not free:
            raise SegmentationError(
                _("A set has %(most_classes)s named classes at most.")
                % {"most_classes": MOST_CLASSES}
            )
        others = [value for value in free if value not in wanted]
        value = shape.number if shape.number in free else (others or free)[0]
        colour = shape.colour or COLOURS[(value - 1) % len(COLOURS)]
        one = {"value": value, "name": str(shape.name).strip()[:40], "colour": colour}
        if shape.number is not None and shape.number != value and shape.number not in exported:
            one["number"] = shape.number
        values[key] = value
        exported.add(export_number(one))
        classes.append(one)
    image_set.classes = classes
    image_set.save(update_fields=["classes"])
    return values
