"""Features without matrices against features written out one by one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import sobel

from engine.core.errors import InvalidProblemError
from engine.crf.grid_features import DenseNodeFeatures, GridFeatures
from engine.crf.image_features import (
    COLOUR_THRESHOLDS,
    N_EDGE_FEATURES,
    N_NODE_FEATURES,
    SOBEL_THRESHOLDS,
    compute_image_features,
    sobel_response,
)
from engine.crf.image_grid import enlarge, model_shape, shrink_image, shrink_mask
from tests.reference.gradient_blocks import gradient_blocks


@pytest.fixture(scope="module")
def features() -> GridFeatures:
    rng = np.random.default_rng(3)
    return compute_image_features(rng.integers(0, 256, (21, 30, 3), dtype=np.uint8))


def node_matrix(features: GridFeatures) -> np.ndarray:
    return features.nodes.rows(np.arange(21 * 30))


def test_sinusoids_are_those_of_the_paper(features: GridFeatures) -> None:
    colours = features.nodes.colours  # type: ignore[attr-defined]
    i, j = 7, 11
    base = [*(colours[i, j] / 255), (j + 0.5) / 30, (i + 0.5) / 21]
    expected = [
        turn(np.dot(base, [(c >> k) & 1 for k in range(5)]))
        for turn in (np.cos, np.sin)
        for c in range(32)
    ]
    assert_allclose(node_matrix(features)[i * 30 + j, :64], expected, atol=1e-12)


def test_scores_are_products_with_the_features(features: GridFeatures) -> None:
    weights = np.random.default_rng(0).normal(size=N_NODE_FEATURES)
    expected = (node_matrix(features) @ weights).reshape(21, 30)
    assert_allclose(features.nodes.scores(weights), expected, atol=1e-10)


def test_projection_is_the_transpose_of_scores(features: GridFeatures) -> None:
    residual = np.random.default_rng(1).normal(size=(21, 30))
    expected = node_matrix(features).T @ residual.ravel()
    assert_allclose(features.nodes.project(residual), expected, atol=1e-10)


@pytest.mark.parametrize("shape", [(8, 8), (16, 33), (9, 24)])
def test_products_hold_where_blocks_end_with_the_picture(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    nodes = compute_image_features(rng.integers(0, 256, (*shape, 3), dtype=np.uint8)).nodes
    weights, residual = rng.normal(size=N_NODE_FEATURES), rng.normal(size=shape)
    matrix = nodes.rows(np.arange(residual.size))
    assert_allclose(nodes.scores(weights).ravel(), matrix @ weights, atol=1e-10)
    assert_allclose(nodes.project(residual), matrix.T @ residual.ravel(), atol=1e-10)


def test_gradient_blocks_interpolate_and_are_normalised(features: GridFeatures) -> None:
    gradients = node_matrix(features)[:, 64:]
    assert gradients.shape[1] == 36
    assert gradients.min() >= 0.0
    assert (np.linalg.norm(gradients, axis=1) <= 1.0 + 1e-6).all()
    assert np.linalg.norm(gradients, axis=1).mean() > 0.5


def test_edge_codes_stand_for_exceeded_thresholds(features: GridFeatures) -> None:
    colours = features.nodes.colours / 255.0  # type: ignore[attr-defined]
    i, j = 4, 9
    for codes, basis, other, half in (
        (features.edges.horizontal, features.edges.horizontal_basis, (i, j + 1), 0),
        (features.edges.vertical, features.edges.vertical_basis, (i + 1, j), 21),
    ):
        vector = basis[codes[i, j]]
        distance = np.linalg.norm(colours[i, j] - colours[other])
        assert vector.shape == (N_EDGE_FEATURES,)
        assert vector[half] == 1.0
        assert_array_equal(vector[half + 1 : half + 11], distance > COLOUR_THRESHOLDS)
        assert not vector[21 - half : 42 - half].any()
        assert len(SOBEL_THRESHOLDS) == 10


def test_the_larger_sobel_response_of_an_edges_ends_is_compared(features: GridFeatures) -> None:
    colours = features.nodes.colours / 255.0  # type: ignore[attr-defined]
    lightness = 0.299 * colours[..., 0] + 0.587 * colours[..., 1] + 0.114 * colours[..., 2]
    response = np.hypot(*(sobel(lightness, axis, mode="nearest") for axis in (0, 1)))
    edges, exceeded = features.edges, response[..., None] > SOBEL_THRESHOLDS
    right = edges.horizontal_basis[edges.horizontal][..., 11:21]
    down = edges.vertical_basis[edges.vertical][..., 32:42]
    assert_array_equal(right, exceeded[:, 1:] | exceeded[:, :-1])
    assert_array_equal(down, exceeded[1:] | exceeded[:-1])


def test_gradient_blocks_are_those_of_the_definition(features: GridFeatures) -> None:
    expected = gradient_blocks(features.nodes.colours / 255.0)  # type: ignore[attr-defined]
    assert_allclose(features.nodes.gradients, expected, atol=1e-6)  # type: ignore[attr-defined]


def test_sobel_is_the_library_one() -> None:
    lightness = np.random.default_rng(6).random((9, 13))
    ends = [sobel(lightness, axis, mode="nearest") for axis in (0, 1)]
    assert_allclose(sobel_response(lightness), np.hypot(*ends), atol=1e-12)


def test_scores_times_labels_equal_parameters_times_statistics(features: GridFeatures) -> None:
    """<theta, phi(Y)> both ways, for parameters with and without the symmetry F_0 = -F_1."""
    rng = np.random.default_rng(2)
    labels = rng.random((21, 30)) > 0.4
    for symmetric in (False, True):
        theta = rng.normal(size=features.n_parameters)
        if symmetric:
            theta[:N_NODE_FEATURES] = -theta[N_NODE_FEATURES : 2 * N_NODE_FEATURES]
        scores = features.scores(theta)
        x = labels.astype(int)
        pairs_h = 2 * x[:, :-1] + x[:, 1:]
        pairs_v = 2 * x[:-1] + x[1:]
        value = scores.offset + scores.node[labels].sum()
        value += scores.horizontal[features.edges.horizontal, pairs_h].sum()
        value += scores.vertical[features.edges.vertical, pairs_v].sum()
        assert value == pytest.approx(theta @ features.observed_statistics(labels), rel=1e-10)


def test_statistics_of_a_labelling_are_the_observed_ones(features: GridFeatures) -> None:
    labels = np.random.default_rng(4).random((21, 30)) > 0.5
    x = np.stack([~labels, labels], axis=2).astype(float)
    horizontal = np.einsum("ija,ijb->ijab", x[:, :-1], x[:, 1:]).reshape(21, 29, 4)
    vertical = np.einsum("ija,ijb->ijab", x[:-1], x[1:]).reshape(20, 30, 4)
    statistics = features.statistics(labels.astype(float), horizontal, vertical)
    assert_allclose(statistics, features.observed_statistics(labels), atol=1e-9)


@pytest.mark.parametrize("shape", [(8, 8), (8, 200), (200, 9), (65, 64)])
def test_any_size_has_features(shape: tuple[int, int]) -> None:
    flat = np.full((*shape, 3), 128, dtype=np.uint8)
    features = compute_image_features(flat)
    assert np.isfinite(features.nodes.scores(np.ones(N_NODE_FEATURES))).all()
    assert not features.edges.horizontal.any()  # no colour differs anywhere


def test_misfitting_codes_and_parameters_are_refused(features: GridFeatures) -> None:
    with pytest.raises(InvalidProblemError, match="edge codes"):
        GridFeatures(DenseNodeFeatures(np.zeros((3, 3, 2))), features.edges)
    with pytest.raises(InvalidProblemError, match="parameters"):
        features.scores(np.zeros(7))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((3000, 4000), (150, 200)),
        ((100, 81), (100, 81)),
        ((1, 1), (8, 8)),
        ((1, 10_000), (8, 200)),
        ((200, 200), (200, 200)),
    ],
)
def test_models_fit_in_the_longest_side(shape: tuple[int, int], expected: tuple[int, int]) -> None:
    assert model_shape(shape, 200) == expected


def test_shrinking_averages_and_enlarging_interpolates() -> None:
    mask = np.zeros((40, 60), dtype=bool)
    mask[:, 30:] = True
    small = shrink_mask(mask, (20, 30))
    assert_array_equal(small, np.broadcast_to(np.arange(30) >= 15, (20, 30)))
    image = np.where(mask[..., None], 200, 100).astype(np.uint8).repeat(3, axis=2)
    assert_array_equal(shrink_image(image, (20, 30))[0, :, 0], [100] * 15 + [200] * 15)
    back = enlarge(small.astype(float), (40, 60))
    assert_array_equal(back >= 0.5, mask)
    assert ((back > 0.1) & (back < 0.9)).any()


def test_the_picture_stays_its_owners() -> None:
    """It became read-only, and features changed with it."""
    picture = np.random.default_rng(8).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    features = compute_image_features(picture)
    weights = np.random.default_rng(9).normal(size=N_NODE_FEATURES)
    before = features.nodes.scores(weights)
    picture[:] = 0
    assert_array_equal(features.nodes.scores(weights), before)


def test_pictures_share_the_vectors_of_edge_codes() -> None:
    """Each had its own 81 kB, which the budget of the features did not know of."""
    flat = np.full((8, 8, 3), 128, dtype=np.uint8)
    first, second = (compute_image_features(flat).edges for _ in range(2))
    assert first.horizontal_basis is second.horizontal_basis
    assert first.vertical_basis is second.vertical_basis
    assert not first.vertical_basis.flags.writeable
