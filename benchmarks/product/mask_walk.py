"""Pictures whose masks are known, by ZIP: learned, and those of another ZIP predicted, in Chromium.

    python -m benchmarks product mask_walk --data DIR [--most N] [--instance DIR] [--screens DIR]

DIR has the folders ``train`` and ``test``, with NAME.jpg and its mask NAME.png. What the pages say
of the test pictures is printed, and clicks, keys and seconds by step; --most takes fewer of each.
"""

import argparse
import re
import time
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.product.browser_walk import walk_in_chromium
from benchmarks.product.lab_walk import JOB_MS, Pictures, Walk, make_set, upload

ENDED = re.compile("Certified|Stopped|Learned")


def walk_masks(walk: Walk, archives: dict[str, Path]) -> None:
    """Learn from one archive, predict the other, and look at what is worst."""
    page = walk.page
    for part, archive in archives.items():
        with walk.step(f"drop the {part} ZIP"):
            make_set(walk, f"Pictures to {part}")
            upload(walk, [archive])
    with walk.step("learn"):
        learn(walk)
    with walk.step("predict"):
        predict(walk)
    with walk.step("look at the worst"):
        page.goto(f"{page.url.split('?')[0]}?order=worst")
        walk.click(page.locator("tr[data-row] a[data-open]").first, page.locator("main img").first)


def learn(walk: Walk) -> None:
    """Learn with what the form begins with, and wait."""
    page = walk.page
    page.goto("/image-models/new/")
    walk.type(page.get_by_label("Name"), "Trained by ZIP")
    page.get_by_label(re.compile("^Pictures to learn:")).check()
    walk.click(page.get_by_role("button", name="Learn"), page.locator("#segmenter-badge"))
    begun = time.perf_counter()
    page.wait_for_timeout(5_000)
    walk.look(page, "learning")
    page.locator("#segmenter-badge", has_text=ENDED).wait_for(timeout=JOB_MS)
    walk.steps[-1].seconds += time.perf_counter() - begun
    page.reload()
    walk.facts["the model's page"] = _figures(walk)


def predict(walk: Walk) -> None:
    """Predict the other set, and wait."""
    page = walk.page
    walk.click(page.get_by_role("link", name="Predict masks"), page.locator("#id_image_set"))
    sets = page.locator("#id_image_set")
    option = sets.locator("option", has_text="Pictures to predict")
    sets.select_option(option.get_attribute("value"))
    walk.click(page.get_by_role("button", name="Predict"), page.locator("#prediction-live"))
    begun = time.perf_counter()
    page.locator(".badge", has_text=re.compile("^Done")).first.wait_for(timeout=JOB_MS)
    walk.steps[-1].seconds += time.perf_counter() - begun
    page.reload()
    walk.facts["the prediction's page"] = _figures(walk)


def _figures(walk: Walk) -> str:
    """The figures at the head of a page, on one line."""
    stats = walk.page.locator(".stats").first.inner_text()
    return "; ".join(line.strip() for line in stats.splitlines() if line.strip())


def pack(folder: Path, data: Path, most: int | None) -> dict[str, Path]:
    """Pack pictures and masks of both folders, and return the archives by what they are for."""
    archives = {}
    for part, name in (("learn", "train"), ("predict", "test")):
        archives[part] = folder / f"{name}.zip"
        stems = sorted({path.stem for path in (data / name).iterdir()})[:most]
        with zipfile.ZipFile(archives[part], "w", zipfile.ZIP_STORED) as packed:
            for path in sorted((data / name).iterdir()):
                if path.stem in stems:
                    packed.write(path, path.name)
    return archives


def main() -> None:
    """Walk, and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with train and test")
    parser.add_argument("--most", type=int, help="pictures of each at most")
    parser.add_argument("--instance", type=Path, help="folder of the installation, kept")
    parser.add_argument("--screens", type=Path, help="folder for pictures of every step")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="bh-masks-") as scratch:
        folder = options.instance or Path(scratch) / "instance"
        folder.mkdir(parents=True, exist_ok=True)
        archives = pack(Path(scratch), options.data, options.most)
        pictures = Pictures([], [], ("Object", "Background"), archives["learn"])
        walk_in_chromium(
            folder,
            "Pictures with masks by ZIP in Chromium",
            "bob",
            lambda page, look: Walk(page, look, pictures=pictures),
            lambda walk: walk_masks(walk, archives),
            options.screens,
        )


if __name__ == "__main__":
    main()
