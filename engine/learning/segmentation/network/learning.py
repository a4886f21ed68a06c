"""Learning of the networks of all folds, out of fold, and their maps of the training pictures."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import FloatArray
from engine.core.errors import InvalidProblemError, StoppedError
from engine.core.options import check_seconds, check_whole
from engine.core.progress import Progress, StopCallback
from engine.crf.class_features import UNKNOWN
from engine.kernels.threads import count_threads, one_blas_thread
from engine.kernels.work_time import wall_seconds
from engine.learning.segmentation.clock import Clock
from engine.learning.segmentation.network.inference import MOST_WIDTH, Network
from engine.learning.segmentation.network.shape import MULTIPLE, NetworkShape
from engine.learning.segmentation.network.training import (
    N_STATISTICS,
    Stack,
    State,
    Steps,
    compile_steps,
    device_name,
    rate_at,
)
from engine.learning.segmentation.part_store import PartStore
from engine.learning.segmentation.training_pictures import FOLDS, TrainingPicture

CPU_WIDTH, CPU_STEPS, CPU_BATCH = 16, 1000, 8
"""Channels, steps of every fold and pictures of a step on a processor: 200 photographs of 128
pixels take 10 minutes of two cores, and of 200 pixels 25 minutes."""

EDGE_WIDTH, EDGE_STEPS, EDGE_SECONDS = 32, 330, 900.0
"""Channels and steps on a processor for edges of objects, and the shortest limit in seconds with
which they are chosen. 18 pictures of 256 pixels take half an hour of two cores; fewer channels
separate fewer objects that touch, also with more steps."""

CARD_WIDTH, CARD_STEPS, CARD_BATCH = 64, 6000, 16
"""The same on a graphics card: 200 photographs of 256 pixels take two minutes of an H200."""

MOST_WINDOW = 256
"""Largest side in pixels of the windows that a step sees."""

TIME_SHARE = 0.75
"""Share of the remaining time for the networks; trees, weights and edges have the rest."""

REPORT_STEPS, SAVE_SECONDS = 10, 60.0
"""Steps between two reports, and seconds between two checkpoints."""

FEWEST_STEPS = 10
"""Number of steps of a fold that are taken whatever the time."""


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """Options of the network; None chooses by the device.

    Parameters
    ----------
    width : int, channels of the first level.
    steps : int, number of steps of every fold.
    batch : int, number of pictures of a step.

    Raises
    ------
    InvalidProblemError
        If a number is out of range.

    Examples
    --------
    >>> NetworkOptions(steps=200)
    NetworkOptions(width=None, steps=200, batch=None)
    """

    width: int | None = None
    steps: int | None = None
    batch: int | None = None

    def __post_init__(self) -> None:
        for name, value, most in (
            ("width", self.width, MOST_WIDTH - 1),
            ("steps", self.steps, 10**6),
            ("batch", self.batch, 1024),
        ):
            if value is not None:
                check_whole(name, value, at_least=1, at_most=most)

    def resolved(self) -> "NetworkOptions":
        """Return the options with the numbers of this machine's device in place of None.

        Raises
        ------
        InvalidProblemError
            If JAX is not installed.
        """
        is_card = device_name() != "cpu"
        width, steps, batch = (
            (CARD_WIDTH, CARD_STEPS, CARD_BATCH) if is_card else (CPU_WIDTH, CPU_STEPS, CPU_BATCH)
        )
        return NetworkOptions(self.width or width, self.steps or steps, self.batch or batch)


def edge_network_options(max_seconds: float | None = None) -> NetworkOptions:
    """Return the options for learning the edges of objects.

    Parameters
    ----------
    max_seconds : float, optional; the limit of the whole run.

    Returns
    -------
    NetworkOptions

    Raises
    ------
    InvalidProblemError
        If JAX is not installed.

    Examples
    --------
    >>> edge_network_options(60.0)
    NetworkOptions(width=None, steps=None, batch=None)
    """
    check_seconds("max_seconds", max_seconds)
    is_short = max_seconds is not None and max_seconds < EDGE_SECONDS
    if is_short or device_name() != "cpu":
        return NetworkOptions()
    return NetworkOptions(EDGE_WIDTH, EDGE_STEPS)


def resolved_options(options: NetworkOptions) -> NetworkOptions:
    """Return the options with all numbers.

    Raises
    ------
    InvalidProblemError
        If they are no `NetworkOptions`, or JAX is not installed.
    """
    if not isinstance(options, NetworkOptions):
        raise InvalidProblemError(f"network: expected NetworkOptions, received {options!r:.40}.")
    return options.resolved()


def checkpoint_setting(options: NetworkOptions) -> str:
    """Return the options as a setting of a checkpoint."""
    return f"{options.width} {options.steps} {options.batch}"


@dataclass(slots=True)
class NetworkLearning:
    """Learner of one network per fold, from the known pixels of the other folds.

    With fewer pictures than folds, blocks of pixels are the folds, as for the trees: a network then
    sees the whole picture, and the labels of the other blocks.

    Parameters
    ----------
    options : NetworkOptions
    n_labels : int, 2 to 32
    class_weights : ndarray, shape (L,), weight of the pixels of each class; None for equal ones
    position : bool, False if a picture may be turned by any angle
    clock, should_stop, kept : as for `TreeLearning`
    seed : int

    ``left_out`` names the steps that were left out for lack of time.
    """

    options: NetworkOptions
    n_labels: int
    class_weights: FloatArray | None
    position: bool
    clock: Clock
    should_stop: StopCallback
    kept: PartStore
    seed: int
    left_out: list[str] = field(default_factory=list, init=False)

    def learn(self, pictures: Sequence[TrainingPicture]) -> tuple[Network, list[TrainingPicture]]:
        """Return the networks, and the pictures with their out-of-fold maps behind the given ones.

        Raises
        ------
        InvalidProblemError
            If JAX is not installed.
        StoppedError
            If ``should_stop`` returned True; the state is kept for a later run.
        """
        width, n_steps, n_batch = astuple(self.options.resolved())
        shape = NetworkShape(self.n_labels, width)
        weights = np.ones(self.n_labels) if self.class_weights is None else self.class_weights
        ends = self._ends()
        found, n_done = [], 0
        work: _Folds | None = None
        for fold in range(FOLDS):
            name = f"{fold}_{self.seed}"
            saved = self.kept.arrays(name)
            if "network" not in saved:
                if work is None:
                    window = _window([picture.labels.shape for picture in pictures])
                    self._report(0, FOLDS * n_steps, "Preparing the network")
                    steps = compile_steps(shape, window, tuple(weights.tolist()), self.position)
                    work = _Folds(self, pictures, steps, n_steps, n_batch)
                saved = work.fit(fold, name, ends(fold))
            found.append(saved["network"])
            n_done += int(saved["n_steps"])
        if n_done < FOLDS * n_steps:
            self.left_out.append(
                f"{FOLDS * n_steps - n_done} of {FOLDS * n_steps} steps of the network"
            )
        network = Network(shape, np.stack(found))
        return network, self._with_maps(network, pictures)

    def _ends(self) -> Callable[[int], float | None]:
        """Return the function from a fold to the time, in seconds of the clock, when it ends."""
        begun, left = self.clock.seconds, self.clock.left
        if left is None:
            return lambda fold: None
        return lambda fold: begun + TIME_SHARE * left * (fold + 1) / FOLDS

    def _with_maps(
        self, network: Network, pictures: Sequence[TrainingPicture]
    ) -> list[TrainingPicture]:
        self._report(1, 1, "Applying the network")

        def one(picture: TrainingPicture) -> TrainingPicture:
            self.stop_if_asked()
            odds = network.log_odds(picture.colours, picture.folds)
            return replace(picture, maps=np.concatenate([picture.maps, odds], axis=2))

        with one_blas_thread(), ThreadPoolExecutor(count_threads()) as pool:
            return list(pool.map(one, pictures))

    def _report(self, done: float, total: float, sentence: str, left: float | None = None) -> None:
        share, seconds = TIME_SHARE * done / total, self.clock.seconds
        self.clock.on_progress(
            Progress(sentence, fraction=share, iteration=0, seconds=seconds, seconds_left=left)
        )

    def report_step(self, fold: int, step: int, n_steps: int, pace: float) -> None:
        """Report a step of a fold; ``pace`` is the time of one step, seconds."""
        done, total = fold * n_steps + step, FOLDS * n_steps
        left = pace * (total - done) / TIME_SHARE
        left = left if self.clock.left is None else min(left, self.clock.left)
        sentence = f"Learning the network: part {fold + 1} of {FOLDS}, step {step} of {n_steps}"
        self._report(done, total, sentence, left)

    def stop_if_asked(self) -> None:
        """Raise StoppedError if ``should_stop`` returns True."""
        if self.should_stop():
            raise StoppedError("Learning was stopped.")


def n_unseen_maps(network: Network, pictures: Sequence[TrainingPicture]) -> int:
    """Return the number of maps of the network that the trees must not learn from.

    If blocks of pixels are held out, the network knows the picture around them, and its maps are
    far better there than on other pictures. Trees that learn from them make more mistakes on
    others: .181 instead of .164 from one horse.
    """
    is_in_blocks = any(picture.folds.ndim for picture in pictures)
    return network.n_planes if is_in_blocks else 0


def after_network(clock: Clock) -> None:
    """Let the reports of later work take up the rest of the bar, behind that of the network."""
    report = clock.on_progress

    def later(progress: Progress) -> None:
        share = progress.fraction
        own = None if share is None else TIME_SHARE + (1 - TIME_SHARE) * share
        report(replace(progress, fraction=own))

    clock.on_progress = later


@dataclass(slots=True)
class _Folds:
    """Training of one fold after the other, with the functions compiled once."""

    how: NetworkLearning
    pictures: Sequence[TrainingPicture]
    steps: Steps
    n_steps: int
    n_batch: int

    def fit(self, fold: int, name: str, end: float | None) -> dict[str, NDArray[np.generic]]:
        """Train the network of a fold until ``end``, and keep it; return its arrays."""
        import jax

        stack, allowed = _stacked(self.pictures, fold, self.how.n_labels)
        state, first = self._begin(name)
        base = jax.random.fold_in(jax.random.key(self.how.seed), fold)
        begun, saved_at = self.how.clock.seconds, wall_seconds()
        done = first
        for done in range(first + 1, self.n_steps + 1):
            share = done / self.n_steps
            if end is not None:
                share = max(share, (self.how.clock.seconds - begun) / max(end - begun, 1e-9))
            rng = np.random.default_rng([self.how.seed, fold, done])
            chosen = rng.choice(allowed, self.n_batch)
            key = jax.random.fold_in(base, done)
            state, loss = self.steps.step(state, stack, chosen, key, float(done), rate_at(share))
            if done % REPORT_STEPS and done < self.n_steps:
                continue
            jax.block_until_ready(loss)
            now = self.how.clock.seconds
            self.how.report_step(fold, done, self.n_steps, (now - begun) / (done - first))
            is_stopped = self.how.should_stop()
            if is_stopped or wall_seconds() - saved_at > SAVE_SECONDS:
                self._keep(name, state, done)
                saved_at = wall_seconds()
            if is_stopped:
                raise StoppedError("Learning was stopped.")
            if end is not None and now >= end and done >= FEWEST_STEPS:
                break
        rng = np.random.default_rng([self.how.seed, fold, 0])
        batches = rng.choice(allowed, (N_STATISTICS, self.n_batch))
        weights = self.steps.finish(state, stack, batches, jax.random.fold_in(base, 0))
        if not np.isfinite(weights).all():  # all maps of such a network are one half
            self.how.left_out.append(f"the network of part {fold + 1}, which did not converge")
            weights = np.zeros_like(weights)
        largest = np.finfo(np.float16).max
        narrow = np.clip(weights, -largest, largest).astype(np.float16)
        arrays = {"network": narrow, "n_steps": np.array(done)}
        self.how.kept.keep_arrays(name, arrays)
        return arrays

    def _begin(self, name: str) -> tuple[State, int]:
        """Return the state from which training resumes, and the number of steps done."""
        import jax

        saved = self.how.kept.arrays(name)
        if "state" not in saved:
            return self.steps.start(self.how.seed), 0
        return State(*jax.device_put(list(saved["state"]))), int(saved["n_steps"])

    def _keep(self, name: str, state: State, done: int) -> None:
        arrays = {"state": np.stack([np.asarray(part) for part in state]), "n_steps": done}
        self.how.kept.keep_arrays(name, {k: np.asarray(v) for k, v in arrays.items()})


def _window(shapes: Sequence[tuple[int, ...]]) -> tuple[int, int]:
    """Return rows and columns of the windows: about those of the median picture."""
    sides = np.median(np.array(shapes), axis=0)
    rows, columns = (
        int(np.clip(round(side / MULTIPLE) * MULTIPLE, MULTIPLE, MOST_WINDOW)) for side in sides
    )
    return rows, columns


def _stacked(
    pictures: Sequence[TrainingPicture], fold: int, n_labels: int
) -> tuple[Stack, NDArray[np.int64]]:
    """Return all pictures in arrays, without the labels of a fold, and which of them have labels.

    Pictures are dealt with as if none had been left out, so that all folds share their functions.
    """
    import jax

    rows, columns = (max(picture.labels.shape[axis] for picture in pictures) for axis in (0, 1))
    colours = np.zeros((len(pictures), rows, columns, 3), dtype=np.uint8)
    labels = np.full((len(pictures), rows, columns), UNKNOWN, dtype=np.uint8)
    for k, picture in enumerate(pictures):
        place = (k, slice(picture.labels.shape[0]), slice(picture.labels.shape[1]))
        colours[place] = picture.colours
        labels[place] = np.where(picture.folds == fold, np.uint8(UNKNOWN), picture.labels)
    sizes = np.array([picture.labels.shape for picture in pictures], dtype=np.int32)
    known = np.flatnonzero((labels < n_labels).any(axis=(1, 2)))
    if not len(known):  # the only known pixels are in this fold
        known = np.arange(len(pictures))
    return Stack(*jax.device_put((colours, labels, sizes))), known
