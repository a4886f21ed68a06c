"""Pictures in every mode and format, for the tests of their readers."""

import io

import numpy as np
from PIL import Image, ImageCms


def encode(picture: Image.Image, form: str = "PNG", **options: object) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, form, **options)
    return stream.getvalue()


def gradient(height: int = 12, width: int = 20) -> np.ndarray:
    ramp = np.linspace(0, 255, height * width * 3).reshape(height, width, 3)
    return ramp.astype(np.uint8)


def in_mode(picture: Image.Image, mode: str) -> Image.Image:
    """Convert; Pillow itself reaches LAB only through a colour profile."""
    if mode != "LAB":
        return picture.convert(mode)
    profiles = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
    converted = ImageCms.profileToProfile(picture, *profiles, outputMode="LAB")
    assert converted is not None
    return converted
