"""A large photograph, and any number of small ones, fit in the memory of a small machine.

The peak is VmHWM, the high-water mark of the address space that the program itself runs in.
``ru_maxrss`` would not do: Linux keeps it across fork and exec, so that a child's figure starts at
the size of the test process that spawned it. Learning beyond its budget maps files, whose pages
the system takes back when it needs them: there anonymous memory counts, sampled at every report.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ONE_LARGE = """
import json
from pathlib import Path
import numpy as np
from engine.learning.segmentation.model import N_PARAMETERS, Detail, make_segmentation_model
from engine.learning.segmentation.prediction import evaluate_mask, predict_segmentation
theta = 0.1 * np.random.default_rng(0).normal(size=N_PARAMETERS)
model = make_segmentation_model(theta, ridge=1.0, rho=0.5, detail=Detail(200))
image = np.random.default_rng(0).integers(0, 256, (2000, 2000, 3), dtype=np.uint8)
prediction = predict_segmentation(model, image)
entropy = prediction.doubt
evaluate_mask(prediction, prediction.mask)
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
kilobytes = int(status["VmHWM"].split()[0])
print(json.dumps({"megabytes": kilobytes / 1024, "shape": prediction.mask.shape}))
"""

MANY_SMALL = """
import json, sys
from pathlib import Path
import numpy as np
from engine.core.checkpoint import FileCheckpoint
from engine.datasets.synthetic_images import generate_leaf_images
from engine.learning.segmentation.example_store import ExampleStore
from engine.learning.segmentation.mask_learning import train_segmentation
from engine.core.array_store import ArrayStore
from engine.solvers import control
from engine.solvers.iterate import Iterate
control.CHECKPOINT_SECONDS = 0.0
ExampleStore.__init__.__defaults__ = (None, 2**20)  # budgets of 1 and 2 MB
ArrayStore.__init__.__defaults__ = (2**21, None)
solver, wanted, place = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
peak = 0
class Killed(Exception):
    pass
def sample(*anything):
    global peak
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    peak = max(peak, int(status["RssAnon"].split()[0]))
def pictures(count):
    for seed in range(count):
        yield generate_leaf_images(1, rng=np.random.default_rng(seed), shape=(120, 160))[0]
def learn(count, seconds, checkpoint=None, reports=None):
    told = 0
    def tell(progress):
        nonlocal told
        sample(progress)
        told += 1
        if told == reports:
            raise Killed
    images, masks = (p.image for p in pictures(count)), (p.mask for p in pictures(count))
    try:
        train_segmentation(
            images, masks, solver=solver, relative_gap=1e-2, max_seconds=seconds,
            on_progress=tell, checkpoint=checkpoint,
        )
    except Killed:
        pass
go_to = Iterate._go_to
restored = 0
def sampled(iterate, points):
    def watched():
        global restored
        for point in points:
            restored += 1
            sample(point)
            yield point
    go_to(iterate, watched())
Iterate._go_to = sampled
learn(6, None, reports=10)  # compiled code and the buffers of linear algebra belong to no picture
learn(6, 1.0)
sample()
if place:
    learn(6, None, FileCheckpoint(Path(place[0] + "small")), 3)
    learn(6, None, FileCheckpoint(Path(place[0] + "small")), 2)
before, restored = peak, 0
if place:
    learn(wanted, None, FileCheckpoint(Path(place[0])), 3)
    learn(wanted, None, FileCheckpoint(Path(place[0])), 2)
else:
    learn(wanted, 1.0)
print(json.dumps({"before": before / 1024, "megabytes": peak / 1024, "restored": restored}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
@pytest.mark.parametrize("solver", ["theta", "frank-wolfe", "block-coordinate"])
def test_memory_stays_flat_in_the_number_of_pictures(solver: str) -> None:
    """Features alone are 0.3 MB a picture; held in memory, 160 of them would show.

    How many oracles' work spaces happen to live at once changes the peak by up to 17 MB.
    """
    run(MANY_SMALL, solver, "20")  # compiles: a compiler's memory belongs to no picture
    result = run(MANY_SMALL, solver, "166")
    assert result["megabytes"] < result["before"] + 24


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
@pytest.mark.parametrize("solver", ["frank-wolfe", "block-coordinate"])
def test_going_on_from_a_checkpoint_takes_no_more_memory(solver: str, tmp_path: Path) -> None:
    """All points were read before the first was put on the store: 1.5 MB a picture.

    A job that the system killed for its memory met the same load at every retry.
    """
    run(MANY_SMALL, solver, "20", str(tmp_path / "compiled.npz"))
    result = run(MANY_SMALL, solver, "46", str(tmp_path / "state.npz"))
    assert result["restored"] == 2 * 46  # once at the starts, once from the file
    assert result["megabytes"] < result["before"] + 20  # of 70 for all points


def run(program: str, *words: str) -> dict[str, Any]:
    root = Path(__file__).resolve().parents[3]
    answer = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(answer.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
def test_four_megapixels_take_well_under_a_gigabyte() -> None:
    result = run(ONE_LARGE)
    assert result["shape"] == [2000, 2000]
    # It takes 270 MB, and 330 when the kernels are compiled on the way.
    assert result["megabytes"] < 800
