"""A file that is called a backup and is none writes nothing outside its folder."""

import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from webapp.operations.backup import BackupError, backup_restore


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../evil", tarfile.REGTYPE),
        ("media/../../evil", tarfile.REGTYPE),
        ("{folder}/evil", tarfile.REGTYPE),
        ("media/link", tarfile.SYMTYPE),
        ("media/link", tarfile.LNKTYPE),
        ("media/device", tarfile.CHRTYPE),
    ],
)
def test_what_leaves_its_folder_is_refused(
    tmp_path: Path, settings: object, name: str, kind: bytes
) -> None:
    settings.INSTANCE_DIR = tmp_path / "instance"
    settings.MEDIA_ROOT = tmp_path / "instance" / "media"
    settings.MEDIA_ROOT.mkdir(parents=True)
    source = tmp_path / "backup.tar"
    with tarfile.open(source, "w") as tar:
        member = tarfile.TarInfo(name.format(folder=tmp_path))
        member.type, member.linkname, member.size = kind, "/etc/passwd", 4
        tar.addfile(member, BytesIO(b"evil"))
    with pytest.raises(BackupError, match="is no whole backup"):
        backup_restore(source)
    assert not list(tmp_path.rglob("evil"))
    assert not list(settings.INSTANCE_DIR.glob("restore-*"))
