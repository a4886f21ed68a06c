"""Layers keep what they are given; overlays show it."""

import gzip
import struct

import numpy as np

from webapp.segmentation import rendering


def unpack(content: bytes):
    raw = gzip.decompress(content)
    assert raw[:4] == b"BHL1"
    columns, rows, factor, flags = struct.unpack("<4I", raw[4:20])
    planes = np.frombuffer(raw, dtype=np.uint8, offset=20).reshape(3, rows, columns)
    steps = (planes[0].astype(np.uint16) << 8) | planes[1]
    levels = np.cumsum(steps, axis=1, dtype=np.uint16)
    return levels / 65535, planes[2], factor, flags


def test_layers_keep_sixteen_bits() -> None:
    rng = np.random.default_rng(0)
    marginals = rng.random((30, 40)).astype(np.float32)
    mask, truth = rng.random((2, 30, 40)) < 0.5
    levels, bits, factor, flags = unpack(rendering.pack_layers(marginals, mask, truth))
    assert np.abs(levels - marginals).max() <= 0.5 / 65535 + 1e-7
    assert np.array_equal(bits & 1, mask)
    assert np.array_equal(bits >> 1, truth)
    assert (factor, flags) == (1, 1)


def test_zero_and_one_survive_exactly() -> None:
    marginals = np.array([[0.0, 1.0, 0.0, 1.0]], dtype=np.float32)
    levels, *_ = unpack(rendering.pack_layers(marginals, marginals > 0.5, None))
    assert levels.tolist() == [[0.0, 1.0, 0.0, 1.0]]


def test_large_images_are_reduced_and_say_so(monkeypatch) -> None:
    monkeypatch.setattr(rendering, "MAX_VIEW_PIXELS", 100)
    marginals = np.full((31, 45), 0.25, dtype=np.float32)
    levels, _, factor, flags = unpack(rendering.pack_layers(marginals, marginals > 0.5, None))
    assert factor == 4
    assert levels.shape == (7, 11)
    assert flags == 0


def test_four_megapixels_are_not_reduced() -> None:
    assert rendering.view_factor(2464, 1632) == 1
    assert rendering.view_factor(8660, 5773) == 3


def test_the_outline_is_the_rim_inside() -> None:
    mask = np.zeros((7, 7), dtype=bool)
    mask[2:5, 2:5] = True
    rim = rendering.outline(mask)
    assert rim.sum() == 8
    assert not rim[3, 3]


def test_an_empty_and_a_full_mask_have_no_outline() -> None:
    assert not rendering.outline(np.zeros((4, 4), dtype=bool)).any()
    assert not rendering.outline(np.ones((4, 4), dtype=bool)).any()


def test_the_overlay_has_the_image_s_size_and_white_rim() -> None:
    mask = np.zeros((20, 30), dtype=bool)
    mask[5:15, 5:15] = True
    picture = rendering.overlay_picture(
        np.zeros((20, 30, 3), dtype=np.uint8), mask.astype(np.float32), mask
    )
    assert picture.size == (30, 20)
    assert picture.getpixel((5, 5)) == (255, 255, 255)


def test_masks_read_back(tmp_path) -> None:
    mask = np.random.default_rng(0).random((9, 11)) < 0.5
    path = tmp_path / "mask.png"
    path.write_bytes(rendering.mask_png(mask))
    assert np.array_equal(rendering.read_mask_png(path), mask)
