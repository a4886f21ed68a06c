"""Masks find their images by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.segmentation.pairing import NO_MASK, PairingFile, pair_by_name


def file(key: int, name: str, *, size=(40, 30), mask_like=True, **fixed: object) -> PairingFile:
    return PairingFile(key=key, name=name, size=size, mask_like=mask_like, **fixed)


def test_the_mask_suffix_pairs() -> None:
    pairing = pair_by_name([file(1, "leaf.jpg"), file(2, "leaf.mask.png")])
    assert pairing.image_of == {2: 1}
    assert pairing.roles == {1: "image", 2: "mask"}


def test_a_png_beside_a_jpg_of_the_same_name_is_its_mask() -> None:
    assert pair_by_name([file(1, "horse.JPG"), file(2, "horse.png")]).image_of == {2: 1}


def test_a_photograph_saved_as_png_beside_a_jpg_stays_an_image() -> None:
    pairing = pair_by_name([file(1, "horse.jpg"), file(2, "horse.png", mask_like=False)])
    assert pairing.roles[2] == "image"
    assert not pairing.image_of


def test_a_lone_png_is_an_image() -> None:
    assert pair_by_name([file(1, "horse.png")]).roles == {1: "image"}


def test_case_of_names_does_not_matter() -> None:
    assert pair_by_name([file(1, "Leaf.JPG"), file(2, "leaf.MASK.png")]).image_of == {2: 1}


def test_another_size_is_a_problem_in_words() -> None:
    pairing = pair_by_name([file(1, "a.jpg"), file(2, "a.mask.png", size=(40, 40))])
    assert not pairing.image_of
    assert pairing.problems[2] == "The mask is 40 × 40 pixels, but a.jpg is 40 × 30."


def test_a_smaller_copy_of_the_frame_pairs() -> None:
    mask = file(2, "a.mask.png", size=(20, 15))
    assert pair_by_name([file(1, "a.jpg"), mask]).image_of == {2: 1}


def test_a_tiny_mask_fits_no_image() -> None:
    """One pixel more or less is most of its side; learning would refuse what was paired here."""
    tiny = file(2, "a.mask.png", size=(8, 6))
    pairing = pair_by_name([file(1, "a.jpg", size=(640, 480)), tiny])
    assert not pairing.image_of
    assert pairing.problems[2] == "The mask is 8 × 6 pixels, but a.jpg is 640 × 480."


def test_a_mask_without_image_is_told() -> None:
    assert pair_by_name([file(2, "a.mask.png")]).problems == {2: "No image is named a."}


def test_a_second_mask_of_one_image_is_told() -> None:
    pairing = pair_by_name([file(1, "a.jpg"), file(2, "a.mask.png"), file(3, "a_mask.png")])
    assert len(pairing.image_of) == 1
    assert "another mask" in next(iter(pairing.problems.values()))


def test_a_grey_photograph_named_like_a_mask_is_told() -> None:
    pairing = pair_by_name([file(1, "a.jpg"), file(2, "a.mask.png", mask_like=False)])
    assert pairing.problems == {2: NO_MASK}


def test_what_a_person_paired_stays() -> None:
    fixed = file(2, "x.mask.png", fixed=True, fixed_image=1, fixed_role="mask")
    pairing = pair_by_name([file(1, "a.jpg"), fixed, file(3, "a.mask.png")])
    assert pairing.image_of == {2: 1}
    assert 3 in pairing.problems


def test_what_a_person_unpaired_stays_unpaired() -> None:
    fixed = file(2, "a.mask.png", fixed=True)
    assert not pair_by_name([file(1, "a.jpg"), fixed]).image_of


@pytest.mark.parametrize(
    ("changed", "problem"),
    [({"size": (40, 40)}, "The mask is 40 × 40"), ({"mask_like": False}, str(NO_MASK))],
)
def test_what_a_person_paired_ends_when_the_two_no_longer_fit(changed, problem) -> None:
    fixed = file(2, "x.mask.png", fixed=True, fixed_image=1, fixed_role="mask", **changed)
    pairing = pair_by_name([file(1, "a.jpg"), fixed, file(3, "a.mask.png")])
    assert pairing.image_of == {3: 1}
    assert pairing.problems[2].startswith(problem)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "A", "a.mask", "b_mask", "b-mask"]),
            st.sampled_from([".jpg", ".png", ".tif"]),
            st.booleans(),
        ),
        unique_by=lambda t: t[:2],
        max_size=10,
    )
)
def test_no_image_has_two_masks_and_no_mask_two_images(names) -> None:
    files = [file(k, stem + end, mask_like=like) for k, (stem, end, like) in enumerate(names)]
    pairing = pair_by_name(files)
    assert len(set(pairing.image_of.values())) == len(pairing.image_of)
    for mask, image in pairing.image_of.items():
        assert pairing.roles[mask] == "mask"
        assert pairing.roles[image] == "image"
    masks = {key for key, role in pairing.roles.items() if role == "mask"}
    assert masks == set(pairing.image_of) | set(pairing.problems)


def test_a_name_with_accents_is_one_on_all_systems() -> None:
    """macOS writes them as two signs: masks made elsewhere found no image."""
    pairing = pair_by_name([file(1, "Gro\u0308ße.png"), file(2, "Größe_mask.png")])
    assert pairing.image_of == {2: 1}


@pytest.mark.parametrize(
    ("image", "mask"),
    [
        ("a.png", "a_cp_masks.tif"),
        ("a.png", "a_Simple Segmentation.png"),
        ("a.png", "a_groundtruth.png"),
        ("a.png", "mask_a.png"),
        ("a.png", "Mask of a.tif"),
        ("image_1.png", "mask_1.png"),
        ("img_001.tif", "label_001.tif"),
        ("a_0000.png", "a.mask.png"),
    ],
)
def test_names_of_other_programs_pair(image: str, mask: str) -> None:
    """Cellpose's masks found no image, and those of ilastik and ImageJ were images themselves."""
    assert pair_by_name([file(1, image), file(2, mask)]).image_of == {2: 1}


def test_a_picture_may_be_called_as_a_mask() -> None:
    pairing = pair_by_name([file(1, "mask_1.png"), file(2, "mask_2.png"), file(3, "seg_3.png")])
    assert set(pairing.roles.values()) == {"image"}
    photograph = file(2, "mask_a.png", mask_like=False)
    assert pair_by_name([file(1, "a.png"), photograph]).roles[2] == "image"


def test_small_and_capital_letters_tell_two_images_apart() -> None:
    """The mask of the second went to the first."""
    files = [file(1, "A.png"), file(2, "a.png"), file(3, "a_mask.png")]
    assert pair_by_name(files).image_of == {3: 2}


def test_a_mask_of_two_images_of_one_name_is_told() -> None:
    """It went to whichever came first in the alphabet, without a word."""
    files = [file(1, "a.png"), file(2, "a.tif"), file(3, "a_mask.png")]
    pairing = pair_by_name(files)
    assert not pairing.image_of
    assert pairing.problems[3] == "2 images have this name, a.png for one; pair it by hand."
    files[2] = file(3, "a_mask.png", fixed_image=2)
    assert pair_by_name(files).image_of == {3: 2}


def test_why_a_file_is_no_mask_is_said() -> None:
    pairing = pair_by_name([file(1, "a.jpg"), file(2, "a_seg.png", mask_like=False, not_mask="B.")])
    assert pairing.problems == {2: "B."}
