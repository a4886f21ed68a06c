"""State of a warm process: images that are being painted, and the last answers."""

import gzip
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.datasets import read_image
from engine.datasets.annotations.raster import paint_strokes
from engine.datasets.picture_view import view_from_json
from engine.learning.segmentation.live_segmenter import LiveSegmenter
from engine.metrics import measure_objects
from webapp.segmentation.painting.raster import live_factor, live_size

UNKNOWN = 255  # the engine's label of unpainted pixels
MOST_PICTURES = 12  # a megapixel and 80 MB each; the least recently used are dropped
MOST_PLANES = 8  # classes whose probabilities are sent; for more, only labels and certainty
GZIP_LEVEL = 1

Picture = dict[str, Any]


@dataclass(slots=True)
class _Answer:
    """Last answer for an image; labels are numbers of classes."""

    labels: NDArray[np.uint8]
    sureness: NDArray[np.float32]
    seen: set[str] = field(default_factory=set)


class Warm:
    """Answers to requests about one image set."""

    def __init__(self) -> None:
        self._live = LiveSegmenter(["1", "2"])  # until a request names the classes
        self._values: list[int] = []
        self._answers: OrderedDict[str, _Answer] = OrderedDict()
        self._recent: OrderedDict[str, None] = OrderedDict()

    def answer(self, question: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Answer one request: "open" loads an image, "answer" learns, "objects" measures."""
        if question["do"] == "objects":
            return self._objects(question)
        self._begin(question["classes"])
        self._look(question["picture"])
        if question["do"] == "open":
            return {"ready": True}, b""
        return self._learn(question)

    def _begin(self, values: list[int]) -> None:
        """Start again if classes were added or removed; images are then loaded again."""
        if values == self._values:
            return
        names = [str(value) for value in values]
        # With one class there is nothing to learn yet, but images can be loaded.
        self._live = LiveSegmenter(names if len(names) > 1 else [*names, "other"])
        self._values = values
        self._answers.clear()
        self._recent.clear()

    def _learn(self, question: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        picture, others = question["picture"], question["others"][: MOST_PICTURES - 1]
        for other in others:
            self._look(other)
        self._look(picture)
        maps = {one["key"]: self._painted(one) for one in [*others, picture]}
        own = maps[picture["key"]]
        found = sorted({int(v) for labels in maps.values() for v in np.unique(labels) if v})
        present = [value for value in found if value in self._values]
        header: dict[str, Any] = {
            "present": present,
            "right": self._right(picture),
            "painted": float((own > 0).mean()),
            "left_out": len(question["others"]) - len(others),
        }
        if len(present) < 2:
            self._answers.pop(picture["key"], None)
            return header, b""
        self._live.learn({key: self._as_labels(labels) for key, labels in maps.items()})
        answer = self._live.predict(picture["key"])
        values = np.array(self._values, dtype=np.uint8)[answer.labels]
        sureness = answer.probabilities.max(axis=2)
        seen = {stroke["id"] for stroke in picture["strokes"]}
        self._answers[picture["key"]] = _Answer(values, sureness, seen)
        counts = np.bincount(answer.labels.ravel(), minlength=len(self._values))
        rows, columns = answer.labels.shape
        has_all = len(self._values) <= MOST_PLANES
        header |= {
            "width": columns,
            "height": rows,
            "factor": live_factor(picture["width"], picture["height"]),
            "values": self._values,
            "shares": [float(count / answer.labels.size) for count in counts],
            "next": [int(answer.next_place[1]), int(answer.next_place[0])],
            "planes": len(self._values) if has_all else 1,
        }
        shown = np.moveaxis(answer.probabilities, 2, 0) if has_all else sureness[np.newaxis]
        planes = [answer.labels, *((255 * plane + 0.5).astype(np.uint8) for plane in shown)]
        body = b"".join(np.ascontiguousarray(plane).tobytes() for plane in planes)
        return header, gzip.compress(body, GZIP_LEVEL, mtime=0)

    def _objects(self, question: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Return the objects of one class in the last answer."""
        picture = question["picture"]
        answer = self._answers.get(picture["key"])
        if answer is None:
            return {"rows": []}, b""
        factor = live_factor(picture["width"], picture["height"])
        across, down = question.get("pixel_size") or (1.0, 1.0)
        table = measure_objects(
            answer.labels == question["value"],
            _read(picture).mean(axis=2),
            answer.sureness,
            pixel_size=(factor * across, factor * down),
            min_pixels=question["min_pixels"],
        )
        return {"rows": table.rows()}, b""

    def _look(self, picture: Picture) -> None:
        """Compute the filters of an image; drop those of the least recently used one."""
        key = picture["key"]
        if key not in self._recent:
            while len(self._recent) >= MOST_PICTURES:
                oldest, _ = self._recent.popitem(last=False)
                self._live.remove_image(oldest)
                self._answers.pop(oldest, None)
            self._live.add_image(key, _read(picture))
            self._recent[key] = None
        self._recent.move_to_end(key)

    def _as_labels(self, painted: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return numbers of classes as the engine's labels."""
        labels = np.full(256, UNKNOWN, dtype=np.uint8)
        labels[self._values] = np.arange(len(self._values), dtype=np.uint8)
        return labels[painted]

    def _right(self, picture: Picture) -> dict[str, float]:
        """Return, for strokes since the last answer, the share of pixels that it had right."""
        answer = self._answers.get(picture["key"])
        if answer is None:
            return {}
        size = live_size(picture["width"], picture["height"])
        factor = live_factor(picture["width"], picture["height"])
        found = {}
        for stroke in picture["strokes"]:
            if stroke["id"] in answer.seen or not stroke["value"]:
                continue
            own = paint_strokes([stroke], size, factor) > 0
            if own.any():
                found[stroke["id"]] = float((answer.labels[own] == stroke["value"]).mean())
        return found

    @staticmethod
    def _painted(picture: Picture) -> NDArray[np.uint8]:
        size = live_size(picture["width"], picture["height"])
        return paint_strokes(
            picture["strokes"], size, live_factor(picture["width"], picture["height"])
        )


def _read(picture: Picture) -> NDArray[np.uint8]:
    """Return the image at its live size."""
    view = view_from_json(picture["view"]) if picture["view"] else None
    pixels = read_image(picture["path"], name=picture["name"], view=view)
    size = live_size(picture["width"], picture["height"])
    if pixels.shape[1::-1] == size:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BOX))
