"""Files that students send as answers: accepted kinds, encrypted storage, and reading.

Each file is stored encrypted under its own key and is only ever sent as a download. Its kind is
recognised by its first bytes, never by its name.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.utils.translation import gettext as _

from webapp.files import store
from webapp.files.orphaned_files import register_needed
from webapp.files.quota import check_quota
from webapp.files.storage import array_path, keep_bytes
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.models import AnswerFile, Participant

FOLDER = "answers"
MAX_BYTES = 10_000_000
ACCEPT = ".pdf,.jpg,.jpeg,.png,.heic"
_KINDS = {
    b"%PDF-": ("application/pdf", ".pdf"),
    b"\xff\xd8\xff": ("image/jpeg", ".jpg"),
    b"\x89PNG\r\n\x1a\n": ("image/png", ".png"),
}
_HEIC = (b"ftypheic", b"ftypheix", b"ftypmif1", b"ftyphevc")


def file_keep(*, participant: Participant, key: str, file: UploadedFile) -> AnswerFile:
    """Store a file in place of the previous one; call it in a transaction.

    Raises QuestionnaireError in one sentence, in the active language, for a refused file.
    """
    if not file.size:
        raise QuestionnaireError(_("The file is empty. Choose another one."))
    if file.size > MAX_BYTES:
        raise QuestionnaireError(
            _("The file has %(size)s MB. Choose a file of 10 MB or less.")
            % {"size": f"{file.size / 1e6:.0f}"}
        )
    data = file.read(MAX_BYTES + 1)
    media_type, suffix = _kind_of(data)
    AnswerFile.objects.filter(participant=participant, key=key).delete()
    secret = Fernet.generate_key().decode("ascii")
    made = AnswerFile(
        participant=participant,
        key=key,
        name=_name_of(file.name or "", suffix),
        media_type=media_type,
        size=len(data),
        file_key=secret,
    )
    sealed = Fernet(secret).encrypt(data)
    keep_bytes(path_of(made), sealed)
    made.save()
    check_quota(participant.questionnaire.organisation, written=len(sealed))
    return made


def file_read(kept: AnswerFile) -> bytes:
    """Return the content of a file as it was sent."""
    return Fernet(kept.file_key).decrypt(store.get(path_of(kept)).read_bytes())


def path_of(kept: AnswerFile) -> Path:
    """Return the path of a stored file."""
    organisation = kept.participant.questionnaire.organisation_id
    return array_path(organisation, FOLDER, kept.uuid, ".bin")


def _kind_of(data: bytes) -> tuple[str, str]:
    for start, kind in _KINDS.items():
        if data.startswith(start):
            return kind
    if data[4:12] in _HEIC:
        return "image/heic", ".heic"
    raise QuestionnaireError(_("Send a PDF or a picture (JPEG, PNG or HEIC)."))


def _name_of(name: str, suffix: str) -> str:
    """Return a file name without folders and control characters, with the ending of its content."""
    plain = "".join(
        sign for sign in name.replace("\\", "/").rsplit("/", 1)[-1] if sign.isprintable()
    )
    stem = plain.rsplit(".", 1)[0].strip(". ")[:100]
    return f"{stem or 'file'}{suffix}"


@receiver(post_delete, sender=AnswerFile)
def remove_file(instance: AnswerFile, **kwargs: Any) -> None:
    """Remove a file once the deletion of its row is committed."""
    path = path_of(instance)
    transaction.on_commit(lambda: store.remove(path))


def _needed(organisation_id: int) -> Iterable[str]:
    rows = AnswerFile.objects.filter(participant__questionnaire__organisation_id=organisation_id)
    return (str(key) for key in rows.values_list("pk", flat=True))


def register() -> None:
    """Register the daily removal of files without a row."""
    register_needed(FOLDER, _needed)
