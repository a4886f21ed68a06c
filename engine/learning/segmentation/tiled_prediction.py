"""Prediction in overlapping tiles, in constant memory, for models and pictures of any size.

Every tile includes a margin. Filters and context reach less far than the margin, so the scores of
the trees equal those of the whole picture (except for the widest Gaussian beyond a few of its
scales); messages converge from the margin inwards. Only the core of each tile is used.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engine.core.arguments import ByteImage
from engine.core.array_file import ArrayFile
from engine.core.errors import StoppedError
from engine.core.progress import StopCallback, never_stop
from engine.core.spill_folder import spill_folder
from engine.crf.class_features import ClassFeatures, Scores
from engine.crf.context import GuessCount, compute_context
from engine.crf.filter_bank import Frame
from engine.crf.grid_features import GridFeatures
from engine.crf.picture_windows import (
    MARGIN,
    ArrayMaps,
    MapSource,
    PictureSource,
    ShrunkMaps,
    ShrunkPicture,
    Tile,
    cut_tiles,
)
from engine.learning.segmentation.given_maps import check_count
from engine.learning.segmentation.grid_readout import best_labelling, read_marginals
from engine.learning.segmentation.model import SegmentationModel
from engine.learning.segmentation.tree_features import tree_features
from engine.learning.segmentation.tree_unaries import TreeUnaries, ask, plain_planes

TILE_BYTES = 1_000_000_000
"""Memory budget of a tile; with more classes and maps tiles are smaller."""

BYTES_A_PIXEL, BYTES_A_LAYER = 600, 100
"""Peak memory of a pixel of a tile: filters, context and edges; and per class or map."""

LEAST_CORE = 128
"""Side in pixels of the smallest core: below, nearly all of a tile would be margin."""

WHOLE_PIXELS = 1_200_000
"""Largest number of pixels of a model that is predicted whole."""

BAND_PIXELS = 4_000_000
"""Number of pixels of the picture that are interpolated at once."""

Probabilities = NDArray[np.float32]

NO_MAPS = ArrayMaps(np.zeros((1, 1, 0), dtype=np.float32))


class Sink(Protocol):
    """Receiver of the marginals of a rectangle: its first row and column, and its values."""

    def __call__(self, top: int, left: int, values: Probabilities, /) -> None: ...


def core_side(n_layers: int, tile_bytes: int = TILE_BYTES) -> int:
    """Return the side of a core in pixels for ``n_layers`` classes and maps within a budget."""
    pixels = tile_bytes / (BYTES_A_PIXEL + BYTES_A_LAYER * n_layers)
    return max(int(np.sqrt(pixels)) - 2 * MARGIN, LEAST_CORE)


def sink_of(array: NDArray[np.float32]) -> Sink:
    """Return a sink that writes rectangles into an array."""

    def write(top: int, left: int, values: Probabilities) -> None:
        array[top : top + values.shape[0], left : left + values.shape[1]] = values

    return write


@dataclass(frozen=True, slots=True)
class TileReport:
    """Report of a tiled prediction: grid shape, number of tiles, and convergence of messages."""

    grid_shape: tuple[int, int]
    n_tiles: int
    is_converged: bool


@dataclass(slots=True)
class TiledPrediction:
    """Prediction of the marginals of a picture that need not fit in memory.

    Parameters
    ----------
    model : SegmentationModel
    source : PictureSource
    maps : MapSource, probabilities of another program, if the model learned with any
    core : side of a tile's core in pixels; by default the largest within `TILE_BYTES`
    should_stop : called before every tile
    on_tile : called after every tile with the number of finished tiles and the total
    folder : folder of temporary arrays; `spill_folder` by default
    write_best : receives the best labelling of every tile, at the model's size
    """

    model: SegmentationModel
    source: PictureSource
    maps: MapSource = NO_MAPS
    core: int | None = None
    should_stop: StopCallback = never_stop
    on_tile: Callable[[int, int], None] = lambda done, total: None
    folder: Path | None = None
    write_best: Sink | None = None

    def run(self, write: Sink) -> TileReport:
        """Predict the whole picture, and pass its marginals, float32, to ``write`` by rectangles.

        Shape (rows, columns) of "foreground" for masks, or (rows, columns, L) for label maps.

        Raises
        ------
        InvalidProblemError
            If the maps have another number of planes than the model learned with.
        StoppedError
            If ``should_stop`` returned True.
        """
        check_count(self.model.n_maps, self.maps.n_planes)
        shape = self.grid_shape
        if shape == self.source.shape:
            return self._tiles(write)
        with self._between("grid.npy", (*shape, *self.depth)) as grid:
            report = self._tiles(grid.write)
            self._enlarge(grid, write)
        return report

    @contextmanager
    def _between(self, name: str, shape: tuple[int, ...]) -> Iterator[ArrayFile]:
        """Yield a temporary array in a file, which is deleted on exit."""
        where = self.folder or spill_folder()
        with (
            tempfile.TemporaryDirectory(dir=where) as folder,
            ArrayFile(Path(folder) / name, shape) as array,
        ):
            yield array

    @property
    def depth(self) -> tuple[int, ...]:
        """Shape of the marginals of a pixel: () of a mask, (L,) of a label map."""
        return () if self.model.is_mask else (self.model.n_classes,)

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Rows and columns of the model."""
        return self.model.grid_shape(*self.source.shape)

    def _tiles(self, write: Sink) -> TileReport:
        shape = self.grid_shape
        picture = ShrunkPicture(self.source, shape)
        model = self.model
        is_small = shape[0] * shape[1] <= WHOLE_PIXELS and self.core is None
        if is_small or model.unaries is None:
            side = max(shape)
        else:
            side = self.core or core_side(sum(self.depth) + model.n_maps)
        tiles = cut_tiles(shape, side)
        if model.unaries is not None and model.knows_place:
            total = 2 * len(tiles)
            steps = self._placed(model.unaries, picture, tiles, write)
        else:
            total = len(tiles)
            steps = self._local(picture, tiles, write)
        converged = []
        for done, is_converged in enumerate(steps, start=1):
            converged.append(is_converged)
            self.on_tile(done, total)
        return TileReport(shape, len(tiles), all(converged))

    def _local(self, picture: ShrunkPicture, tiles: list[Tile], write: Sink) -> Iterator[bool]:
        """Predict tile by tile, with unaries that depend on a pixel's surroundings only."""
        for tile in tiles:
            self._stop_if_asked()
            colours, maps = picture.window(*tile.window), self._maps_in(tile.window)
            features = self.model.features(colours, maps, _frame(tile, picture))
            yield self._write(tile, features, write)

    def _placed(
        self, unaries: TreeUnaries, picture: ShrunkPicture, tiles: list[Tile], write: Sink
    ) -> Iterator[bool]:
        """Predict all tiles with the first trees, to locate the object; then with the second."""
        count = GuessCount(picture.shape)
        with self._between("guess.npy", picture.shape) as guesses:
            for tile in tiles:
                self._stop_if_asked()
                _, _, planes = self._plain(unaries, picture, tile)
                guess = ask(unaries.first, planes, None)[:, :, 0]
                guesses.write(tile.top, tile.left, guess[tile.inside])
                core = (slice(None), *tile.inside)
                count.add(tile.top, tile.left, guess[tile.inside], planes[core])
                yield True
            whole = count.whole()
            for tile in tiles:
                self._stop_if_asked()
                colours, maps, planes = self._plain(unaries, picture, tile)
                guess = np.asarray(guesses.read(*tile.window), dtype=np.float32)
                seen = whole.seen_from(*tile.window[:2])
                context = compute_context(guess, planes, unaries.n_context, seen)
                odds = ask(unaries.second, np.concatenate([planes, context]), None)
                yield self._write(tile, tree_features(colours, odds, maps), write)

    def _plain(
        self, unaries: TreeUnaries, picture: ShrunkPicture, tile: Tile
    ) -> tuple[ByteImage, Scores, Scores]:
        """Return the colours and maps of a tile's window, and the features of the first trees."""
        colours = picture.window(*tile.window)
        maps = self.model.with_network(colours, self._maps_in(tile.window))
        frame = _frame(tile, picture)
        return colours, maps, plain_planes(unaries.bank, colours, maps, frame, is_shared=True)

    def _maps_in(self, window: tuple[int, int, int, int]) -> Scores:
        """Return the log-odds of the maps in a window of the model."""
        return ShrunkMaps(self.maps, self.grid_shape).window(*window)

    def _write(self, tile: Tile, features: GridFeatures | ClassFeatures, write: Sink) -> bool:
        """Write the core of a tile; return True if its messages converged."""
        marginals, is_converged = read_marginals(features, self.model.theta, self.model.rho)
        write(tile.top, tile.left, marginals[tile.inside])
        if self.write_best is not None:
            labels, _, _ = best_labelling(features, self.model.theta)
            self.write_best(tile.top, tile.left, labels[tile.inside].astype(np.float32))
        return is_converged

    def _stop_if_asked(self) -> None:
        if self.should_stop():
            raise StoppedError("The prediction was stopped.")

    def _enlarge(self, grid: ArrayFile, write: Sink) -> None:
        """Interpolate the marginals of the grid at the picture's pixels, band by band."""
        height, width = self.source.shape
        down = grid.shape[0] / height
        step = max(1, BAND_PIXELS // (width * max(sum(self.depth), 1)))
        for top in range(0, height, step):
            self._stop_if_asked()
            bottom = min(top + step, height)
            first = max(int(top * down) - 2, 0)
            last = min(int(np.ceil(bottom * down)) + 2, grid.shape[0])
            part = grid.read(first, 0, last - first, grid.shape[1])
            layers = part[:, :, np.newaxis] if part.ndim == 2 else part
            box = (0.0, top * down - first, float(grid.shape[1]), bottom * down - first)
            size = (width, bottom - top)
            out = [
                np.asarray(
                    Image.fromarray(np.ascontiguousarray(layers[:, :, k])).resize(
                        size, Image.Resampling.BILINEAR, box=box
                    )
                )
                for k in range(layers.shape[2])
            ]
            values = np.clip(np.stack(out, axis=2), 0.0, 1.0)
            write(top, 0, values if part.ndim == 3 else values[:, :, 0])


def _frame(tile: Tile, picture: ShrunkPicture) -> Frame:
    return Frame(*tile.window[:2], *picture.shape)
