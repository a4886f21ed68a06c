"""Services for painting: classes, strokes, and the answers of the warm process."""

import re
import uuid
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine.core.errors import InvalidProblemError
from engine.datasets.annotations.raster import MOST_STROKES, checked_geometry, paint_strokes
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.formats import counted, listed
from webapp.segmentation.errors import SegmentationError, StrokesLeftError
from webapp.segmentation.models import ImageFile, ImageSet, Stroke
from webapp.segmentation.painting import client
from webapp.segmentation.painting.raster import live_factor, live_size
from webapp.segmentation.services.views import view_mark

MOST_CLASSES = 32
MOST_PAINTED = 48  # images that an answer learns from, besides the one shown
COLOURS = (
    "#3b82f6", "#f28c1a", "#b9c2be", "#2fb344", "#d6336c", "#9b5de5", "#12b5b0", "#c9a400",
)  # fmt: skip
_COLOUR = re.compile(r"#[0-9a-f]{6}")


def default_classes(image_set: ImageSet) -> list[dict[str, Any]]:
    """Return the first classes of a new set: its object, and the background."""
    first = image_set.foreground[:1].upper() + image_set.foreground[1:]
    return [
        {"value": 1, "name": first, "colour": COLOURS[0]},
        {"value": 2, "name": "Background", "colour": COLOURS[2]},
    ]


def classes_of(image_set: ImageSet) -> list[dict[str, Any]]:
    """Return the classes of a set, or its default classes."""
    return image_set.classes or default_classes(image_set)


def export_number(one: Mapping[str, Any]) -> int:
    """Return the number of a class in label files: its own, unless it was imported with another."""
    return int(one.get("number", one["value"]))


def classes_change(
    *, user: User, image_set: ImageSet, classes: Any, with_strokes: bool = False
) -> list[dict[str, Any]]:
    """Store names and colours of the classes; a class keeps its number as long as it exists.

    With ``with_strokes``, the strokes of classes that are removed are deleted.

    Raises
    ------
    SegmentationError
        If names are missing or equal, or there are too many.
    StrokesLeftError
        If a class with strokes would be removed.
    """
    checked = _checked_classes(classes)
    values = {one["value"] for one in checked}
    with transaction.atomic():
        locked = ImageSet.objects.select_for_update().get(pk=image_set.pk)
        removed = [one for one in classes_of(locked) if one["value"] not in values]
        strokes = Stroke.objects.filter(
            file__image_set=image_set, value__in=[one["value"] for one in removed]
        )
        painted = strokes.filter(undone=False)
        if painted.exists() and not with_strokes:
            raise StrokesLeftError(_strokes_left(removed, painted))
        n_strokes = strokes.delete()[0] if removed else 0
        numbers = {one["value"]: one["number"] for one in locked.classes if "number" in one}
        for one in checked:  # the number of a class in the files that it was imported from
            if one["value"] in numbers:
                one["number"] = numbers[one["value"]]
        locked.classes = checked
        locked.save(update_fields=["classes"])
        names = [one["name"] for one in removed]
        audit(
            user,
            "changed the classes of",
            locked,
            classes=len(checked),
            strokes=n_strokes,
            removed=names,
        )
    image_set.classes = checked
    return checked


def _strokes_left(removed: list[dict[str, Any]], painted: QuerySet[Stroke]) -> str:
    """Return "Nucleus has 12 strokes on 3 images." for classes about to be removed."""
    strokes, files = painted.count(), painted.values("file").distinct().count()
    names = listed([one["name"] for one in removed])
    return ngettext(
        "%(classes)s has %(strokes)s on %(images)s.",
        "%(classes)s have %(strokes)s on %(images)s.",
        len(removed),
    ) % {
        "classes": names,
        "strokes": counted(strokes, "stroke"),
        "images": counted(files, "image"),
    }


def _checked_classes(classes: Any) -> list[dict[str, Any]]:
    if not isinstance(classes, list) or not 1 <= len(classes) <= MOST_CLASSES:
        raise SegmentationError(
            _("A set has 1 to %(most_classes)s classes.") % {"most_classes": MOST_CLASSES}
        )
    checked, names, values = [], set(), set()
    for one in classes:
        if not isinstance(one, Mapping):
            raise SegmentationError(_("A class needs a name and a colour."))
        name, colour = str(one.get("name", "")).strip(), str(one.get("colour", "")).lower()
        value = one.get("value")
        if not name or len(name) > 40:
            raise SegmentationError(_("A class needs a name of at most 40 letters."))
        if name.casefold() in names:
            raise SegmentationError(_("There are two classes named %(name)s.") % {"name": name})
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if not is_number or not 1 <= int(value or 0) <= MOST_CLASSES or value in values:
            raise SegmentationError(
                _("A class needs a number of its own, 1 to %(most_classes)s.")
                % {"most_classes": MOST_CLASSES}
            )
        if not _COLOUR.fullmatch(colour):
            raise SegmentationError(_("%(name)s needs a colour.") % {"name": name})
        names.add(name.casefold())
        values.add(value)
        checked.append({"value": value, "name": name, "colour": colour})
    return checked


def stroke_add(*, user: User, file: ImageFile, stroke: Mapping[str, Any]) -> Stroke:
    """Store one stroke; strokes undone before it can no longer be redone.

    A browser that gets no answer sends a stroke again with the same key ``id``; it is stored once.

    Raises
    ------
    SegmentationError
        If it is not a valid stroke on this image.
    """
    fields = _checked_stroke(file, stroke)
    key = checked_key(stroke.get("id"))
    factor = live_factor(file.width, file.height)
    fields["pixels"] = factor**2 * int(
        (paint_strokes([fields | {"value": 1}], live_size(file.width, file.height), factor)).sum()
    )
    with transaction.atomic():
        ImageFile.objects.select_for_update().get(pk=file.pk)
        known = Stroke.objects.filter(pk=key).first()
        if known is not None and known.file_id != file.pk:
            raise SegmentationError(_("This stroke lies on another picture."))
        if known is not None:
            return known
        file.strokes.filter(undone=True, created_by=user).delete()
        last = file.strokes.aggregate(last=Max("number"))["last"] or 0
        if last >= MOST_STROKES:
            raise SegmentationError(
                _("An image takes %(most_strokes)s strokes at most.")
                % {"most_strokes": f"{MOST_STROKES:,}"}
            )
        if not file.image_set.classes:
            file.image_set.classes = classes_of(file.image_set)
            file.image_set.save(update_fields=["classes"])
        kept = Stroke.objects.create(pk=key, file=file, number=last + 1, created_by=user, **fields)
        if last == 0:
            audit(user, "began to paint on", file, image_set=file.image_set.name)
    return kept


def checked_key(key: Any) -> uuid.UUID:
    """Return the browser's key of a stroke, or a new one."""
    if key is None:
        return uuid.uuid4()
    try:
        return uuid.UUID(key)
    except (ValueError, TypeError, AttributeError) as error:
        raise SegmentationError(_("The stroke has no key of its own.")) from error


def _checked_stroke(file: ImageFile, stroke: Mapping[str, Any]) -> dict[str, Any]:
    """Return the validated fields of a stroke."""
    classes = {one["value"] for one in classes_of(file.image_set)}
    value, tool = stroke.get("value"), stroke.get("tool")
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not is_number or (value != 0 and value not in classes):
        raise SegmentationError(_("This class is no longer there."))
    if not isinstance(tool, str) or tool not in Stroke.Tool.values:
        raise SegmentationError(_("This is no tool for painting."))
    try:
        geometry = checked_geometry({**stroke, "tool": tool}, (file.width, file.height))
    except InvalidProblemError as error:
        raise SegmentationError(str(error)) from error
    return {"value": value, "tool": tool, **geometry}


def stroke_undo(*, user: User, file: ImageFile, redo: bool = False) -> Stroke | None:
    """Undo the user's own last stroke, or redo the last one undone; None if there is none.

    Strokes of others stay.
    """
    with transaction.atomic():
        ImageFile.objects.select_for_update().get(pk=file.pk)
        strokes = file.strokes.filter(undone=redo, created_by=user)
        stroke = strokes.order_by("number" if redo else "-number").first()
        if stroke is not None:
            stroke.undone = not redo
            stroke.save(update_fields=["undone"])
    return stroke


def strokes_clear(*, user: User, file: ImageFile) -> list[uuid.UUID]:
    """Take back every stroke on an image, those of others too; return their keys."""
    with transaction.atomic():
        ImageFile.objects.select_for_update().get(pk=file.pk)
        strokes = file.strokes.filter(undone=False)
        keys = list(strokes.values_list("pk", flat=True))
        strokes.update(undone=True)
        if keys:
            audit(user, "cleared", file, strokes=len(keys), image_set=file.image_set.name)
    return keys


def strokes_restore(*, user: User, file: ImageFile, keys: list[uuid.UUID]) -> int:
    """Bring strokes back that clearing took; return their number."""
    with transaction.atomic():
        ImageFile.objects.select_for_update().get(pk=file.pk)
        count = file.strokes.filter(pk__in=keys[:MOST_STROKES], undone=True).update(undone=False)
        if count:
            audit(user, "restored strokes of", file, strokes=count, image_set=file.image_set.name)
    return count


def class_values(image_set: ImageSet) -> list[int]:
    """Return the numbers of the classes, in order."""
    return [one["value"] for one in classes_of(image_set)]


def process_name(image_set: ImageSet) -> str:
    """Return the name of a set's warm process."""
    return image_set.pk.hex


def warm_up(file: ImageFile) -> None:
    """Make the warm process load an image before the first stroke."""
    question = {
        "do": "open",
        "classes": class_values(file.image_set),
        "picture": picture_of(file, []),
    }
    client.ask(process_name(file.image_set), question)


def answer(file: ImageFile) -> tuple[dict[str, Any], bytes]:
    """Learn from all strokes of the set and answer for one image; store the accuracy before.

    Raises
    ------
    SegmentationError
        If the process does not answer.
    """
    image_set = file.image_set
    question = {
        "do": "answer",
        "classes": class_values(image_set),
        "picture": picture_of(file, _strokes(file)),
        "others": [picture_of(other, _strokes(other)) for other in painted_files(image_set, file)],
    }
    header, body = client.ask(process_name(image_set), question)
    for key, share in header.get("right", {}).items():
        Stroke.objects.filter(pk=key, right=None).update(right=share)
    return header, body


def objects(file: ImageFile, value: int, *, min_pixels: int) -> list[dict[str, Any]]:
    """Return the objects of a class in the last answer, largest first.

    Areas and lengths are in micrometres if the size of a pixel is known, else in pixels.
    """
    size = file.pixel_size
    question = {
        "do": "objects",
        "picture": picture_of(file, []),
        "value": value,
        "min_pixels": min_pixels,
        "pixel_size": [size.x, size.y] if size else None,
    }
    return client.ask(process_name(file.image_set), question)[0]["rows"]


def painted_files(image_set: ImageSet, besides: ImageFile) -> list[ImageFile]:
    """Return the other images of a set with strokes, last painted first."""
    others = image_set.files.filter(strokes__undone=False).exclude(pk=besides.pk)
    return list(others.annotate(last=Max("strokes__created_at")).order_by("-last")[:MOST_PAINTED])


def picture_of(file: ImageFile, strokes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the data about an image that a warm process needs."""
    view = file.view
    return {
        "key": file.digest + view_mark(view),
        "path": str(file.store.fetch(file.digest)),
        "name": file.name,
        "view": view.as_json() if view else None,
        "width": file.width,
        "height": file.height,
        "strokes": strokes,
    }


def _strokes(file: ImageFile) -> list[dict[str, Any]]:
    return [stroke_fields(stroke) for stroke in file.strokes.filter(undone=False)]


def stroke_fields(stroke: Stroke) -> dict[str, Any]:
    """Return the fields of a stroke that determine its pixels, and its key."""
    return {
        "id": str(stroke.pk),
        "tool": stroke.tool,
        "value": stroke.value,
        "radius": stroke.radius,
        "points": stroke.points,
        "radii": stroke.radii,
    }
