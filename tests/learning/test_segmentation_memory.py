"""A large photograph fits in the memory of a small machine.

The peak is VmHWM, the high-water mark of the address space that the program itself runs in.
``ru_maxrss`` would not do: Linux keeps it across fork and exec, so that a child's figure starts at
the size of the test process that spawned it.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json
from pathlib import Path
import numpy as np
from engine.learning.segmentation_model import N_PARAMETERS, make_segmentation_model
from engine.learning.segmentation_prediction import evaluate_mask, predict_segmentation
theta = 0.1 * np.random.default_rng(0).normal(size=N_PARAMETERS)
model = make_segmentation_model(theta, ridge=1.0, rho=0.5, max_side=200)
image = np.random.default_rng(0).integers(0, 256, (2000, 2000, 3), dtype=np.uint8)
prediction = predict_segmentation(model, image)
entropy = prediction.entropy
evaluate_mask(prediction, prediction.mpm)
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
kilobytes = int(status["VmHWM"].split()[0])
print(json.dumps({"megabytes": kilobytes / 1024, "shape": prediction.mask.shape}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
def test_four_megapixels_take_well_under_a_gigabyte() -> None:
    root = Path(__file__).resolve().parent.parent.parent
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=root, capture_output=True, text=True, check=True
    )
    result = json.loads(answer.stdout)
    assert result["shape"] == [2000, 2000]
    # It takes 270 MB, and 330 when the kernels are compiled on the way.
    assert result["megabytes"] < 800
