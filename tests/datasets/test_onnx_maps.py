"""Maps of pictures by the network of an ONNX file, or one sentence that says what is wrong."""

import builtins
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engine.core.errors import InvalidProblemError
from engine.crf.picture_windows import ArraySource
from engine.datasets import onnx_maps
from engine.datasets.onnx_maps import HOW_TO_GET, open_onnx, open_onnx_maps

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
helper, FLOAT, BYTES = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.UINT8


def save(
    path: Path, nodes: Any, shape: Sequence[Any], *, kind: int = FLOAT, out: Any = None
) -> Path:
    """Write a network from "picture" to "maps"."""
    inputs = [helper.make_tensor_value_info("picture", kind, list(shape))]
    outputs = [helper.make_tensor_value_info("maps", FLOAT, out)]
    graph = helper.make_graph(nodes, "small", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    path.write_bytes(model.SerializeToString())
    return path


def weights(values: Any, name: str = "w") -> Any:
    tensor = onnx.numpy_helper.from_array(np.asarray(values, np.float32), name)
    return helper.make_node("Constant", [], [name], value=tensor)


def red(path: Path, shape: Sequence[Any] = (1, 3, "h", "w"), *, end: str = "Identity") -> Path:
    """A network of one plane: the mean of red over 3 x 3 pixels."""
    kernel = np.zeros((1, 3, 3, 3))
    kernel[0, 0] = 1 / 9
    conv = helper.make_node("Conv", ["picture", "w"], ["c"], pads=[1, 1, 1, 1])
    return save(path, [weights(kernel), conv, helper.make_node(end, ["c"], ["maps"])], shape)


def two_scores(path: Path) -> Path:
    """A network of two planes of scores: 0, and 8 times red less 4."""
    kernel = np.zeros((2, 3, 1, 1))
    kernel[1, 0] = 8.0
    conv = helper.make_node("Conv", ["picture", "w", "b"], ["maps"])
    return save(path, [weights(kernel), weights([0.0, -4.0], "b"), conv], (1, 3, "h", "w"))


def image(rows: int = 20, columns: int = 30) -> Any:
    return np.random.default_rng(0).integers(0, 256, (rows, columns, 3), dtype=np.uint8)


def mean_red(picture: Any) -> Any:
    """The mean of red over 3 x 3 pixels, without the border."""
    red = picture[:, :, 0] / 255
    rows, columns = red.shape
    parts = [red[i : rows - 2 + i, j : columns - 2 + j] for i in range(3) for j in range(3)]
    return np.mean(parts, axis=0)


def test_maps_are_those_of_the_network_at_the_size_of_the_picture(tmp_path: Path) -> None:
    picture = image()
    found = open_onnx(red(tmp_path / "red.onnx")).maps(picture)
    assert found.shape == (20, 30, 1)
    assert_allclose(found[1:-1, 1:-1, 0], mean_red(picture), atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (33, 7)])
def test_pictures_of_any_size_are_processed(shape: tuple[int, int], tmp_path: Path) -> None:
    assert open_onnx(red(tmp_path / "red.onnx")).maps(image(*shape)).shape == (*shape, 1)


def test_tiles_give_the_maps_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network, picture = open_onnx(red(tmp_path / "red.onnx")), image(150, 210)
    whole = network.maps(picture)
    monkeypatch.setattr(onnx_maps, "CORE", 40)
    monkeypatch.setattr(onnx_maps, "MARGIN", 8)
    assert_allclose(network.maps(picture), whole, atol=1e-6)
    maps = open_onnx_maps(network, ArraySource(picture))
    assert (maps.shape, maps.n_planes) == ((150, 210), 1)
    assert_allclose(maps.read(33, 100, 60, 71), whole[33:93, 100:171], atol=1e-6)


def test_scores_become_probabilities_only_where_that_is_chosen(tmp_path: Path) -> None:
    path, picture = two_scores(tmp_path / "scores.onnx"), image()
    expected = 1 / (1 + np.exp(-(8 * (picture[:, :, 0] / 255) - 4)))
    found = open_onnx(path, scores="softmax").maps(picture)
    assert_allclose(found.sum(axis=2), 1, atol=1e-6)
    assert_allclose(found[:, :, 1], expected, atol=1e-5)
    found = open_onnx(path, scores="sigmoid").maps(picture)
    assert_allclose(found[:, :, 0], 0.5)
    assert_allclose(found[:, :, 1], expected, atol=1e-5)
    with pytest.raises(InvalidProblemError, match=r"no probabilities.*--maps-scores"):
        open_onnx(path).maps(picture)


def test_values_of_the_picture_are_those_chosen(tmp_path: Path) -> None:
    picture = np.full((32, 32, 3), 124, np.uint8)
    path = red(tmp_path / "red.onnx", end="Sigmoid")
    for values, number in (("unit", 124 / 255), ("byte", 124.0), ("imagenet", 0.00557)):
        found = open_onnx(path, values=values).maps(picture)[16, 16, 0]
        assert_allclose(found, 1 / (1 + np.exp(-number)), atol=1e-4)


def test_channels_last_bytes_and_grey_pictures_are_taken(tmp_path: Path) -> None:
    cast = helper.make_node("Cast", ["picture"], ["f"], to=FLOAT)
    nodes = [cast, weights([255.0]), helper.make_node("Div", ["f", "w"], ["maps"])]
    path = save(tmp_path / "last.onnx", nodes, (1, "h", "w", 3), kind=BYTES)
    assert_allclose(open_onnx(path).maps(image()), image() / 255, atol=1e-6)
    path = save(
        tmp_path / "grey.onnx",
        [helper.make_node("Identity", ["picture"], ["maps"])],
        (1, 1, None, None),
    )
    grey = np.repeat(image()[:, :, :1], 3, axis=2)
    assert_allclose(open_onnx(path).maps(grey)[:, :, 0], grey[:, :, 0] / 255, atol=1e-6)


def test_a_network_of_a_fixed_size_sees_the_whole_picture(tmp_path: Path) -> None:
    network = open_onnx(red(tmp_path / "fixed.onnx", (1, 3, 32, 32)))
    picture = np.zeros((64, 128, 3), np.uint8)
    picture[:, 64:, 0] = 255
    found = network.maps(picture)
    assert found.shape == (16, 32, 1)
    assert found[8, 24, 0] > 0.99 > 0.01 > found[8, 8, 0]
    with pytest.raises(InvalidProblemError, match="32 x 32 pixels only"):
        open_onnx_maps(network, ArraySource(picture))


def test_maps_at_half_size_are_enlarged(tmp_path: Path) -> None:
    pool = helper.make_node(
        "AveragePool", ["picture"], ["maps"], kernel_shape=[2, 2], strides=[2, 2]
    )
    path = save(tmp_path / "half.onnx", [pool], (1, 3, "h", "w"))
    assert open_onnx(path).maps(image(64, 96)).shape == (64, 96, 3)


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ((1, 4, "h", "w"), "1 or 3 channels, and the network takes shape (1, 4, any, any)"),
        ((2, 3, "h", "w"), "of shape (1, channels, height, width)"),
        ((3, "h", "w"), "of shape (1, channels, height, width)"),
        ((1, 3, 32, "w"), "both fixed or both any"),
    ],
)
def test_other_shapes_are_refused_in_one_sentence(
    shape: Sequence[Any], sentence: str, tmp_path: Path
) -> None:
    nodes = [helper.make_node("Identity", ["picture"], ["maps"])]
    with pytest.raises(InvalidProblemError) as caught:
        open_onnx(save(tmp_path / "other.onnx", nodes, shape))
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("other.onnx: ")


def test_a_network_of_two_inputs_is_refused(tmp_path: Path) -> None:
    infos = [helper.make_tensor_value_info(name, FLOAT, [1, 3, "h", "w"]) for name in "ab"]
    out = [helper.make_tensor_value_info("maps", FLOAT, None)]
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["maps"])], "two", infos, out)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "two.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(InvalidProblemError, match="one input, a picture; it has 2"):
        open_onnx(tmp_path / "two.onnx")


def test_outputs_that_are_no_maps_are_refused(tmp_path: Path) -> None:
    mean = helper.make_node("GlobalAveragePool", ["picture"], ["p"])
    flat = save(
        tmp_path / "label.onnx",
        [mean, helper.make_node("Flatten", ["p"], ["maps"])],
        (1, 3, "h", "w"),
    )
    with pytest.raises(InvalidProblemError, match=r"expected maps of one picture.*\(1, 3\)"):
        open_onnx(flat).maps(image())
    many = [weights(np.ones((33, 3, 1, 1))), helper.make_node("Conv", ["picture", "w"], ["maps"])]
    with pytest.raises(InvalidProblemError, match=r"at most 32 planes are taken, .* gives 33"):
        open_onnx(save(tmp_path / "many.onnx", many, (1, 3, "h", "w"))).maps(image())
    log = [
        helper.make_node("Sub", ["picture", "picture"], ["z"]),
        helper.make_node("Log", ["z"], ["maps"]),
    ]
    with pytest.raises(InvalidProblemError, match="are no numbers"):
        open_onnx(save(tmp_path / "log.onnx", log, (1, 3, "h", "w"))).maps(image())


@pytest.mark.parametrize("content", [b"", b"not a network", b"\x08\x09" * 40])
def test_a_file_that_is_no_network_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(content)
    with pytest.raises(InvalidProblemError, match=r"^bad\.onnx is no ONNX file"):
        open_onnx(tmp_path / "bad.onnx")
    with pytest.raises(InvalidProblemError, match="there is no such file"):
        open_onnx(tmp_path / "absent.onnx")


def test_weights_in_another_file_are_never_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(np.ones(9, np.float32).tobytes())
    path = red(tmp_path / "red.onnx")
    model = onnx.load(str(path))
    tensor = onnx.numpy_helper.from_array(np.ones((1, 1, 3, 3), np.float32), "w")
    del model.graph.node[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "secret.bin"), ("offset", "0"), ("length", "36")):
        tensor.external_data.add(key=key, value=value)
    model.graph.initializer.append(tensor)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InvalidProblemError, match="no ONNX file that can be read"):
        open_onnx(path)


def test_without_onnxruntime_one_sentence_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = red(tmp_path / "red.onnx"), builtins.__import__

    def absent(name: str, *args: Any, **options: Any) -> Any:
        if name == "onnxruntime":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(InvalidProblemError) as caught:
        open_onnx(path)
    assert str(caught.value) == HOW_TO_GET
