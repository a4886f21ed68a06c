"""A real disk without room: one sentence for everybody, nothing half written, all well after it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.product import ROOT, new_product

# Runs in a namespace of its own, in which the installation lies on a disk of 48 MB.
_CHILD = """
import json, os, sys
from pathlib import Path
import django
django.setup()
import logging
logging.disable(logging.CRITICAL)
import numpy as np
from django.conf import settings
from django.db import connection
from django.test import Client
from html import unescape
from webapp.accounts.models import User
from webapp.api.services import token_create
from webapp.cohorts.models import Cohort
from webapp.operations.backup import BackupError, backup_write
from webapp.files import store
from webapp.files.storage import array_path
from webapp.jobs.checkpoint import StoredCheckpoint

store.check()
bob = User.objects.get(username="bob")
secret = token_create(user=bob, name="full", may_change=True, days=1)[1]
program = Client(headers={"authorization": f"Bearer {secret}"}, raise_request_exception=False)
page = Client(raise_request_exception=False)
page.force_login(bob, backend="django.contrib.auth.backends.ModelBackend")
key = program.post("/api/v1/image-sets", {"name": "Set", "foreground": "leaf"},
                   content_type="application/json").json()["id"]
noise = np.random.default_rng(0).bytes(200_000)
from PIL import Image
import io
picture = io.BytesIO()
Image.frombytes("L", (400, 500), noise).save(picture, "PNG")
rows = "".join(f"N{k},{'Early' if k % 2 else 'Late'}\\n" for k in range(4000))
survey = "student_id,Bedtime\\n" + rows

def upload(name):
    from django.core.files.uploadedfile import SimpleUploadedFile
    answer = program.post(f"/api/v1/image-sets/{key}/files",
                          {"file": SimpleUploadedFile(name, picture.getvalue())})
    return answer.status_code, answer.content.decode()

def cohort():
    from django.core.files.uploadedfile import SimpleUploadedFile
    answer = program.post("/api/v1/cohorts", {"name": "Year",
                          "file": SimpleUploadedFile("s.csv", survey.encode())})
    return answer.status_code, answer.content.decode()

def back_up(name):
    try:
        backup_write(Path(settings.INSTANCE_DIR) / name)
        return "written"
    except BackupError as error:
        return str(error)

def checkpoint(step):
    uuid = "00000000-0000-4000-8000-000000000009"
    place = StoredCheckpoint(array_path(bob.organisation_id, "checkpoints", uuid))
    place.save({"step": np.array(step), "theta": np.frombuffer(noise, dtype=np.uint8)})
    return int(place.load()["step"])

said = {"before": [upload("a.png")[0], checkpoint(1)]}
filler = Path(settings.INSTANCE_DIR) / "filler"
with filler.open("wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(1 << 16))
    except OSError:
        pass
    try:
        while True:
            file.write(b"0")
    except OSError:
        pass
said["full"] = {"upload": upload("b.png"), "cohort": cohort(), "backup": back_up("full.tar"),
                "checkpoint": checkpoint(2), "page": page.get("/jobs/").status_code}
said["left"] = [str(p) for p in Path(settings.INSTANCE_DIR).rglob("*")
                if p.name.endswith(".part") or p.name.startswith(".backup-")]
filler.unlink()
said["after"] = [upload("b.png")[0], cohort()[0], back_up("after.tar"), checkpoint(3)]
said["cohorts"] = [[c.n_students, c.students.count()] for c in Cohort.objects.all()]
with connection.cursor() as cursor:
    cursor.execute("PRAGMA integrity_check")
    said["integrity"] = cursor.fetchone()[0]
print(json.dumps(said))
"""


def _may_mount(folder: Path) -> bool:
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", str(folder)]
    return (
        shutil.which("unshare") is not None
        and not subprocess.run(command, capture_output=True, check=False).returncode
    )


def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if not _may_mount(small):
        pytest.skip("no namespace in which a small disk may be mounted")
    product = new_product(tmp_path / "instance")
    script = tmp_path / "child.py"
    script.write_text(_CHILD, encoding="utf-8")
    steps = (
        f"mount -t tmpfs -o size=48m none {small} && cp -a {product.instance}/. {small} && "
        f"exec {sys.executable} {script}"
    )
    environment = product.environment | {
        "BETHE_HALL_INSTANCE": str(small),
        "PYTHONPATH": str(ROOT),
        "ALLOWED_HOSTS": "testserver",
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", ""),
        "TMPDIR": str(small),
    }
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", steps],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["before"] == [200, 1], said
    full = said["full"]
    for status, text in (full["upload"], full["cohort"]):
        assert "disk is full" in text or "not saved" in text, text
        assert status < 300 or status == 507, (status, text)  # a line a file, or no file at all
    assert full["backup"].startswith("The server's disk is full. No backup was made")
    assert full["checkpoint"] == 1, "the state saved last is whole"
    assert full["page"] in (200, 507)
    assert said["left"] == []
    assert said["after"] == [200, 201, "written", 3]
    assert said["cohorts"] == [[4000, 4000]]
    assert said["integrity"] == "ok"
