"""Pictures with masks to upload, and how people pack them."""

import io
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from engine import LabelledImage


def encoded(pixels: np.ndarray, kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


def zip_file(path: Path, images: list[LabelledImage], *, masks: int) -> Path:
    """Pictures NAME.jpg, the first few with NAME.png beside them, and a text file."""
    with zipfile.ZipFile(path, "w") as archive:
        for k, labelled in enumerate(images):
            archive.writestr(f"photos/thing_{k:02d}.jpg", encoded(labelled.image, "JPEG"))
            if k < masks:
                mask = labelled.mask.astype(np.uint8) * 255
                archive.writestr(f"photos/thing_{k:02d}.png", encoded(mask, "PNG"))
        archive.writestr("notes.txt", "not an image")
    return path
