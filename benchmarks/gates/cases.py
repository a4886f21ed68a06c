"""The cases of the gates: each solves one problem and returns what must not become worse."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

import engine
from benchmarks.common.kept_results import KeptResults
from benchmarks.common.microscope_pictures import draw_cells
from benchmarks.common.reporting import REAL_DATA
from benchmarks.goals import learning as learning_goals
from benchmarks.hunts import assignments, bounds, reweighted_gaps, years
from benchmarks.papers.domke2013 import denoising
from benchmarks.peers import map_estimates, room_problems, segmentation

GAP = 1e-4  # relative, of everything that is learned with a certificate
ROOM_GAP = 0.005
SECONDS = 600.0  # no case needs them on an idle machine: answers depend on the work alone


@dataclass(frozen=True, slots=True)
class Measurement:
    """The answer of one case.

    Attributes
    ----------
    value : float, what was reached: a score that is better when larger, or an objective that is
        better when smaller, or an error; ``Gate.is_larger_better`` tells which.
    tolerance : float, difference of values that counts as equal.
    gap : float, relative certified gap, or 0 for a case without one.
    target : float, the gap up to which the case counts as certified.
    """

    value: float
    tolerance: float
    gap: float = 0.0
    target: float = 0.0


@dataclass(frozen=True, slots=True)
class Gate:
    """A named case; ``is_short`` marks those of the short comparison."""

    group: str
    case: str
    measure: Callable[[], Measurement]
    is_short: bool = False
    is_larger_better: bool = False


def all_gates() -> Iterator[Gate]:
    """Yield every gate, group by group."""
    yield from _years()
    yield from _assignments()
    yield from _learning()
    yield from _reweighted()
    yield from _bounds()
    yield from _map_estimates()
    yield from _rooms()
    yield from _pictures()
    yield from _denoising()


def compile_kernels() -> None:
    """Solve a tiny case of every group, so that no gate counts compilation."""
    for gate in (
        _year_gate("tiny", 0, 1.0),
        _assignment_gate("normal", 0, 1.0, 0.7, sizes=(3,)),
        _room_gate("triples", 12),
        _room_gate("mix", 24),
        _mask_gate(2, 1, 48),
        _class_gate(2, 1, 64),
    ):
        gate.measure()
    for strength in (1.0, 64.0):
        learning_goals.learn(60, 2, strength, 1.0, GAP)
    reweighted_gaps.solve(reweighted_gaps.frustrated_grid(5, 30.0, 0), is_swept=False)
    engine.map_estimate(map_estimates.spin_glass(4, 3, 0))
    bounds.check_bounds(20, 99)


def _years() -> Iterator[Gate]:
    for kind in years.KINDS:
        for seed in range(2):
            for ridge in (0.01, 1.0, 100.0):
                is_short = seed == 0 and kind != "wide" and ridge == 1.0
                yield _year_gate(kind, seed, ridge, is_short=is_short)


def _year_gate(kind: str, seed: int, ridge: float, *, is_short: bool = False) -> Gate:
    def measure() -> Measurement:
        rng = np.random.default_rng([sorted(years.KINDS).index(kind), seed])
        result = years.learn(years.KINDS[kind](rng), ridge, GAP, SECONDS)
        tolerance = 2 * GAP * max(abs(result.objective), 1.0)
        return Measurement(result.objective, tolerance, result.relative_gap, GAP)

    return Gate("years", f"{kind}, seed {seed}, lambda {ridge:g}", measure, is_short)


def _assignments() -> Iterator[Gate]:
    for kind in assignments.KINDS:
        for seed in range(3):
            for ridge, rho in ((1e-4, 1.0), (1.0, 0.5), (100.0, 0.9)):
                is_short = seed == 0 and ridge == 1.0
                yield _assignment_gate(kind, seed, ridge, rho, is_short=is_short)


def _assignment_gate(
    kind: str,
    seed: int,
    ridge: float,
    rho: float,
    *,
    sizes: tuple[int, ...] = (),
    is_short: bool = False,
) -> Gate:
    def measure() -> Measurement:
        observations = assignments.make_years(kind, seed, sizes)
        result = assignments.learn(observations, ridge, rho, GAP, SECONDS).result_
        tolerance = 2 * GAP * max(abs(result.objective), 1.0)
        return Measurement(result.objective, tolerance, result.relative_gap, GAP)

    case = f"{kind}, seed {seed}, lambda {ridge:g}, rho {rho:g}"
    return Gate("assignments", case, measure, is_short)


def _learning() -> Iterator[Gate]:
    for students, n_years, strength, gap in (
        (1_200, 1, 1.0, GAP),
        (1_200, 1, 8.0, GAP),
        (1_200, 1, 64.0, GAP),
        (1_200, 1, 1.0, 1e-6),
        (2_500, 2, 1.0, GAP),
        (2_500, 10, 1.0, GAP),
    ):
        measure = partial(_learn_years, students, n_years, strength, gap)
        case = f"{n_years} x {students:,}, strength {strength:g}, to {gap:g}"
        yield Gate("learning", case, measure, is_short=students == 1_200 and strength > 1.0)


def _learn_years(students: int, n_years: int, strength: float, gap: float) -> Measurement:
    result, _ = learning_goals.learn(students, n_years, strength, 100.0, gap, SECONDS)
    tolerance = 2 * gap * max(abs(result.objective), 1.0)
    return Measurement(result.objective, tolerance, result.relative_gap, gap)


def _reweighted() -> Iterator[Gate]:
    """Tree-reweighted free energies: the value is log Z's upper bound."""

    def gate(name: str, k: int, graph: engine.FactorGraph) -> Gate:
        def measure() -> Measurement:
            answer = reweighted_gaps.solve(graph, is_swept=False)
            settled = 1e-5 * graph.n_variables
            return Measurement(
                float(answer.upper_bound), settled, answer.dual_gap / graph.n_variables, 1e-5
            )

        return Gate("reweighted", f"{name}, model {k}", measure, is_short=k == 0)

    for name, graphs in reweighted_gaps.cases(1):
        for k, graph in enumerate(graphs[:6]):
            yield gate(name, k, graph)


def _bounds() -> Iterator[Gate]:
    """Count false bounds."""
    for seed, count in ((1, 60), (2, 1000)):
        measure = partial(_count_false_bounds, count, seed)
        yield Gate("bounds", f"{count} models, seed {seed}", measure, is_short=count == 60)


def _count_false_bounds(count: int, seed: int) -> Measurement:
    return Measurement(float(len(bounds.check_bounds(count, seed))), 0.0)


def _map_estimates() -> Iterator[Gate]:
    for side, n_labels, seed in ((10, 2, 0), (10, 3, 0), (10, 3, 1), (20, 2, 0)):
        measure = partial(_estimate, side, n_labels, seed)
        case = f"spin glass {side} x {side}, {n_labels} labels, seed {seed}"
        is_short = side == 10 and seed == 0
        yield Gate("map_estimates", case, measure, is_short, is_larger_better=True)


def _estimate(side: int, n_labels: int, seed: int) -> Measurement:
    answer = engine.map_estimate(
        map_estimates.spin_glass(side, n_labels, seed), max_seconds=SECONDS
    )
    scale = max(abs(answer.value), 1.0)
    gap = (answer.upper_bound - answer.value) / scale
    return Measurement(answer.value, 1e-9 * scale, gap, 1e-6)


def _rooms() -> Iterator[Gate]:
    for shape in room_problems.SHAPES:
        yield _room_gate(shape, 60, is_short=True)
        yield _room_gate(shape, 300)


def _room_gate(shape: str, students: int, *, is_short: bool = False) -> Gate:
    def measure() -> Measurement:
        case = room_problems.SHAPES[shape](students)
        seconds = 20.0 if students <= 60 else 60.0
        placement = engine.place_in_rooms(
            case.scores,
            case.rooms,
            case.rules,
            attributes=case.attributes,
            gap=ROOM_GAP,
            max_seconds=seconds,
        )
        scale = max(abs(placement.weight), 1.0)
        gap = (placement.upper_bound - placement.weight) / scale
        worth = placement.weight - 1e6 * len(placement.unplaced)
        return Measurement(worth, ROOM_GAP * scale, gap, ROOM_GAP)

    return Gate("rooms", f"{shape}, {students}", measure, is_short, is_larger_better=True)


def _pictures() -> Iterator[Gate]:
    yield _mask_gate(6, 8, 100, is_short=True)
    yield _mask_gate(30, 20, 160)
    yield _class_gate(3, 3, 128, is_short=True)
    yield _class_gate(10, 6, 256)
    if (REAL_DATA / "weizmann_horses").exists():
        yield Gate("masks", "20 horses, 64 others", _learn_horses)


def _mask_gate(train: int, test: int, side: int, *, is_short: bool = False) -> Gate:
    """Mean error of masks on synthetic leaves."""

    def measure() -> Measurement:
        rng = np.random.default_rng(5)
        pictures = engine.generate_leaf_images(train + test, rng=rng, shape=(side, side))
        images = [picture.image for picture in pictures]
        masks = [picture.mask for picture in pictures]
        trained = engine.train_boosted_segmentation(images[:train], masks[:train])
        errors = [
            float(np.mean(engine.predict_segmentation(trained.model, image).labels != mask))
            for image, mask in zip(images[train:], masks[train:], strict=True)
        ]
        return Measurement(float(np.mean(errors)), 0.002)

    return Gate("masks", f"{train} leaves of {side} pixels", measure, is_short)


def _class_gate(train: int, test: int, side: int, *, is_short: bool = False) -> Gate:
    """Mean error of label maps on generated cells, a tenth of whose pixels are known."""

    def measure() -> Measurement:
        drawn = [draw_cells(np.random.default_rng([9, k]), side) for k in range(train + test)]
        images = [
            np.repeat((counts // 16).astype(np.uint8)[:, :, None], 3, axis=2) for counts, _ in drawn
        ]
        rng = np.random.default_rng(7)
        known = [np.where(rng.random(labels.shape) < 0.1, labels, 255) for _, labels in drawn]
        trained = engine.train_class_segmentation(
            images[:train], known[:train], ("Nucleus", "Cell body", "Background")
        )
        errors = [
            float(np.mean(engine.predict_segmentation(trained.model, image).labels != labels))
            for image, (_, labels) in zip(images[train:], drawn[train:], strict=True)
        ]
        return Measurement(float(np.mean(errors)), 0.002)

    return Gate("classes", f"{train} pictures of cells of {side} pixels", measure, is_short)


def _learn_horses() -> Measurement:
    """Return the mean error on 64 horses of what 20 others taught."""
    folder = REAL_DATA / "weizmann_horses"
    test = segmentation.read_pairs(folder / "test", 64, seed=0)
    row = segmentation.run_ours(segmentation.read_pairs(folder / "train", 20, seed=5), test)
    return Measurement(float(row["error"]), 0.001)


def _denoising() -> Iterator[Gate]:
    for noise in denoising.NOISE_LEVELS:
        measure = partial(_denoise, noise)
        yield Gate("denoising", f"noise {noise:g}", measure, is_short=noise == 1.25)


def _denoise(noise: float) -> Measurement:
    """Return the least test error of the weights of all losses, on synthetic pictures."""
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder:
        for k, drawn in enumerate(engine.generate_leaf_images(6, rng=rng, shape=(40, 60))):
            Image.fromarray(drawn.image).save(Path(folder, f"{k:02d}.jpg"), quality=95)
        examples = denoising.noisy_examples(Path(folder), 6, (40, 60), noise, rng)
        kept = KeptResults(Path(folder), {})
        fits = list(denoising.fit_all(examples[:3], examples[3:], noise, SECONDS, kept))
    return Measurement(min(float(found["test"]) for _, found in fits), 0.002)
