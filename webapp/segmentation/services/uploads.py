"""Taking uploaded files into a set, one by one: a bad file never fails its neighbours."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction

from engine import InvalidProblemError
from engine.datasets.image_names import (
    ILASTIK_MAP,
    MASK_PREFIXES,
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
from webapp.segmentation.annotations import read_annotations, read_class_map
from webapp.segmentation.archive import (
    MAX_ENTRY_BYTES,
    ArchiveError,
    archive_entries,
    display_name,
    entry_chunks,
    open_archive,
)
from webapp.segmentation.imagej import read_roi
from webapp.segmentation.inspection import FileFacts, inspect_file, inspect_map
from webapp.segmentation.models import ImageFile, ImageSet
from webapp.segmentation.services.annotations import (
    ROI_ENDING,
    annotations_take,
    image_of_roi,
    is_annotation,
)
from webapp.segmentation.services.image_sets import (
    content_keep,
    contents_release,
    pairing_refresh,
)
from webapp.segmentation.services.probability_maps import is_map_of_image
from webapp.segmentation.services.views import view_for, view_mark

ZIP_HEADS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
MAX_FILES = 250_000  # 100,000 images, their masks, and room
NOT_TRIED = "Not tried: there was no room for a file before it."


@dataclass(frozen=True, slots=True)
class FileResult:
    """What became of one file: added, replaced, same or refused, and a sentence for people."""

    name: str
    outcome: str
    sentence: str
    file_id: str = ""
    is_no_room: bool = False  # nor for any file after it

    @property
    def was_taken(self) -> bool:
        """Whether the file is in the set now."""
        return self.outcome != "refused"


def upload_take_all(
    *, user: User, image_set: ImageSet, files: Sequence[UploadedFile], as_name: str = ""
) -> Iterator[FileResult]:
    """Take files one after the other; where there is no room for one, none after it is tried."""
    has_room = True
    for uploaded in files:
        if not has_room:
            yield FileResult(display_name(uploaded.name or ""), "refused", NOT_TRIED)
            continue
        for result in upload_take(
            user=user, image_set=image_set, uploaded=uploaded, as_name=as_name
        ):
            has_room = has_room and not result.is_no_room
            yield result


def upload_take(
    *, user: User, image_set: ImageSet, uploaded: UploadedFile, as_name: str = ""
) -> Iterator[FileResult]:
    """Store a picture, or every picture of a ZIP, yielding a result per file as it is settled."""
    head = uploaded.read(4)
    uploaded.seek(0)
    taken = 0
    try:
        if head in ZIP_HEADS:
            results = _take_archive(user, image_set, uploaded)
        else:
            name = display_name(as_name or uploaded.name or "") or "image"
            results = iter([_take(user, image_set, name, uploaded.chunks())])
        for result in results:
            taken += result.was_taken
            yield result
    finally:
        if taken:
            pairing_refresh(image_set=image_set)
            audit(user, "uploaded to", image_set, name=uploaded.name, files=taken)


def _take_archive(user: User, image_set: ImageSet, uploaded: UploadedFile) -> Iterator[FileResult]:
    name = display_name(uploaded.name or "") or "ZIP"
    try:
        archive = open_archive(uploaded.file)
    except ArchiveError as error:
        yield FileResult(name, "refused", str(error))
        return
    with archive:
        entries = sorted(archive_entries(archive), key=lambda entry: _is_about_another(entry.name))
        if not entries:
            yield FileResult(name, "refused", "The ZIP is empty. Nothing was saved.")
        for left, entry in zip(range(len(entries) - 1, -1, -1), entries, strict=True):
            if entry.refusal:
                yield FileResult(entry.name or "?", "refused", entry.refusal)
                continue
            is_of_objects = "segmentationobject/" in entry.info.filename.casefold()
            chunks = entry_chunks(archive, entry)
            result = _take(
                user, image_set, entry.name, chunks, archive=name, is_of_objects=is_of_objects
            )
            yield result
            if result.is_no_room:
                if left:
                    yield FileResult(name, "refused", f"{left} more of its files were not tried.")
                return


def _is_about_another(name: str) -> bool:
    """Whether a file belongs to a picture, which has to be there first."""
    is_prefixed = picture_stem(name).startswith(MASK_PREFIXES)
    is_mask = mask_stem(name) is not None or is_prefixed
    is_map = map_stem(name) is not None
    return is_annotation(name) or is_mask or is_map or _is_scribble(name)


def _is_scribble(name: str) -> bool:
    return "scribble" in name.casefold()


def _take_annotations(
    user: User, image_set: ImageSet, name: str, content: bytes, archive: str
) -> FileResult:
    if name.casefold().endswith(ROI_ENDING):
        image = image_of_roi(image_set, name, archive)
        annotations = [read_roi(content, name, image)]
    else:
        annotations = read_annotations(content, name)
    sentence = annotations_take(user=user, image_set=image_set, name=name, annotations=annotations)
    return FileResult(name, "added", sentence)


def _painted_instead(user: User, file: ImageFile, *, is_of_objects: bool) -> FileResult | None:
    """Paint a map of classes on its picture, in whose place no mask of two values can stand."""
    path = file.store.fetch(file.digest)
    found = None
    if _may_hold_classes(file):
        is_of_objects |= numbers_objects(file.name)
        found = read_class_map(path, file.name, is_of_objects=is_of_objects)
    if found is None:
        return None
    image_set, digest = file.image_set, file.digest
    try:
        sentence = annotations_take(
            user=user, image_set=image_set, name=file.name, annotations=[found]
        )
        return FileResult(file.name, "added", sentence)
    except Refusal as error:
        return FileResult(file.name, "refused", str(error))
    finally:
        file.delete()
        contents_release(organisation_id=image_set.organisation_id, digests=[digest])


def _may_hold_classes(file: ImageFile) -> bool:
    """Whether a file's name is of a map of classes, or of a mask that it cannot be read as.

    Of the two classes of ilastik nobody has said which is to be found.
    """
    if _is_scribble(file.name) or picture_stem(file.name).endswith(ILASTIK_MAP):
        return True
    return not file.mask_like and _is_named_as_mask(file)


def _is_named_as_mask(file: ImageFile) -> bool:
    if mask_stem(file.name) is not None:
        return True
    if not picture_stem(file.name).startswith(MASK_PREFIXES):
        return False
    others = file.image_set.files.exclude(pk=file.pk).values_list("name", flat=True)
    return prefixed_stem(file.name, {picture_stem(name) for name in others}) is not None


def _take(
    user: User,
    image_set: ImageSet,
    name: str,
    chunks: Iterable[bytes],
    *,
    archive: str = "",
    is_of_objects: bool = False,
) -> FileResult:
    try:
        if is_annotation(name):
            content = b"".join(_capped(chunks, name))
            return _take_annotations(user, image_set, name, content, archive)
        file, outcome = image_file_add(user=user, image_set=image_set, name=name, chunks=chunks)
        painted = None
        if outcome != "same" and file.role != ImageFile.Role.MAP:
            painted = _painted_instead(user, file, is_of_objects=is_of_objects)
        if painted is not None:
            return painted
    except (QuotaError, StorageFullError) as error:
        return FileResult(name, "refused", str(error), is_no_room=True)
    except InvalidProblemError as error:
        sentence = str(error)
        if name not in sentence:
            sentence = f"{name}: {sentence[:1].lower()}{sentence[1:]}"
        return FileResult(name, "refused", sentence)
    except Refusal as error:
        return FileResult(name, "refused", str(error))
    sentences = {
        "added": f"{file.width} × {file.height} pixels",
        "replaced": f"Replaced the earlier {name}",
        "same": "Already here, unchanged",
    }
    if file.role == ImageFile.Role.MAP and outcome != "same":
        n_planes = file.facts["planes"]
        return FileResult(
            name, outcome, f"Probabilities, {n_planes} plane{'s'[: n_planes != 1]}", str(file.pk)
        )
    plain = file.facts.get("plain") if outcome != "same" and file.mask_of_id is None else ""
    note = f". All {plain} in this set’s range of values: see Display and scale" if plain else ""
    return FileResult(name, outcome, sentences[outcome] + note, str(file.pk))


@with_fresh_count
def image_file_add(
    *, user: User, image_set: ImageSet, name: str, chunks: Iterable[bytes]
) -> tuple[ImageFile, str]:
    """Store one picture under its name; an earlier file of that name is replaced.

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
                f"{name} is larger than {MAX_ENTRY_BYTES // 1024**2} MB. Nothing was saved."
            )
        yield chunk
    if total == 0:
        raise InvalidProblemError(f"{name} is empty.")


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
                f"{name}: a set holds at most {MAX_FILES:,} files. Start another set."
            )
        file, _ = ImageFile.objects.update_or_create(
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
