"""Origin of a model, kept in its file: what it was trained on, and how right it was there.

The file of a model has a part named `PART` with JSON, which the engine passes over.
"""

import io
import zipfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from engine.core.errors import InvalidProblemError
from engine.core.npz_file import read_model_parts

PART = "origin"
MOST_IMAGES = 50_000
MAX_BYTES = 256 * 1024**2

Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=10**12)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class Measure(_Part):
    """Mean of a measure over images, and its range."""

    mean: FiniteFloat
    low: FiniteFloat | None
    high: FiniteFloat | None
    n_images: Count


class ClassRow(_Part):
    """Figures of one class; None where nothing is known."""

    iou: FiniteFloat | None
    found: FiniteFloat | None
    right: FiniteFloat | None
    pixels: FiniteFloat | None


class Checked(_Part):
    """How right the model was on images that it was not trained on."""

    n_images: Count
    error: Measure | None = None
    iou: Measure | None = None
    log_loss: Measure | None = None
    classes: list[ClassRow] = Field(default_factory=list, max_length=64)


class Origin(_Part):
    """Training data and accuracy of a model."""

    image_sets: list[Annotated[str, Field(max_length=120)]] = Field(
        default_factory=list, max_length=100
    )
    learned_digests: list[Digest] = Field(default_factory=list, max_length=MOST_IMAGES)
    held_out_digests: list[Digest] = Field(default_factory=list, max_length=MOST_IMAGES)
    checked: Checked | None = None

    @property
    def figures(self) -> dict[str, Any]:
        """The figures as a model's outcome keeps them; empty without any."""
        if self.checked is None:
            return {}
        found = self.checked.model_dump()
        return {name: value for name, value in found.items() if value not in (None, [])}


def origin_write(path: Path, origin: Origin) -> None:
    """Add the origin to the file of a model; equal origins make equal files."""
    buffer = io.BytesIO()
    np.save(buffer, np.array(origin.model_dump_json()), allow_pickle=False)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(zipfile.ZipInfo(f"{PART}.npy"), buffer.getvalue())


def origin_read(path: Path) -> Origin:
    """Return the origin in the file of a model; an empty one where it is absent or not valid."""
    try:
        part = read_model_parts(path, {PART}, max_bytes=MAX_BYTES).get(PART)
        if part is None or part.ndim != 0 or part.dtype.kind != "U":
            return Origin()
        return Origin.model_validate_json(str(part))
    except (InvalidProblemError, ValidationError):
        return Origin()
