"""Corrections of objects: each act against pixel sets, undo by enumeration, other segmentations."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.draw import disk
from skimage.measure import label

from engine.metrics import (
    EditRefusedError,
    ObjectEdit,
    ObjectEditor,
    ObjectShape,
    apply_edits,
    separate_objects,
)

ONE, TWO, APART, LARGE = (20, 20), (20, 37), (20, 70), (55, 30)


def picture() -> np.ndarray:
    """Two touching discs, one alone, and a large one, numbered from 1."""
    numbers = np.zeros((80, 100), dtype=np.int32)
    for number, (centre, radius) in enumerate(
        [(ONE, 9), (TWO, 9), (APART, 8), (LARGE, 14)], start=1
    ):
        numbers[disk(centre, radius, shape=numbers.shape)] = number
    return numbers


def editor(numbers: np.ndarray | None = None, min_pixels: int = 5) -> ObjectEditor:
    numbers = picture() if numbers is None else numbers
    return ObjectEditor(numbers, dict.fromkeys(range(1, 5), 1), min_pixels=min_pixels)


def at(centre: tuple[int, int]) -> tuple[float, float]:
    return centre[1] + 0.5, centre[0] + 0.5


def square(top: int, left: int, side: int) -> list[tuple[float, float]]:
    right, bottom = left + side, top + side
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def across(centre: tuple[int, int], reach: int = 20) -> list[tuple[float, float]]:
    """A vertical line through a disc."""
    return [(centre[1] + 0.5, centre[0] - reach), (centre[1] + 0.5, centre[0] + reach)]


ACTS = {
    "delete": ("delete", [at(APART)], {}),
    "merge": ("merge", [at(ONE), at(TWO)], {}),
    "split": ("split", [at(LARGE)], {"points": across(LARGE)}),
    "border": ("border", [at(ONE)], {"points": square(5, 5, 20)}),
    "new": ("border", [], {"points": square(60, 70, 12), "value": 1}),
    "number": ("number", [at(LARGE)], {"number": 2}),
    "class": ("class", [at(TWO)], {"value": 7}),
    "all": ("number all", [], {"order": "size"}),
}


def made(own: ObjectEditor, name: str) -> ObjectEdit:
    kind, places, options = ACTS[name]
    return own.record(kind, places, **options)


def is_whole(own: ObjectEditor) -> None:
    """Every object is one piece, has a class and the window that the editor keeps for it."""
    present = set(np.unique(own.numbers).tolist()) - {0}
    assert present == set(own.classes)
    fresh = ObjectEditor(own.numbers, own.classes)
    for number in present:
        assert label(own.numbers == number, connectivity=2).max() == 1
        one, two = own.shape_of(number), fresh.shape_of(number)
        assert (one.top, one.left) == (two.top, two.left)
        assert np.array_equal(one.mask, two.mask)


def test_delete_takes_these_pixels_and_no_others() -> None:
    own = editor()
    assert own.apply(own.record("delete", [at(APART), at(ONE)])) == {1, 3}
    expected = picture()
    expected[np.isin(expected, (1, 3))] = 0
    assert np.array_equal(own.numbers, expected)
    is_whole(own)


def test_merge_keeps_the_first_number_and_only_joins_what_touches() -> None:
    own = editor()
    assert own.apply(own.record("merge", [at(TWO), at(ONE)])) == {1, 2}
    expected = picture()
    expected[expected == 1] = 2
    assert np.array_equal(own.numbers, expected)
    with pytest.raises(EditRefusedError, match="Objects 2 and 3 do not touch"):
        own.apply(own.record("merge", [at(TWO), at(APART)]))
    assert np.array_equal(own.numbers, expected)


def test_split_gives_both_sides_of_the_line_all_pixels() -> None:
    own = editor()
    before = picture() == 4
    assert own.apply(own.record("split", points=across(LARGE))) == {4, 5}
    assert np.array_equal(np.isin(own.numbers, (4, 5)), before)
    columns = np.nonzero(own.numbers == 4)[1], np.nonzero(own.numbers == 5)[1]
    left, right = sorted(columns, key=lambda one: one.min())
    assert left.max() <= LARGE[1] + 1
    assert right.min() >= LARGE[1]
    is_whole(own)


def test_split_needs_a_line_from_side_to_side() -> None:
    own = editor()
    short = [(LARGE[1], LARGE[0] - 20), (LARGE[1], LARGE[0])]
    with pytest.raises(EditRefusedError, match="from side to side"):
        own.apply(own.record("split", points=short))
    grazing = [(LARGE[1] - 10.0, 0.0), (LARGE[1] - 10.0, 80.0)]
    strict = editor(min_pixels=60)
    act = strict.record("split", [at(LARGE)], points=grazing)
    with pytest.raises(EditRefusedError, match="fewer than 60 pixels"):
        strict.apply(act)
    assert np.array_equal(own.numbers, picture())


@pytest.mark.parametrize("slope", range(-12, 13, 3))
def test_a_diagonal_line_leaves_no_path_between_the_sides(slope: int) -> None:
    own = editor()
    line = [(LARGE[1] - slope, LARGE[0] - 20), (LARGE[1] + slope, LARGE[0] + 20)]
    own.apply(own.record("split", points=line))
    assert len(own.classes) == 5
    is_whole(own)


def test_a_border_replaces_the_object_and_wins_over_neighbours() -> None:
    own = editor()
    changed = own.apply(own.record("border", [at(ONE)], points=square(8, 10, 24)))
    expected = np.zeros((80, 100), dtype=bool)
    expected[8:32, 10:34] = True
    assert np.array_equal(own.numbers == 1, expected)
    assert changed == {1, 2}
    assert np.array_equal(own.numbers == 2, (picture() == 2) & ~expected)
    is_whole(own)


def test_a_border_through_a_neighbour_leaves_objects_in_one_piece() -> None:
    own = editor()
    own.apply(
        own.record("border", [at(TWO)], points=[(25, 52), (50, 52), (50, 58), (0, 58), (0, 52)])
    )
    assert len(own.classes) == 5
    is_whole(own)


def test_a_new_border_takes_free_pixels_only() -> None:
    own = editor()
    before = picture()
    own.apply(own.record("border", points=square(20, 76, 20), value=3))
    assert own.classes[5] == 3
    assert np.array_equal(own.numbers[before > 0], before[before > 0])
    with pytest.raises(EditRefusedError, match="around other objects"):
        own.apply(own.record("border", points=square(50, 25, 8), value=1))
    with pytest.raises(EditRefusedError, match="fewer than 5 pixels"):
        own.apply(own.record("border", points=square(0, 0, 2), value=1))
    is_whole(own)


def test_numbers_swap_and_all_are_numbered_in_order() -> None:
    own = editor()
    own.apply(own.record("number", [at(LARGE)], number=1))
    assert own.number_at(*at(LARGE)) == 1
    assert own.number_at(*at(ONE)) == 4
    own.apply(own.record("number", [at(TWO)], number=900))
    own.apply(own.record("number all", order="rows"))
    found = [own.number_at(*at(centre)) for centre in (ONE, TWO, APART, LARGE)]
    assert found == [1, 2, 3, 4]
    own.apply(own.record("number all", order="size"))
    assert own.number_at(*at(LARGE)) == 1
    is_whole(own)


@pytest.mark.parametrize("order", list(permutations(ACTS, 3)))
def test_every_act_undone_gives_the_labels_without_it(order: tuple[str, ...]) -> None:
    """All ordered triples of acts, each undone alone: the others applied as if it never was."""
    own, acts = editor(), []
    for name in order:
        try:
            act = made(own, name)
            own.apply(act)
            acts.append(act)
        except EditRefusedError:
            continue
        is_whole(own)
    again = editor()
    assert apply_edits(again, acts) == [""] * len(acts)
    assert np.array_equal(again.numbers, own.numbers)
    assert again.classes == own.classes
    for undone in acts:
        rest = [act for act in acts if act is not undone]
        kept = editor()
        problems = apply_edits(kept, rest)
        is_whole(kept)
        applied = [act for act, problem in zip(rest, problems, strict=True) if not problem]
        alone = editor()
        assert apply_edits(alone, applied) == [""] * len(applied)
        assert np.array_equal(alone.numbers, kept.numbers)
    assert apply_edits(editor(), []) == []
    bare = editor()
    assert np.array_equal(bare.numbers, picture())


@pytest.mark.parametrize("names", list(combinations(("delete", "split", "new", "class"), 2)))
def test_acts_on_different_objects_commute(names: tuple[str, str]) -> None:
    found = []
    for order in (names, names[::-1]):
        own = editor()
        acts = [made(editor(), name) for name in order]
        assert apply_edits(own, acts) == ["", ""]
        found.append(own.numbers > 0)
    assert np.array_equal(*found)


def test_acts_are_stored_and_read_again() -> None:
    for name in ACTS:
        own, other = editor(), editor()
        act = made(own, name)
        read = ObjectEdit.from_json(act.kind, act.as_json())
        own.apply(act)
        other.apply(read)
        assert np.array_equal(own.numbers, other.numbers)
        assert own.classes == other.classes


def test_an_act_that_was_stored_with_an_order_it_does_not_need_is_read() -> None:
    act = made(editor(), "delete")
    read = ObjectEdit.from_json(act.kind, act.as_json() | {"order": "mood"})
    assert read.order == ""


def test_acts_survive_another_segmentation_of_the_same_objects() -> None:
    acts = [made(editor(), name) for name in ("delete", "split", "border", "new")]
    shifted = np.zeros((80, 100), dtype=np.int32)
    for number, (centre, radius) in enumerate(
        [(ONE, 8), (TWO, 9), (APART, 9), (LARGE, 13)], start=1
    ):
        shifted[disk((centre[0] + 1, centre[1]), radius, shape=shifted.shape)] = 5 - number
    own = ObjectEditor(shifted, dict.fromkeys(range(1, 5), 1), min_pixels=5)
    assert apply_edits(own, acts) == [""] * 4
    assert own.numbers[APART] == 0
    assert len({own.number_at(40, 55), own.number_at(20, 55)}) == 2
    assert (own.numbers[60:72, 70:82] > 0).all()
    is_whole(own)


def test_acts_that_are_fulfilled_already_change_nothing() -> None:
    acts = [made(editor(), name) for name in ("delete", "merge", "split")]
    done = editor()
    apply_edits(done, acts)
    own = ObjectEditor(done.numbers, done.classes, min_pixels=5)
    assert apply_edits(own, acts) == ["", "", ""]
    assert np.array_equal(own.numbers, done.numbers)


def test_acts_that_contradict_another_segmentation_say_so_and_change_nothing() -> None:
    acts = [
        made(editor(), name) for name in ("delete", "merge", "split", "border", "number", "class")
    ]
    one = np.ones((80, 100), dtype=np.int32)
    own = ObjectEditor(one, {1: 1}, min_pixels=5)
    problems = apply_edits(own, acts)
    assert np.array_equal(own.numbers, one)
    for act, problem in zip(acts, problems, strict=True):
        assert ("another one here" in problem) or ("others here" in problem), act.kind
    small = ObjectEditor(np.zeros((10, 10), dtype=np.int32), {})
    assert all(apply_edits(small, [act])[0] for act in acts[1:])


@pytest.mark.parametrize(
    ("kind", "places", "options", "sentence"),
    [
        ("paint", [], {}, "one of"),
        ("delete", [], {}, "an object first"),
        ("delete", [(0.0, 0.0)], {}, "no object at this place"),
        ("delete", [(-3.0, 999.0)], {}, "no object at this place"),
        ("delete", [(float("nan"), 1.0)], {}, "finite"),
        ("merge", [at(ONE)], {}, "two objects"),
        ("merge", [at(ONE), at(ONE)], {}, "two objects"),
        ("split", [], {"points": [(1.0, 1.0)]}, "two points"),
        ("split", [], {"points": [(0.0, 0.0), (2.0, 0.0)]}, "crosses no object"),
        ("border", [at(ONE)], {"points": [(1.0, 1.0), (2.0, 2.0)]}, "three corners"),
        ("border", [], {"points": [(1.0, 1.0)] * 4001}, "at most"),
        ("number", [at(ONE)], {"number": 0}, "1 to"),
        ("number", [at(ONE)], {"number": 10**7}, "1 to"),
        ("number all", [], {"order": "mood"}, "rows or size"),
        ("delete", [at(ONE)], {"order": "mood"}, "order: expected one of"),
        ("number", [at(ONE)], {"number": "2"}, "number: expected a whole number"),
        ("class", [at(ONE)], {"value": -1}, "value: expected a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused(kind, places, options, sentence) -> None:
    with pytest.raises(EditRefusedError, match=sentence):
        editor().record(kind, places, **options)


def test_a_border_outside_of_the_picture_is_refused() -> None:
    own = editor()
    with pytest.raises(EditRefusedError, match="no pixel"):
        own.apply(own.record("border", points=square(-50, -50, 20), value=1))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 30))
def test_random_acts_keep_every_object_whole(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    base = np.zeros((60, 60), dtype=np.int32)
    for _ in range(8):
        base[disk(rng.uniform(0, 60, 2), rng.uniform(4, 10), shape=base.shape)] = 1
    base = separate_objects(base > 0, splits=0.5)
    classes = dict.fromkeys(np.unique(base[base > 0]).tolist(), 1)
    own, acts = ObjectEditor(base, classes, min_pixels=3), []
    for _ in range(count):
        kind = rng.choice(["delete", "merge", "split", "border", "number", "number all"])
        places = [tuple(rng.uniform(0, 60, 2)) for _ in range(2 if kind == "merge" else 1)]
        places = [] if kind == "number all" or rng.random() < 0.3 else places
        points = [tuple(one) for one in rng.uniform(-5, 65, (rng.integers(2, 6), 2))]
        try:
            act = own.record(
                kind, places, points=points, number=int(rng.integers(1, 12)), value=1, order="rows"
            )
            own.apply(act)
        except EditRefusedError:
            continue
        acts.append(act)
        is_whole(own)
    again = ObjectEditor(base, classes, min_pixels=3)
    assert apply_edits(again, acts) == [""] * len(acts)
    assert np.array_equal(again.numbers, own.numbers)


def test_a_shape_keeps_its_pixels() -> None:
    rng = np.random.default_rng(0)
    for rows, columns in ((1, 1), (3, 7), (40, 9)):
        mask = rng.random((rows, columns)) < 0.5
        read = ObjectShape.from_json(ObjectShape(5, 6, mask).as_json())
        assert (read.top, read.left) == (5, 6)
        assert np.array_equal(read.mask, mask)
