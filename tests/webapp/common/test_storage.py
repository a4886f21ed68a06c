"""Files of an organisation: where they lie, whole or not at all, never pickles."""

from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from django.conf import LazySettings

from webapp.common.storage import array_path, read_arrays, write_arrays


def test_it_writes_and_reads(settings: LazySettings) -> None:
    key = uuid4()
    path = array_path(7, "models", key)
    assert path == Path(settings.MEDIA_ROOT) / "organisation-7" / "models" / f"{key}.npz"
    write_arrays(path, theta=np.arange(3.0))
    assert read_arrays(path)["theta"].tolist() == [0, 1, 2]
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("kind", ["../up", "a/b", "", "."])
def test_a_kind_cannot_leave_the_folder(kind: str) -> None:
    with pytest.raises(ValueError, match="plain word"):
        array_path(7, kind, uuid4())


def test_pickled_content_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, payload=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        read_arrays(path)
