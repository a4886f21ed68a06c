"""Import of model files from other installations, after a check of every part."""

import hashlib
import tempfile
from collections.abc import Iterable
from pathlib import Path

from django.db import transaction
from django.utils.translation import gettext as _

from engine import InvalidProblemError, load_segmentation_model
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.files.contents import full_disk_explained
from webapp.files.quota import check_quota, with_fresh_count
from webapp.files.storage import keep_file
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.model_origin import origin_read
from webapp.segmentation.models import Segmenter
from webapp.segmentation.services.painting import COLOURS

MOST_BYTES = 256 * 1024**2


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@with_fresh_count
def segmenter_import(
    *, user: User, name: str, foreground: str, file_name: str, chunks: Iterable[bytes], digest: str
) -> Segmenter:
    """Import a model file written by another installation or by the command line.

    The file holds numbers and text; nothing in it is executed. ``digest`` is the SHA-256 that the
    sender stated, or blank.

    Raises
    ------
    SegmentationError, QuotaError
        If it is too large, not a model of this version, damaged, or has another digest.
    """
    with tempfile.TemporaryDirectory(prefix="bethe-hall-model-") as folder:
        path = Path(folder) / "model.npz"
        with full_disk_explained():
            _write(path, chunks)
        found = file_digest(path)
        if digest and digest.lower() != found:
            raise SegmentationError(
                _("This is another file: its SHA-256 is %(found)s.") % {"found": found}
            )
        classes, loss, n_maps = _checked(path)
        origin = origin_read(path)
        with transaction.atomic():
            segmenter = Segmenter.objects.create(
                organisation=user.own_organisation,
                created_by=user,
                name=name.strip()[:120],
                foreground=foreground.strip()[:40] or "object",
                solver=Segmenter.Solver.PAINTED if classes else Segmenter.Solver.AUTO,
                classes=classes,
                imported_from=file_name[:200],
                learned_digests=origin.learned_digests,
                held_out_digests=origin.held_out_digests,
                outcome={
                    "converged": True,
                    "is_certified": False,
                    "loss": loss,
                    "n_maps": n_maps,
                    "relative_gap": None,
                    "sha256": found,
                    "checked": origin.figures,
                    "image_sets": origin.image_sets,
                    "sentence": _("Imported from %(file)s.") % {"file": file_name},
                },
            )
            written = path.stat().st_size
            keep_file(path, segmenter.path)
            audit(user, "imported", segmenter, file=file_name, sha256=found)
            check_quota(user.organisation_id, written=written)
    return segmenter


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    total = 0
    with path.open("wb") as file:
        for chunk in chunks:
            total += len(chunk)
            if total > MOST_BYTES:
                raise SegmentationError(
                    _("A model file has %(most_bytes)s MB at most.")
                    % {"most_bytes": MOST_BYTES // 1024**2}
                )
            file.write(chunk)


def _checked(path: Path) -> tuple[list[dict], str, int]:
    """Return a model's classes (empty for foreground only), its loss, and its planes of maps."""
    try:
        model = load_segmentation_model(path)
    except InvalidProblemError as error:
        sentence = str(error).replace("model.npz: this", "This").replace("model.npz", "The file")
        raise SegmentationError(
            _("%(sentence)s Nothing was imported.") % {"sentence": sentence}
        ) from error
    if model.is_mask:
        return [], model.loss, model.n_maps
    classes = [
        {"value": place + 1, "name": name[:40], "colour": COLOURS[place % len(COLOURS)]}
        for place, name in enumerate(model.classes)
    ]
    return classes, model.loss, model.n_maps
