"""Store of labelled pictures with features: in memory up to a budget, then in files."""

import hashlib
import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from engine.core.errors import InvalidProblemError
from engine.core.npz_file import ArrayFile, read_npz
from engine.core.spill_folder import spill_folder
from engine.core.whole_file import whole_file
from engine.crf.grid_features import GridExample, GridFeatures
from engine.crf.image_features import (
    COLOUR_THRESHOLDS,
    SOBEL_THRESHOLDS,
    ImageNodeFeatures,
    beside_maps,
    compute_parts,
    edge_features_from_codes,
)

MEMORY_BYTES = 512 * 2**20
"""Memory budget of features: about 1,700 pictures of 30,000 pixels at ten bytes a pixel."""

VERSION = b"image features 1"


PARTS = ("colours", "gradients", "right", "down")
"""Names of the arrays of a picture's features; "maps" follow if there are any."""

NO_MAPS = np.zeros((1, 1, 0), dtype=np.float32)


class PictureDigest:
    """SHA-256 of pictures and labels in their order, to identify a set."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def update(
        self,
        shape: Sequence[int],
        colours: NDArray[np.uint8],
        packed: NDArray[np.uint8],
        maps: NDArray[np.float32] = NO_MAPS,
    ) -> None:
        """Add a picture, its maps, and its labels packed eight to a byte."""
        for part in (np.array(shape, np.int64), colours, packed, maps):
            self._digest.update(np.ascontiguousarray(part).tobytes())

    def hexdigest(self) -> str:
        """Return the digest of all pictures added so far."""
        return self._digest.hexdigest()


class ExampleStore(Sequence[GridExample]):
    """Growing sequence of examples with a memory budget.

    Features beyond the budget are in files and are read on every access; labels stay in memory,
    eight to a byte.

    Parameters
    ----------
    cache : Path, optional
        Folder that stores features from run to run, named by the content of the picture.
        None: features beyond the budget are in a file without a name, deleted with the store.
    memory_bytes : int
    """

    def __init__(self, cache: Path | None = None, memory_bytes: int = MEMORY_BYTES) -> None:
        self._cache, self._left = cache, memory_bytes
        self._spill: SpillFile | None = None
        self._features: list[GridFeatures | Path | SpilledFeatures] = []
        self._labels: list[NDArray[np.uint8]] = []
        self._shapes: list[tuple[int, int]] = []
        self._digest = PictureDigest()
        if cache is not None:
            cache.mkdir(parents=True, exist_ok=True)

    def append(
        self,
        colours: NDArray[np.uint8],
        labels: NDArray[np.bool_],
        maps: NDArray[np.float32] = NO_MAPS,
    ) -> None:
        """Add a picture at the size of its model, (rows, columns, 3) uint8, with its labels.

        Its maps, (rows, columns, C) log-odds, have the same size.
        """
        features, path = self._featurise(colours, maps)
        size = colours.nbytes + maps.nbytes + features.gradients.nbytes + 2 * labels.size
        if size <= self._left:
            self._left -= size
            self._features.append(assemble(features))
        else:
            self._features.append(self._spilled(features) if path is None else path)
        self._labels.append(np.packbits(labels))
        self._shapes.append((int(labels.shape[0]), int(labels.shape[1])))
        self._digest.update(labels.shape, colours, self._labels[-1], maps)

    @property
    def digest(self) -> str:
        """Hexadecimal SHA-256 of all pictures and labels, in their order, to identify the set."""
        return self._digest.hexdigest()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of pixels of each example, without reading a file."""
        return tuple(rows * columns for rows, columns in self._shapes)

    def labels(self, index: int) -> NDArray[np.bool_]:
        """Return the labels of one example, shape (rows, columns), without reading a file."""
        rows, columns = self._shapes[index]
        bits = np.unpackbits(self._labels[index], count=rows * columns)
        return bits.reshape(rows, columns).astype(np.bool_)

    def __len__(self) -> int:
        """Return the number of examples."""
        return len(self._shapes)

    @overload
    def __getitem__(self, index: int) -> GridExample: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[GridExample]: ...

    def __getitem__(self, index: int | slice) -> GridExample | Sequence[GridExample]:
        """Return an example, or a lazy view of several."""
        if isinstance(index, slice):
            return ExampleView(self, range(*index.indices(len(self))))
        kept = self._features[index]
        if isinstance(kept, Path):
            found = StoredFeatures.load(kept)
            if found is None:
                raise OSError(f"{kept}: the features kept here can no longer be read.")
            kept = assemble(found)
        elif isinstance(kept, SpilledFeatures):
            kept = assemble(kept.load())
        return GridExample(kept, self.labels(index))

    def _featurise(
        self, colours: NDArray[np.uint8], maps: NDArray[np.float32]
    ) -> tuple["StoredFeatures", Path | None]:
        """Return the features of a picture, from the cache if present, and their path in it."""
        if self._cache is None:
            return StoredFeatures.compute(colours, maps), None
        path = self._cache / f"{content_key(colours, maps)}.npz"
        features = StoredFeatures.load(path) if path.exists() else None
        if features is None:
            features = StoredFeatures.compute(colours, maps)
            features.save(path)
        return features, path

    def _spilled(self, features: "StoredFeatures") -> "SpilledFeatures":
        if self._spill is None:
            self._spill = SpillFile()
        return self._spill.append(features)


class SpillFile:
    """Temporary file without a name that holds the features of many pictures.

    Its disk space is freed with the store, even if the process is killed.
    """

    def __init__(self) -> None:
        folder = spill_folder()
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed with the store

    def append(self, features: "StoredFeatures") -> "SpilledFeatures":
        """Write the features of a picture at the end of the file, and return their location."""
        packed = io.BytesIO()
        features.write(packed)
        start = self._file.seek(0, os.SEEK_END)
        self._file.write(packed.getbuffer())
        self._file.flush()
        return SpilledFeatures(self._file, start, packed.tell())


class SpilledFeatures(NamedTuple):
    """Location of the features of a picture: the file, the first byte and the number of bytes."""

    file: IO[bytes]
    start: int
    size: int

    def load(self) -> "StoredFeatures":
        """Read the features; safe to call from several threads."""
        content = os.pread(self.file.fileno(), self.size, self.start)
        with ArrayFile(io.BytesIO(content)) as parts:
            return StoredFeatures.of_parts(parts)


class ExampleView(Sequence[GridExample]):
    """Lazy view of some examples of a sequence, in a given order."""

    def __init__(self, examples: Sequence[GridExample], order: Sequence[int]) -> None:
        self._examples, self._order = examples, order

    def __len__(self) -> int:
        """Return the number of examples in the view."""
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> GridExample: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[GridExample]: ...

    def __getitem__(self, index: int | slice) -> GridExample | Sequence[GridExample]:
        """Return an example, or a smaller view."""
        if isinstance(index, slice):
            return ExampleView(self._examples, self._order[index])
        return self._examples[self._order[index]]


class StoredFeatures:
    """Arrays from which the features of a picture are assembled."""

    def __init__(
        self,
        colours: NDArray[np.uint8],
        gradients: NDArray[np.float32],
        horizontal: NDArray[np.uint8],
        vertical: NDArray[np.uint8],
        maps: NDArray[np.float32] = NO_MAPS,
    ) -> None:
        self.colours, self.gradients = colours, gradients
        self.horizontal, self.vertical = horizontal, vertical
        self.maps = maps

    @classmethod
    def compute(
        cls, colours: NDArray[np.uint8], maps: NDArray[np.float32] = NO_MAPS
    ) -> "StoredFeatures":
        """Compute the features of a picture, (rows, columns, 3) uint8, and store its maps."""
        nodes, edges = compute_parts(colours)
        return cls(nodes.colours, nodes.gradients, edges.horizontal, edges.vertical, maps)

    @classmethod
    def of_parts(cls, parts: Mapping[str, NDArray[Any]]) -> "StoredFeatures":
        """Build features from a mapping of arrays by name."""
        colours, gradients, right, down = (parts[name] for name in PARTS)
        return cls(colours, gradients, right, down, parts.get("maps", NO_MAPS))

    @classmethod
    def load(cls, path: Path) -> "StoredFeatures | None":
        """Read features from a file; return None if the file is damaged."""
        try:
            return cls.of_parts(read_npz(path))
        except (OSError, InvalidProblemError, KeyError):
            return None

    def write(self, file: IO[bytes]) -> None:
        """Write the features to an open file."""
        parts = (self.colours, self.gradients, self.horizontal, self.vertical)
        named: dict[str, NDArray[Any]] = dict(zip(PARTS, parts, strict=True))
        if self.maps.size:
            named["maps"] = self.maps
        np.savez(file, **named)  # type: ignore[arg-type]

    def save(self, path: Path) -> None:
        """Write the features to a path atomically."""
        with whole_file(path) as file:
            self.write(file)


def assemble(features: StoredFeatures) -> GridFeatures:
    """Return the grid features of a picture from its stored arrays."""
    return GridFeatures(
        beside_maps(ImageNodeFeatures(features.colours, features.gradients), features.maps),
        edge_features_from_codes(features.horizontal, features.vertical),
    )


def content_key(colours: NDArray[np.uint8], maps: NDArray[np.float32] = NO_MAPS) -> str:
    """Return a key of features: a hash of all that they depend on."""
    digest = hashlib.sha256(VERSION)
    for part in (COLOUR_THRESHOLDS, SOBEL_THRESHOLDS, np.array(colours.shape), colours, maps):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:40]
