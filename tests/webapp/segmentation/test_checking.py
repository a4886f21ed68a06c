"""Comparing images held out, within the time of learning."""

from types import SimpleNamespace

import numpy as np

from engine import StoppedError
from engine.learning.segmentation.model import MASK_NAMES
from engine.learning.segmentation.prediction import BestLabelling, Prediction
from webapp.segmentation import checking
from webapp.segmentation.checking import check_held_out


def test_a_large_image_that_is_not_through_in_time_is_not_compared(monkeypatch) -> None:
    context = SimpleNamespace(
        seconds=0.0,
        on_progress=lambda report: None,
        should_stop=lambda: False,
        raise_if_stopped=lambda: None,
    )
    images, masks = [np.zeros((4, 6, 3), np.uint8)] * 3, [np.eye(4, 6, dtype=bool)] * 3
    held_out = SimpleNamespace(files=images, in_step=lambda: (iter(images), iter(masks), None))

    def predict(model, image, maps, *, should_stop):
        context.seconds += 6.0
        if should_stop():
            raise StoppedError("The prediction was stopped.")
        labels = masks[0].view(np.uint8)
        best = BestLabelling(labels, 0.0, 0.0)
        marginals = masks[0].astype(np.float32)
        return Prediction(MASK_NAMES, labels, marginals, labels.shape, True, best)

    monkeypatch.setattr(checking, "predict_segmentation", predict)
    checked = check_held_out(context, None, held_out, 10.0)
    assert checked["n_images"] == 1
    assert checked["error"]["mean"] == 0.0
    context.seconds = 0.0
    assert check_held_out(context, None, held_out, 5.0) == {}
