"""Decoding stays within what the limit on pixels promises, whatever a picture's mode.

The peak is VmHWM of a fresh process, as in ``tests/learning/segmentation/test_mask_memory.py``.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

PROGRAM = """
import sys
from pathlib import Path
from engine.datasets.picture_view import read_image
from engine.datasets.masks import read_mask
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)["VmHWM"].split()[0]) * 1024
read = {"image": read_image, "mask": read_mask}[sys.argv[1]]
read(Path(sys.argv[2]).with_suffix(".small.png"))
before = peak()
height, width = read(Path(sys.argv[2])).shape[:2]
print((peak() - before) / (height * width))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
@pytest.mark.parametrize("kind", ["image", "mask"])
def test_a_transparent_picture_takes_eight_bytes_a_pixel(kind: str, tmp_path: Path) -> None:
    """It used to take 20, and a mask 25: over a gigabyte for a picture within the limit."""
    pixels = np.zeros((3000, 4000, 4), dtype=np.uint8)
    pixels[500:1500, 800:2000] = 255
    pixels[:2500, :, 3] = 255
    Image.fromarray(pixels).save(tmp_path / "large.png", compress_level=1)
    Image.fromarray(pixels[::50, ::50]).save(tmp_path / "large.small.png")
    root = Path(__file__).resolve().parent.parent.parent
    words = [sys.executable, "-c", PROGRAM, kind, str(tmp_path / "large.png")]
    answer = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True)
    assert 4 < float(answer.stdout) < 9
