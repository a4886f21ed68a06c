"""Services for correcting objects by hand: one act each, undo and redo, and a new measurement.

Acts of several people on one image queue up by compare-and-set on the key of its stored objects:
whoever comes second applies the act to what the first one left.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from engine.metrics import EditRefusedError, ObjectEdit, ObjectEditor, apply_edits
from engine.metrics.object_edits import MAX_NUMBER, MAX_POINTS
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.files import store
from webapp.files.contents import full_disk_explained
from webapp.files.storage import keep_bytes
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.measuring import (
    StoredObjects,
    Summary,
    aspect_of,
    classes_of_row,
    columns_after,
    count_again,
    editor_of,
    measure_stored,
    object_classes,
    object_options,
    packed,
    stored_inputs,
    stored_objects,
)
from webapp.segmentation.models import (
    ObjectCorrection,
    PredictedImage,
)
from webapp.segmentation.object_options import ObjectOptions
from webapp.segmentation.selectors.corrections import MAKES_OBJECTS, redoable, undoable

MOST_CORRECTIONS = 2_000
MOST_TRIES = 20
"""Times that an act is tried again because others acted on the same image meanwhile."""
NO_CLASS = 255
"""Number of no class: that of carried corrections whose class the model does not have."""


@dataclass(frozen=True, slots=True)
class Content:
    """New content of an image's objects: the file, counts, and the problem of each correction."""

    file: bytes
    shares: Summary
    problems: Mapping[uuid.UUID, str]


def key_of(sent: Any) -> uuid.UUID:
    """Return the key that a page or program gave a correction, or refuse."""
    try:
        return uuid.UUID(sent)
    except (ValueError, TypeError, AttributeError) as error:
        raise SegmentationError(_("The correction has no key of its own.")) from error


def correction_arguments(sent: Any) -> dict[str, Any]:
    """Return the arguments of ``correction_add`` that a page sent as JSON.

    Raises
    ------
    SegmentationError
        If a value has another type than expected.
    """
    if not isinstance(sent, Mapping):
        raise SegmentationError(_("A correction is one JSON object."))
    kind, order = sent.get("kind"), sent.get("order", "")
    number, value = sent.get("number", 0), sent.get("value", 0)
    if not isinstance(kind, str) or not isinstance(order, str):
        raise SegmentationError(_("The kind and the order of a correction are text."))
    for whole in (number, value):
        if not isinstance(whole, int) or isinstance(whole, bool) or not 0 <= whole <= MAX_NUMBER:
            raise SegmentationError(
                _("Numbers are whole, 0 to %(max_number)s.") % {"max_number": f"{MAX_NUMBER:,}"}
            )
    return {
        "key": key_of(sent["id"]) if sent.get("id") is not None else None,
        "kind": kind,
        "places": _pairs(sent.get("places", [])),
        "points": _pairs(sent.get("points", [])),
        "number": number,
        "value": value,
        "order": order,
    }


def _pairs(sent: Any) -> list[tuple[float, float]]:
    if not isinstance(sent, list) or len(sent) > MAX_POINTS:
        raise SegmentationError(
            _("Places are a list of at most %(max_points)s pairs of numbers.")
            % {"max_points": f"{MAX_POINTS:,}"}
        )
    found = []
    for pair in sent:
        is_pair = isinstance(pair, list) and len(pair) == 2
        if not is_pair or not all(type(one) in (int, float) and abs(one) < 1e9 for one in pair):
            raise SegmentationError(_("A place is a pair of numbers: column and row."))
        found.append((float(pair[0]), float(pair[1])))
    return found


def correction_add(
    *,
    user: User,
    row: PredictedImage,
    key: uuid.UUID | None = None,
    kind: str,
    places: Sequence[tuple[float, float]] = (),
    points: Sequence[tuple[float, float]] = (),
    number: int = 0,
    value: int = 0,
    order: str = "",
) -> ObjectCorrection:
    """Correct objects of an image; an act that is sent again with the same key is stored once.

    Parameters
    ----------
    places : columns and rows (x, y), pixels of the image: a place in every object meant.
    points : columns and rows of a line or a border.

    Raises
    ------
    SegmentationError
        If the act does not fit the objects as they are now, or makes no sense.
    """
    key = key or uuid.uuid4()
    known = ObjectCorrection.objects.filter(pk=key).first()
    if known is not None:
        if known.image_id != row.pk:
            raise SegmentationError(_("This correction lies on another image."))
        return known
    value = value or _first_class(row)
    made: list[ObjectEdit] = []
    areas: list[int] = []

    def build(stored: StoredObjects) -> tuple[ObjectEditor, set[int], dict[uuid.UUID, str]]:
        editor = _editor(row, stored.numbers, stored.owners)
        try:
            edit = editor.record(
                kind, places, points=points, number=number, value=value, order=order
            )
            changed = editor.apply(edit)
        except EditRefusedError as error:
            raise SegmentationError(str(error)) from error
        if not changed:
            raise SegmentationError(_("This changes nothing: the objects are like that already."))
        made[:] = [edit]
        kept = [one for one in changed if one in editor.classes]
        areas[:] = [int(editor.shape_of(one).mask.sum()) for one in kept]
        return editor, changed, {}

    def write() -> ObjectCorrection:
        last = row.corrections.aggregate(last=Max("number"))["last"] or 0
        if last >= MOST_CORRECTIONS:
            raise SegmentationError(
                _("An image takes %(most_corrections)s corrections at most.")
                % {"most_corrections": f"{MOST_CORRECTIONS:,}"}
            )
        correction = ObjectCorrection.objects.create(
            pk=key,
            image=row,
            number=last + 1,
            kind=kind,
            content=made[0].as_json() | {"areas": areas if kind in MAKES_OBJECTS else []},
            created_by=user,
        )
        audit(user, "corrected objects of", row, act=correction.sentence, batch=row.batch.name)
        return correction

    return _changed(row, build, write)


def correction_undo(
    *, user: User, row: PredictedImage, key: uuid.UUID | None = None, redo: bool = False
) -> tuple[ObjectCorrection, list[str]]:
    """Undo a correction, by default the user's own last one; or redo it.

    Every other correction stays. Return also why corrections that were applied before cannot be
    applied without this one.

    Raises
    ------
    SegmentationError
        If there is nothing to undo or redo.
    """
    chosen: list[ObjectCorrection] = []
    before: list[ObjectCorrection] = []

    def build(stored: StoredObjects) -> tuple[ObjectEditor, set[int], dict[uuid.UUID, str]]:
        chosen[:] = [_target(user, row, key, redo)]
        before[:] = list(row.corrections.all())
        active = [one for one in before if (redo if one.pk == chosen[0].pk else not one.undone)]
        editor = _editor(row, stored.base, stored.base_owners)
        problems = apply_edits(editor, [one.edit for one in active])
        found = {one.pk: problem for one, problem in zip(active, problems, strict=True)}
        if redo and found[chosen[0].pk]:
            raise SegmentationError(
                _("This cannot be done again. %(found)s") % {"found": found[chosen[0].pk]}
            )
        return editor, _differences(stored, editor), found

    def write() -> ObjectCorrection:
        chosen[0].undone = not redo
        chosen[0].problem = ""
        chosen[0].save(update_fields=["undone", "problem"])
        verb = "redid a correction of" if redo else "undid a correction of"
        audit(user, verb, row, act=chosen[0].sentence, batch=row.batch.name)
        return chosen[0]

    correction = _changed(row, build, write)
    after = {one.pk: one for one in row.corrections.all()}
    lost = [
        f"{after[one.pk].sentence}: {after[one.pk].problem}"
        for one in before
        if not one.undone and not one.problem and after[one.pk].problem
    ]
    return correction, lost


def _target(user: User, row: PredictedImage, key: uuid.UUID | None, redo: bool) -> ObjectCorrection:
    if key is not None:
        found = row.corrections.filter(pk=key, undone=redo).first()
    else:
        found = redoable(user, row) if redo else undoable(user, row)
    if found is None:
        what = "redo" if redo else "undo"
        raise SegmentationError(_("There is no correction of yours to %(what)s.") % {"what": what})
    return found


def objects_write(row: PredictedImage, options: ObjectOptions) -> list[str]:
    """Measure the objects of a predicted image again and apply its corrections.

    Return why corrections could not be applied.
    """
    found: list[str] = []

    def make() -> Content:
        active = list(row.corrections.filter(undone=False))
        table, shares, problems = measure_stored(row, options, [one.edit for one in active])
        found[:] = [problem for problem in problems if problem]
        pairs = zip(active, problems, strict=True)
        return Content(table, shares, {one.pk: problem for one, problem in pairs})

    _kept(row, make, lambda: None)
    return found


def carried(row: PredictedImage) -> list[ObjectCorrection]:
    """Return unsaved copies of the corrections of the newest other prediction of the same image.

    Classes are matched by their names.
    """
    others = PredictedImage.objects.filter(
        image_digest=row.image_digest,
        batch__image_set=row.batch.image_set_id,
        batch__removed_at=None,
        corrections__undone=False,
    ).exclude(pk=row.pk)
    source = others.annotate(at=Max("corrections__created_at")).order_by("-at", "pk").first()
    if source is None:
        return []
    own = {one["name"].strip().casefold(): one["value"] for one in classes_of_row(row)}
    same = {
        one["value"]: own.get(one["name"].strip().casefold(), NO_CLASS)
        for one in classes_of_row(source)
    }
    if not row.batch.model.classes and not source.batch.model.classes:
        same = {1: 1}  # the foreground of a mask, whatever it is called
    copies = []
    words = _("%(prediction)s by %(model)s")
    words %= {"prediction": source.batch.name, "model": source.batch.model.name}
    for number, one in enumerate(source.corrections.filter(undone=False), start=1):
        value = same.get(one.content["value"], NO_CLASS) if one.content["value"] else 0
        copies.append(
            ObjectCorrection(
                image=row,
                number=number,
                kind=one.kind,
                content=one.content | {"value": value},
                source=one.source or words[:120],
                created_by_id=one.created_by_id,
                created_at=one.created_at,
            )
        )
    return copies


def note_problems(corrections: Sequence[ObjectCorrection], problems: Sequence[str]) -> None:
    """Set why each of some unsaved corrections could not be applied."""
    for correction, problem in zip(corrections, problems, strict=True):
        correction.problem = problem


def _require_measured(row: PredictedImage) -> None:
    """Refuse images whose objects are not measured yet."""
    if row.state != PredictedImage.State.DONE or not row.shares:
        raise SegmentationError(_("The objects of this image are not measured yet."))


def _first_class(row: PredictedImage) -> int:
    return object_classes(row)[0]["value"]


def _editor(row: PredictedImage, numbers: Any, owners: Mapping[int, int]) -> ObjectEditor:
    return editor_of(numbers, owners, classes_of_row(row), object_options(row))


def _differences(stored: StoredObjects, editor: ObjectEditor) -> set[int]:
    """Return the numbers whose pixels or classes differ from the stored ones."""
    differs = stored.numbers != editor.numbers
    changed = {int(one) for one in np.unique(stored.numbers[differs])}
    changed |= {int(one) for one in np.unique(editor.numbers[differs])}
    owners = stored.owners
    changed |= {one for one, value in editor.classes.items() if owners.get(one) != value}
    return changed - {0}


T = TypeVar("T")
Build = Callable[[StoredObjects], tuple[ObjectEditor, set[int], dict[uuid.UUID, str]]]


def _changed(row: PredictedImage, build: Build, write: Callable[[], T]) -> T:
    """Change the stored objects of an image: ``build`` edits, ``write`` stores the act."""
    _require_measured(row)
    aspect, classes = aspect_of(row.pixel_size), classes_of_row(row)

    def make() -> Content:
        stored = stored_objects(row)
        if stored is None:  # an older version measured it
            active = list(row.corrections.filter(undone=False))
            options = object_options(row)
            table, shares, _rest = measure_stored(row, options, [one.edit for one in active])
            _keep(row, Content(table, shares, {}), lambda: None)
            return make()
        editor, changed, problems = build(stored)
        _image, probabilities, values = stored_inputs(row)
        inputs = (values, probabilities)
        columns = columns_after(stored.columns, editor, changed, inputs, classes, aspect)
        shares = {key: dict(found) for key, found in row.shares.items()}
        count_again(shares, columns, [one["value"] for one in classes], object_options(row))
        base = stored.base, stored.base_owners
        return Content(packed(editor.numbers, columns, aspect, base), shares, problems)

    return _kept(row, make, write)


def _kept(row: PredictedImage, make: Callable[[], Content], write: Callable[[], T]) -> T:
    """Store new objects, again from the beginning where somebody was faster."""
    for _attempt in range(MOST_TRIES):
        row.refresh_from_db(fields=["objects_key", "shares"])
        done = _keep(row, make(), write)
        if done is not None:
            return done[0]
    raise SegmentationError(_("Others are correcting this image right now. Try again in a moment."))


def _keep(row: PredictedImage, content: Content, write: Callable[[], T]) -> tuple[T] | None:
    """Store new objects unless they changed meanwhile; then return None."""
    known, old = row.objects_key, row.objects_path
    key = uuid.uuid4().hex
    row.objects_key = key
    path = row.objects_path
    with full_disk_explained():
        keep_bytes(path, content.file)
    try:
        with transaction.atomic():
            same = PredictedImage.objects.filter(pk=row.pk, objects_key=known)
            if not same.update(objects_key=key, shares=content.shares):
                store.remove(path)
                row.objects_key = known
                return None
            for pk, problem in content.problems.items():
                row.corrections.filter(pk=pk).exclude(problem=problem).update(problem=problem)
            done = write()
            transaction.on_commit(lambda: store.remove(old))
    except BaseException:
        store.remove(path)
        row.objects_key = known
        raise
    row.shares = content.shares
    return (done,)
