"""Pictures with masks to upload, and how people pack them."""

import io
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from engine.datasets import LabelledImage, read_image, read_mask

SHORT_SIDE = 160  # pixels; small pictures keep the test short


def horses(folder: Path, count: int) -> list[LabelledImage]:
    """Photographs of horses with their masks, made small."""
    found = []
    for path in sorted(folder.glob("*.jpg"))[:count]:
        picture = Image.fromarray(read_image(path))
        mask = Image.fromarray(read_mask(path.with_suffix(".png")))
        scale = min(1.0, SHORT_SIDE / min(picture.size))
        size = tuple(max(1, round(side * scale)) for side in picture.size)
        found.append(
            LabelledImage(
                np.asarray(picture.resize(size)),
                np.asarray(mask.resize(size, Image.Resampling.NEAREST)),
            )
        )
    return found


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
