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

LEARNING = """
import json, sys
from itertools import tee
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
leaves = generate_leaf_images(6, rng=np.random.default_rng(0), shape=(120, 160))
peak = 0
class Killed(Exception):
    pass
def sample(*anything):
    global peak
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    peak = max(peak, int(status["RssAnon"].split()[0]))
def pictures(count):
    for k in range(count):
        leaf = leaves[k % len(leaves)]
        yield np.roll(leaf.image, k, axis=1), np.roll(leaf.mask, k, axis=1)
def learn(solver, count, seconds=None, checkpoint=None, reports=None):
    told = 0
    def tell(progress):
        nonlocal told
        sample(progress)
        told += 1
        if told == reports:
            raise Killed
    first, second = tee(pictures(count))
    images, masks = (image for image, _ in first), (mask for _, mask in second)
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
def learn_small(solver, place):
    learn(solver, 6, reports=10)
    learn(solver, 6, 1.0)
    sample()
    if place:
        learn(solver, 6, None, FileCheckpoint(Path(place + "small")), 3)
        learn(solver, 6, None, FileCheckpoint(Path(place + "small")), 2)
"""

COMPILING = f"""{LEARNING}
for solver in ("theta", "frank-wolfe", "block-coordinate"):
    place = "" if solver == "theta" else sys.argv[1] + solver
    learn_small(solver, place)
    learn(solver, 20, reports=1)  # beyond the budgets
    if place:
        learn(solver, 20, None, FileCheckpoint(Path(place)), 2)
        learn(solver, 20, None, FileCheckpoint(Path(place)), 1)
"""

MANY_SMALL = f"""{LEARNING}
solver, wanted, reports, place = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
learn_small(solver, *(place or [""]))  # the buffers of linear algebra belong to no picture
before, restored = peak, 0
if place:
    learn(solver, wanted, None, FileCheckpoint(Path(place[0])), reports + 1)
    learn(solver, wanted, None, FileCheckpoint(Path(place[0])), reports)
else:
    learn(solver, wanted, None if reports else 1.0, reports=reports)
print(json.dumps({{"before": before / 1024, "megabytes": peak / 1024, "restored": restored}}))
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Compile what the programs below use: a compiler's memory belongs to no picture."""
    start(COMPILING, str(tmp_path_factory.mktemp("compiled") / "state"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(
    ("solver", "reports"), [("theta", 0), ("frank-wolfe", 1), ("block-coordinate", 2)]
)
def test_memory_stays_flat_in_the_number_of_pictures(solver: str, reports: int) -> None:
    """Features alone are 0.3 MB a picture; held in memory, 110 of them would show.

    Learning ends after this number of reports, when every picture was used, or for 0 after a
    second. How many oracles' work spaces happen to live at once changes the peak by up to 17 MB.
    """
    result = run(MANY_SMALL, solver, "116", str(reports))
    assert result["megabytes"] < result["before"] + 24


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("solver", ["frank-wolfe", "block-coordinate"])
def test_going_on_from_a_checkpoint_takes_no_more_memory(solver: str, tmp_path: Path) -> None:
    """All points were read before the first was put on the store: 1.5 MB a picture.

    A job that the system killed for its memory met the same load at every retry.
    """
    result = run(MANY_SMALL, solver, "46", "2", str(tmp_path / "state.npz"))
    assert result["restored"] == 2 * 46  # once at the starts, once from the file
    assert result["megabytes"] < result["before"] + 20  # of 70 for all points


def run(program: str, *words: str) -> dict[str, Any]:
    return json.loads(start(program, *words))


def start(program: str, *words: str) -> str:
    """Run a program in a new Python; return what it printed."""
    root = Path(__file__).resolve().parents[3]
    answer = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=root, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
def test_four_megapixels_take_well_under_a_gigabyte() -> None:
    result = run(ONE_LARGE)
    assert result["shape"] == [2000, 2000]
    # It takes 270 MB, and 330 when the kernels are compiled on the way.
    assert result["megabytes"] < 800
