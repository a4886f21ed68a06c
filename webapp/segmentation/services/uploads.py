"""Import of uploaded files into a set, one by one: a bad file does not affect the others."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from django.core.files.uploadedfile import UploadedFile
from django.db import DatabaseError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine import InvalidProblemError
from engine.datasets.annotations.archive import (
    MAX_ENTRY_BYTES,
    ArchiveEntry,
    ArchiveError,
    NamesError,
    archive_entries,
    display_name,
    entry_chunks,
    open_archive,
)
from engine.datasets.annotations.archive_plans import ArchivePlan, plan_archive
from engine.datasets.annotations.class_maps import names_voc_class, read_class_map
from engine.datasets.annotations.label_tables import LabelTable
from engine.datasets.annotations.object_masks import joined_masks, numbered_stem
from engine.datasets.annotations.panoptic import FindMap
from engine.datasets.annotations.pictures import (
    FindPicture,
    NoPictureError,
    is_annotation,
    read_annotation_file,
)
from engine.datasets.annotations.shapes import Annotation
from engine.datasets.image_names import (
    ILASTIK_MAP,
    MASK_PREFIXES,
    is_lossy,
    map_stem,
    mask_stem,
    numbers_objects,
    picture_stem,
    prefixed_stem,
)
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.errors import Refusal
from webapp.files.contents import FileStore, StorageFullError, StoredContent
from webapp.files.quota import QuotaError, with_fresh_count
from webapp.files.store import StoreAwayError
from webapp.segmentation.inspection import FileFacts, inspect_file, inspect_map
from webapp.segmentation.models import ImageFile, ImageSet
from webapp.segmentation.services.annotations import annotations_take
from webapp.segmentation.services.image_sets import (
    content_keep,
    contents_release,
    pairing_refresh,
)
from webapp.segmentation.services.probability_maps import is_map_of_image
from webapp.segmentation.services.views import view_for, view_mark
from webapp.translation.lazy import gettext_lazy

logger = logging.getLogger(__name__)

ZIP_HEADS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
MAX_FILES = 250_000  # 100,000 images, their masks, and a reserve
NOT_TRIED = gettext_lazy("Not tried: there was no room for a file before it.")
UNFORESEEN = gettext_lazy(
    "%(name)s could not be read: an error that nobody foresaw, which is in the log. "
    "Nothing of it was saved; it stops no other file."
)
_IMAGE = ImageFile.Role.IMAGE


@dataclass(frozen=True, slots=True)
class FileResult:
    """Result of one file: added, replaced, same, left out or refused, and a sentence.

    ``is_early``: its image is not in the set yet; it may be sent again after that.
    ``encodings`` has samples of the names of a ZIP by the encodings that they may have.
    """

    name: str
    outcome: str
    sentence: str
    file_id: str = ""
    is_no_room: bool = False  # applies to every file after it, too
    is_early: bool = False
    encodings: dict[str, str] = field(default_factory=dict)

    @property
    def was_taken(self) -> bool:
        """Return True if the file is in the set now, in any form."""
        return self.outcome in {"added", "replaced", "same"}


@dataclass(frozen=True, slots=True)
class UploadChoices:
    """Options sent with a file.

    Parameters
    ----------
    as_name : name of the file to replace, instead of its own name
    encoding : encoding of the names in a ZIP
    beside : name of the only image sent along, for outlines that name no image
    """

    as_name: str = ""
    encoding: str = ""
    beside: str = ""


@dataclass(frozen=True, slots=True)
class _Source:
    """Origin of a file, with the facts from its archive."""

    archive: str = ""
    beside: str = ""
    is_of_objects: bool = False
    is_label_map: bool = False
    table: LabelTable | None = None
    find_picture: FindPicture = lambda reference: None
    find_map: FindMap = lambda path: None


def upload_take_all(
    *,
    user: User,
    image_set: ImageSet,
    files: Sequence[UploadedFile],
    choices: UploadChoices = UploadChoices(),
) -> Iterator[FileResult]:
    """Import files one after the other, images first; stop at the first one without space.

    Of files with one name only the first is imported.
    """
    has_room, names = True, set()
    for uploaded in sorted(files, key=_turn):
        name = display_name(choices.as_name or uploaded.name or "")
        if not has_room:
            yield FileResult(name, "refused", str(NOT_TRIED))
            continue
        if name in names:
            sentence = _(
                "%(name)s was sent twice; the second one was not saved. Rename one of them."
            ) % {"name": name}
            yield FileResult(name, "refused", sentence)
            continue
        names.add(name)
        for result in upload_take(
            user=user, image_set=image_set, uploaded=uploaded, choices=choices
        ):
            has_room = has_room and not result.is_no_room
            yield result


def _turn(uploaded: UploadedFile) -> int:
    """Return the turn of a file: images, then masks, then annotations, then ZIPs of outlines."""
    name = uploaded.name or ""
    if name.casefold().endswith(".zip"):
        return 2 if "roi" in name.casefold() else 0
    return 1 if _is_about_another(name) else 0


def upload_take(
    *,
    user: User,
    image_set: ImageSet,
    uploaded: UploadedFile,
    choices: UploadChoices = UploadChoices(),
) -> Iterator[FileResult]:
    """Store an image, or every image of a ZIP; yield a result per file as soon as it is known."""
    head = uploaded.read(4)
    uploaded.seek(0)
    taken = 0
    try:
        if head in ZIP_HEADS:
            results = _take_archive(user, image_set, uploaded, choices)
        else:
            name = display_name(choices.as_name or uploaded.name or "") or "image"
            source = _Source(beside=choices.beside)
            results = iter([_take(user, image_set, name, uploaded.chunks(), source)])
        for result in results:
            taken += result.was_taken
            yield result
    finally:
        if taken:
            pairing_refresh(image_set=image_set)
            audit(user, "uploaded to", image_set, name=uploaded.name, files=taken)


def _take_archive(
    user: User, image_set: ImageSet, uploaded: UploadedFile, choices: UploadChoices
) -> Iterator[FileResult]:
    name = display_name(uploaded.name or "") or "ZIP"
    if uploaded.file is None:
        raise ValueError("The upload has no file.")
    try:
        archive = open_archive(uploaded.file)
    except ArchiveError as error:
        yield FileResult(name, "refused", str(error))
        return
    with archive:
        try:
            entries = archive_entries(archive, choices.encoding)
        except NamesError as error:
            yield FileResult(name, "refused", str(error), encodings=error.choices)
            return
        if not entries:
            yield FileResult(name, "refused", _("The ZIP is empty. Nothing was saved."))
            return

        def read(entry: ArchiveEntry) -> bytes:
            return b"".join(_capped(entry_chunks(archive, entry), entry.name))

        plan = plan_archive(entries, read)
        steps = list(_steps(user, image_set, name, plan, read, choices))
        for number, step in enumerate(steps, start=1):
            results = list(step())
            yield from results
            if any(result.is_no_room for result in results):
                if left := len(steps) - number:
                    yield FileResult(
                        name,
                        "refused",
                        _("%(left)s more of its files were not tried.") % {"left": left},
                    )
                return
        yield from _left_out(plan.left_out)


def _steps(
    user: User,
    image_set: ImageSet,
    archive: str,
    plan: ArchivePlan,
    read: Callable[[ArchiveEntry], bytes],
    choices: UploadChoices,
) -> Iterator[Callable[[], Iterable[FileResult]]]:
    """Yield the steps for the files of an archive, images before the files about them."""
    for entry in plan.refused:
        yield partial(_refused, entry)
    ordered = sorted(plan.files, key=lambda entry: _is_about_another(entry.name))
    for entry in [one for one in ordered if not is_annotation(one.name)]:
        source = _Source(
            archive=archive,
            is_of_objects="segmentationobject/" in entry.path.casefold(),
            is_label_map=plan.is_label_map(entry),
            table=plan.table_of(entry),
        )
        yield partial(_take_entry, user, image_set, entry, read, source)
    for picture, masks in plan.object_masks.items():
        yield partial(_take_objects, user, image_set, picture, masks, read)
    for entry in [one for one in ordered if is_annotation(one.name)]:
        source = _Source(
            archive=archive,
            beside=choices.beside,
            find_picture=partial(plan.pictures.find, about=entry.path),
            find_map=partial(plan.find_map, read=read, about=entry.path),
        )
        yield partial(_take_entry, user, image_set, entry, read, source)


def _refused(entry: ArchiveEntry) -> list[FileResult]:
    return [FileResult(entry.name or "?", "refused", entry.refusal or "")]


def _take_entry(
    user: User,
    image_set: ImageSet,
    entry: ArchiveEntry,
    read: Callable[[ArchiveEntry], bytes],
    source: _Source,
) -> list[FileResult]:
    try:
        content = read(entry)
    except (Refusal, InvalidProblemError) as error:
        return [FileResult(entry.name, "refused", str(error))]
    return [_take(user, image_set, entry.name, [content], source)]


def _take_objects(
    user: User,
    image_set: ImageSet,
    picture: str,
    masks: list[ArchiveEntry],
    read: Callable[[ArchiveEntry], bytes],
) -> list[FileResult]:
    """Join masks of one object each to a map of all objects of their image."""
    name = display_name(f"{Path(picture).stem}_instances.png")
    try:
        content, count = joined_masks((entry.name, read(entry)) for entry in masks)
    except (Refusal, InvalidProblemError) as error:
        return [
            FileResult(
                name,
                "refused",
                _("%(error)s None of the masks of %(picture)s was saved.")
                % {"error": error, "picture": picture},
            )
        ]
    result = _take(user, image_set, name, [content], _Source(is_of_objects=True))
    sentence = _("%(count)s masks of one object each, joined. %(sentence)s") % {
        "count": count,
        "sentence": result.sentence,
    }
    return [replace(result, sentence=sentence)]


def _left_out(entries: Sequence[ArchiveEntry]) -> Iterator[FileResult]:
    """Yield one result per reason, with the number of files left out and the first one's name."""
    reasons: dict[str, list[ArchiveEntry]] = {}
    for entry in entries:
        reasons.setdefault(entry.left_out, []).append(entry)
    for reason, group in reasons.items():
        more = ""
        if len(group) > 1:
            more = ngettext(
                "So was one more file.", "So were %(count)s more files.", len(group) - 1
            ) % {"count": len(group) - 1}
        yield FileResult(group[0].name, "left out", f"{reason} {more}".strip())


def _is_about_another(name: str) -> bool:
    """Return True if a file belongs to an image, which must be there first."""
    is_prefixed = picture_stem(name).startswith(MASK_PREFIXES)
    is_mask = mask_stem(name) is not None or is_prefixed or numbered_stem(name) is not None
    is_map = map_stem(name) is not None
    return is_annotation(name) or is_mask or is_map or _is_scribble(name)


def _is_scribble(name: str) -> bool:
    return "scribble" in name.casefold()


def _take_annotations(
    user: User, image_set: ImageSet, name: str, content: bytes, source: _Source
) -> FileResult:
    annotations = read_annotation_file(
        content,
        name,
        image_set.files.filter(role=_IMAGE).values_list("name", flat=True),
        archive=source.archive,
        beside=source.beside,
        is_picture=_PicturesOf(image_set, source).__contains__,
        find_map=_MapsOf(image_set, source).find,
    )
    sentence = annotations_take(
        user=user,
        image_set=image_set,
        name=name,
        annotations=annotations,
        find=source.find_picture,
    )
    return FileResult(name, "added", sentence)


class _PicturesOf:
    """Lookup of the images that annotations refer to: in the archive and in the set."""

    def __init__(self, image_set: ImageSet, source: _Source) -> None:
        names = image_set.files.filter(role=_IMAGE).values_list("name", flat=True)
        self._stems = {picture_stem(name) for name in names}
        self._find = source.find_picture

    def __contains__(self, reference: str) -> bool:
        return picture_stem(reference) in self._stems or self._find(reference) is not None


class _MapsOf:
    """Lookup of the PNG files with COCO panoptic's segments: in the archive, or in the set."""

    def __init__(self, image_set: ImageSet, source: _Source) -> None:
        self._image_set, self._find = image_set, source.find_map

    def find(self, path: str) -> Path | bytes | None:
        found = self._find(path)
        if found is not None:
            return found
        file = self._image_set.files.filter(name=display_name(path)).first()
        return file.store.fetch(file.digest) if file else None


def _painted_instead(user: User, file: ImageFile, source: _Source) -> FileResult | None:
    """Paint a map of classes on its image, since it cannot be a two-valued mask."""
    if not _may_hold_classes(file, source):
        return None
    image_set, digest = file.image_set, file.digest
    found: Annotation | None = None
    try:
        found = read_class_map(
            file.store.fetch(file.digest),
            file.name,
            is_of_objects=source.is_of_objects or numbers_objects(file.name),
            table=source.table,
        )
        if found is None:
            return None
        sentence = annotations_take(
            user=user, image_set=image_set, name=file.name, annotations=[found]
        )
    except (Refusal, InvalidProblemError) as error:
        is_early = isinstance(error, NoPictureError)
        file.delete()
        contents_release(organisation_id=image_set.organisation_id, digests=[digest])
        return FileResult(file.name, "refused", str(error), is_early=is_early)
    file.delete()
    contents_release(organisation_id=image_set.organisation_id, digests=[digest])
    return FileResult(file.name, "added", sentence)


def _may_hold_classes(file: ImageFile, source: _Source) -> bool:
    """Return True if a file is a map of classes by archive or name, or is unusable as a mask.

    A map of ilastik counts even with two classes, as neither is known to be the foreground, and so
    does one class of VOC. A lossless file of few values beside a photograph of its name counts as
    well.
    """
    if source.is_label_map or _is_scribble(file.name):
        return True
    if picture_stem(file.name).endswith(ILASTIK_MAP):
        return True
    is_meant = _is_named_as_mask(file) or _is_beside_photograph(file)
    return is_meant and (
        not file.mask_like or names_voc_class(file.store.fetch(file.digest), file.name)
    )


def _is_named_as_mask(file: ImageFile) -> bool:
    if mask_stem(file.name) is not None:
        return True
    if not picture_stem(file.name).startswith(MASK_PREFIXES):
        return False
    others = file.image_set.files.exclude(pk=file.pk).values_list("name", flat=True)
    return prefixed_stem(file.name, {picture_stem(name) for name in others}) is not None


def _is_beside_photograph(file: ImageFile) -> bool:
    """Return True if a file of few values has the name and size of a photograph of the set."""
    if is_lossy(file.name) or not (file.facts.get("labels") or file.mask_like):
        return False
    stem = picture_stem(file.name)
    same = file.image_set.files.filter(role=_IMAGE, width=file.width, height=file.height)
    others = same.exclude(pk=file.pk).values_list("name", flat=True)
    return any(is_lossy(name) and picture_stem(name) == stem for name in others)


def _labels_beside(user: User, photograph: ImageFile) -> str:
    """Paint the map of classes that was uploaded before its photograph, as an image.

    If two uploads find each other at once, one of them paints. Return a sentence about it.
    """
    if not is_lossy(photograph.name):
        return ""
    stem = picture_stem(photograph.name)
    may_hold = Q(facts__labels__gt=0) | Q(mask_like=True)
    others = photograph.image_set.files.filter(may_hold, role=_IMAGE)
    with transaction.atomic():
        ImageSet.objects.select_for_update().get(pk=photograph.image_set_id)
        for file in others.exclude(pk=photograph.pk):
            if picture_stem(file.name) == stem and not file.strokes.exists():
                painted = _painted_instead(user, file, _Source())
                if painted is not None:
                    return f". {file.name}: {painted.sentence}"
    return ""


def _take(
    user: User, image_set: ImageSet, name: str, chunks: Iterable[bytes], source: _Source
) -> FileResult:
    """Import one file; an error is reported for this file and does not stop the others."""
    try:
        return _taken(user, image_set, name, chunks, source)
    except (QuotaError, StorageFullError) as error:
        return FileResult(name, "refused", str(error), is_no_room=True)
    except InvalidProblemError as error:
        sentence = str(error)
        if name not in sentence:
            sentence = f"{name}: {sentence[:1].lower()}{sentence[1:]}"
        is_early = isinstance(error, NoPictureError)
        return FileResult(name, "refused", sentence, is_early=is_early)
    except Refusal as error:
        return FileResult(name, "refused", str(error))
    except (OSError, DatabaseError, StoreAwayError):
        raise  # an error of the server, for every file after this one
    except Exception:
        logger.exception("An upload raised what nobody foresaw")
        return FileResult(name, "refused", UNFORESEEN % {"name": name})


def _taken(
    user: User, image_set: ImageSet, name: str, chunks: Iterable[bytes], source: _Source
) -> FileResult:
    if is_annotation(name):
        content = b"".join(_capped(chunks, name))
        return _take_annotations(user, image_set, name, content, source)
    file, outcome = image_file_add(user=user, image_set=image_set, name=name, chunks=chunks)
    note = ""
    if outcome != "same" and file.role != ImageFile.Role.MAP:
        painted = _painted_instead(user, file, source)
        if painted is not None:
            return painted
        note = _labels_beside(user, file)
    return FileResult(name, outcome, _sentence(file, outcome) + note, str(file.pk))


def _sentence(file: ImageFile, outcome: str) -> str:
    """Return the sentence on an imported file: how it was understood, before it is used."""
    if outcome == "same":
        return _("Already here, unchanged")
    if file.role == ImageFile.Role.MAP:
        n_planes = file.facts["planes"]
        return ngettext(
            "Probabilities, %(n_planes)s plane", "Probabilities, %(n_planes)s planes", n_planes
        ) % {"n_planes": n_planes}
    sentence = _("%(width)s × %(height)s pixels") % {"width": file.width, "height": file.height}
    if outcome == "replaced":
        sentence = _("Replaced the earlier %(file)s") % {"file": file.name}
    if _is_named_as_mask(file) and file.understood:
        return _("%(sentence)s. Understood: %(understood)s") % {
            "sentence": sentence,
            "understood": file.understood,
        }
    if reason := file.facts.get("not_mask"):
        return _("%(sentence)s. It is not used as a mask: %(reason)s") % {
            "sentence": sentence,
            "reason": reason[:1].lower() + reason[1:],
        }
    plain = file.facts.get("plain") if file.mask_of_id is None else ""
    if not plain:
        return sentence
    return _(
        "%(sentence)s. All %(colour)s in this set’s range of values: see Display and scale"
    ) % {
        "sentence": sentence,
        "colour": plain,
    }


@with_fresh_count
def image_file_add(
    *, user: User, image_set: ImageSet, name: str, chunks: Iterable[bytes]
) -> tuple[ImageFile, str]:
    """Store one image under its name; an earlier file of that name is replaced.

    Returns
    -------
    (ImageFile, str)
        The file, and "added", "replaced" or "same". Pairs are not refreshed here.

    Raises
    ------
    InvalidProblemError, Refusal, StorageFullError
        With one clear sentence; nothing of the file stays stored.
    """
    store = FileStore(image_set.organisation_id)
    content = store.put(_capped(chunks, name))
    earlier = image_set.files.filter(name=name).first()
    was_map = earlier is not None and earlier.role == ImageFile.Role.MAP
    is_decided = earlier is not None and earlier.role_fixed
    is_map = was_map if is_decided else is_map_of_image(image_set, name)
    if earlier is not None and earlier.digest == content.digest and is_map == was_map:
        return earlier, "same"
    try:
        is_mask = mask_stem(name) is not None
        path = store.path(content.digest)
        if is_map:
            facts = inspect_map(path, name)
        else:
            facts = inspect_file(
                path, name, lambda stack: view_for(image_set, stack, is_mask=is_mask)
            )
        is_shown_deep = facts.facts.get("kind") and not is_mask
        mark = view_mark(image_set.picture_view) if is_shown_deep else ""
        FileStore(image_set.organisation_id, "derived").put_derived(
            content.digest, f"{mark}.thumb.jpg", facts.thumbnail
        )
        file = _save_row(user, image_set, name, content, facts, is_map=is_map)
    except BaseException:
        contents_release(organisation_id=image_set.organisation_id, digests=[content.digest])
        raise
    if earlier is not None:
        contents_release(organisation_id=image_set.organisation_id, digests=[earlier.digest])
    return file, "replaced" if earlier is not None else "added"


def _capped(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    total = 0
    for chunk in chunks:
        total += len(chunk)
        if total > MAX_ENTRY_BYTES:
            raise InvalidProblemError(
                _("%(name)s is larger than %(max_entry_bytes)s MB. Nothing was saved.")
                % {"name": name, "max_entry_bytes": MAX_ENTRY_BYTES // 1024**2}
            )
        yield chunk
    if total == 0:
        raise InvalidProblemError(_("%(name)s is empty.") % {"name": name})


def _save_row(
    user: User,
    image_set: ImageSet,
    name: str,
    content: StoredContent,
    facts: FileFacts,
    *,
    is_map: bool,
) -> ImageFile:
    decided = {"role": ImageFile.Role.MAP, "role_fixed": True} if is_map else {}
    with transaction.atomic():
        if image_set.files.count() >= MAX_FILES:
            raise InvalidProblemError(
                _("%(name)s: a set holds at most %(max_files)s files. Start another set.")
                % {"name": name, "max_files": f"{MAX_FILES:,}"}
            )
        file, _rest = ImageFile.objects.update_or_create(
            image_set=image_set,
            name=name,
            defaults={
                "digest": content.digest,
                "size": content.size,
                "media_type": facts.media_type,
                "width": facts.width,
                "height": facts.height,
                "mask_like": facts.mask_like,
                "facts": facts.facts,
                "origin": ImageFile.Origin.UPLOADED,
                "created_by": user,
                **decided,
            },
        )
        content_keep(
            organisation_id=image_set.organisation_id,
            content=content,
            written=content.size + len(facts.thumbnail),
        )
    return file
