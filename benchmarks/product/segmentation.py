"""Large pictures through the pages: times, and the peak memory of every process of the product.

    python -m benchmarks product segmentation [--images N]

Makes a ZIP of N photographs of 4.06 megapixels (horses where they are there, generated leaves
otherwise), starts the product in a folder of its own, and drives Chromium as a person would: one
upload, one prediction, the first look at one picture. A model is learned before, from 20 small
pictures. Every process may take 2 GB and the viewer 2 s till it can be used; 200 pictures take
some minutes.
"""

import argparse
import io
import threading
import time
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from benchmarks.common.reporting import REAL_DATA, print_machine, print_table
from engine import generate_leaf_images
from engine.datasets import LabelledImage
from tests.browser.conftest import CHROMIUM_FLAGS, find_chromium, sign_in
from tests.browser.image_pages import (
    learn,
    make_set,
    open_viewer,
    predict,
    ready,
    upload,
    wait_till_learned,
)
from tests.browser.labelled_pictures import horses, zip_file
from tests.live.product import Product, children_of, name_of, new_product

SIZE = (2464, 1648)
LEARNED = 20
ALLOWED_MB = 2000
SAMPLE_SECONDS = 0.5


def photographs(count: int) -> list[LabelledImage]:
    """Return small photographs with masks, or generated ones."""
    folder = REAL_DATA / "weizmann_horses" / "train"
    if folder.exists():
        return horses(folder, count)
    return list(generate_leaf_images(count, rng=np.random.default_rng(1)))


def large_zip(path: Path, pictures: list[LabelledImage], count: int) -> Path:
    """Write ``count`` different JPEGs of ``SIZE`` into a ZIP."""
    with zipfile.ZipFile(path, "w") as archive:
        for k in range(count):
            picture = Image.fromarray(np.roll(pictures[k % len(pictures)].image, k, axis=1))
            buffer = io.BytesIO()
            picture.resize(SIZE, Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=92)
            archive.writestr(f"large_{k:03d}.jpg", buffer.getvalue())
    return path


class Memory:
    """Watches the largest resident memory of every process of the product, in megabytes."""

    def __init__(self, product: Product) -> None:
        assert product.process is not None
        self._root = product.process.pid
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.peaks: dict[int, tuple[str, float]] = {}

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopping.wait(SAMPLE_SECONDS):
            waiting = [self._root]
            while waiting:
                process = waiting.pop()
                waiting += children_of(process)
                self._look(process)

    def _look(self, process: int) -> None:
        """Read the kernel's own peak, so that nothing between two looks is missed."""
        try:
            status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
            words = Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ").split()
        except OSError:
            return  # it ended meanwhile
        lines = dict(line.split(":", 1) for line in status.splitlines())
        if "VmHWM" in lines:
            own = [Path(word).name for word in words[:4] if not word.startswith("-")]
            name = " ".join([*own, name_of(process)])
            self.peaks[process] = (name, int(lines["VmHWM"].split()[0]) / 1000)


def drive(page: Page, small: Path, large: Path) -> list[tuple[str, float]]:
    """Learn, upload, predict and look; return what took how many seconds."""
    sign_in(page, "bob")
    make_set(page, "Small")
    upload(page, small)
    learn(page)
    wait_till_learned(page)
    times = []

    def timed(name: str, begun: float) -> None:
        times.append((name, time.perf_counter() - begun))

    make_set(page, "Large")
    begun = time.perf_counter()
    upload(page, large, seconds=1800)
    timed("upload of one ZIP", begun)
    begun = time.perf_counter()
    predict(page, seconds=3600)
    timed("prediction", begun)
    begun = time.perf_counter()
    open_viewer(page)
    timed("viewer, first look at a picture", begun)
    begun = time.perf_counter()
    page.reload()
    ready(page)
    timed("viewer, again", begun)
    return times


def main() -> None:
    """Run it and print the figures beside their limits."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--images", type=int, default=200)
    count = parser.parse_args().images
    print_machine()
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        pictures = photographs(max(count, LEARNED))
        small = zip_file(Path(folder) / "small.zip", pictures[:LEARNED], masks=LEARNED)
        large = large_zip(Path(folder) / "large.zip", pictures, count)
        (Path(folder) / "instance").mkdir()
        product = new_product(Path(folder) / "instance")
        product.start()
        try:
            chromium = playwright.chromium.launch(
                executable_path=find_chromium(), args=CHROMIUM_FLAGS
            )
            page = chromium.new_page(base_url=product.url)
            with Memory(product) as memory:
                times = drive(page, small, large)
            chromium.close()
        finally:
            product.stop()
        megabytes = large.stat().st_size / 1e6
    print_table(
        f"{count} images of {SIZE[0]} x {SIZE[1]}, {megabytes:.0f} MB",
        ("what", "seconds"),
        times,
    )
    print_table(
        f"peak memory, allowed {ALLOWED_MB} MB each",
        ("process", "MB"),
        sorted(memory.peaks.values(), key=lambda peak: -peak[1]),
    )


if __name__ == "__main__":
    main()
