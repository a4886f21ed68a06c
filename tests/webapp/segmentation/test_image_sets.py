"""Pages of image sets."""

import pytest

from tests.webapp.factories.images import block_mask, encoded, picture, upload, zipped
from tests.webapp.roles import Page
from webapp.audit.models import AuditLine
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.models import ImageFile, ImageSet, PredictedImage, PredictionBatch
from webapp.segmentation.services.image_sets import (
    image_file_remove,
    image_file_set_role,
    image_set_purge,
    mask_pair,
)
from webapp.segmentation.services.painting import stroke_add, stroke_undo
from webapp.segmentation.services.uploads import upload_take


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_list_counts_images_and_masks(client_of, alice, image_set) -> None:
    page = Page(client_of(alice).get("/image-sets/"))
    assert page.has("link", "Leaves")
    row = page.one("table", "Image sets").one("row", "Leaves")
    assert (row.cell("Images"), row.cell("With mask")) == ("3", "2")


def test_the_list_shows_nothing_of_others(client_of, mallory, image_set) -> None:
    assert "Leaves" not in Page(client_of(mallory).get("/image-sets/")).source


def test_staff_make_a_set(client_of, bob) -> None:
    answer = client_of(bob).post("/image-sets/new/", {"name": "Scans", "foreground": "leaf"})
    made = ImageSet.objects.get(name="Scans")
    assert answer.status_code == 302
    assert (made.organisation, made.created_by) == (bob.organisation, bob)


def test_a_set_needs_a_name(client_of, bob) -> None:
    assert client_of(bob).post("/image-sets/new/", {"name": " "}).status_code == 422
    assert not ImageSet.objects.exists()


def test_viewers_make_none(client_of, alice) -> None:
    assert client_of(alice).get("/image-sets/new/").status_code == 403
    assert client_of(alice).post("/image-sets/new/", {"name": "x"}).status_code == 403


@pytest.mark.parametrize(("show", "shown"), [("all", 3), ("with-mask", 2), ("without-mask", 1)])
def test_tabs_show_their_files(client_of, alice, image_set, show, shown) -> None:
    page = Page(client_of(alice).get(f"/image-sets/{image_set.pk}/?show={show}"))
    assert len([item for item in page.every("listitem") if item.has("img", "leaf")]) == shown


def test_a_search_stays_while_tabs_change_and_says_that_nothing_is_found(
    client_of, alice, image_set
) -> None:
    url = f"/image-sets/{image_set.pk}/?q=leaf_2&show=with-mask"
    page = Page(client_of(alice).get(url))
    assert page.one("region", "Files").says("No file here has “leaf_2” in its name.")
    assert page.one("link", "All").address == "?q=leaf_2&show=all"
    assert page.one("link", "Clear").address == "?show=with-mask"


def test_viewers_see_no_buttons_that_change(client_of, alice, image_set) -> None:
    page = Page(client_of(alice).get(f"/image-sets/{image_set.pk}/"))
    assert "data-upload" not in page.source
    assert "Remove" not in page.source


def test_unpaired_masks_can_be_paired_by_hand(client_of, bob, image_set) -> None:
    mask = image_set.files.get(name="leaf_1.mask.png")
    other = image_set.files.get(name="leaf_2.jpg")
    client = client_of(bob)
    client.post(f"/image-sets/{image_set.pk}/files/{mask.pk}/pair/", {"image": ""})
    mask.refresh_from_db()
    assert mask.mask_of is None
    page = Page(client.get(f"/image-sets/{image_set.pk}/?show=unpaired"))
    assert page.has("listitem", "leaf_1.mask.png")
    client.post(f"/image-sets/{image_set.pk}/files/{mask.pk}/pair/", {"image": str(other.pk)})
    mask.refresh_from_db()
    assert mask.mask_of == other


def test_of_several_images_that_of_the_name_is_offered_first(client_of, bob, image_set) -> None:
    """The first of the alphabet stood there, and one click paired the wrong two."""
    files = {f"{name}.{end}": encoded(picture(9), "PNG") for name in "az" for end in ("png", "bmp")}
    files["z_mask.png"] = encoded(block_mask(), "PNG")
    content = upload("more.zip", zipped(files))
    list(upload_take(user=bob, image_set=image_set, uploaded=content))
    page = Page(client_of(bob).get(f"/image-sets/{image_set.pk}/?show=unpaired"))
    (chosen,) = page.field("Image of z_mask.png").element.xpath("option[@selected]")
    assert chosen.text in ("z.png", "z.bmp")


def test_a_painted_image_is_called_painted(client_of, bob, image_set) -> None:
    """It read "No mask", as if what was drawn elsewhere had not come."""
    image = image_set.files.get(name="leaf_2.jpg")
    address = f"/image-sets/{image_set.pk}/"
    assert not Page(client_of(bob).get(address)).says("Painted")
    stroke = {"tool": "brush", "value": 1, "radius": 3, "points": [4, 4, 10, 9]}
    stroke_add(user=bob, file=image, stroke=stroke)
    assert Page(client_of(bob).get(address)).one("region", "Files").says("Painted")
    stroke_undo(user=bob, file=image)
    assert not Page(client_of(bob).get(address)).says("Painted")


def test_a_mask_of_another_shape_cannot_be_paired(bob, image_set, make_set) -> None:
    mask = image_set.files.get(name="leaf_1.mask.png")
    image = image_set.files.get(name="leaf_2.jpg")
    ImageFile.objects.filter(pk=image.pk).update(width=99)
    image.refresh_from_db()
    with pytest.raises(SegmentationError, match="99 × 24"):
        mask_pair(user=bob, mask=mask, image=image)
    mask.refresh_from_db()
    assert mask.mask_of.name == "leaf_1.jpg"


def test_a_mask_cannot_be_paired_across_sets(bob, image_set, make_set) -> None:
    other = make_set(bob, name="Other")
    with pytest.raises(SegmentationError, match="same set"):
        mask_pair(
            user=bob,
            mask=image_set.files.get(name="leaf_0.mask.png"),
            image=other.files.get(name="leaf_2.jpg"),
        )


def test_pairing_with_an_image_of_another_organisation_is_not_found(
    client_of, bob, mallory, image_set, make_set
) -> None:
    foreign = make_set(mallory, name="Foreign").files.get(name="leaf_2.jpg")
    mask = image_set.files.get(name="leaf_0.mask.png")
    answer = client_of(bob).post(
        f"/image-sets/{image_set.pk}/files/{mask.pk}/pair/", {"image": str(foreign.pk)}
    )
    assert answer.status_code == 404


def test_a_photograph_cannot_become_a_mask(bob, image) -> None:
    with pytest.raises(SegmentationError, match="does not look like a mask"):
        image_file_set_role(user=bob, file=image, role="mask")


def test_the_page_says_why_and_that_nothing_changed(client_of, bob, image_set, image) -> None:
    answer = client_of(bob).post(
        f"/image-sets/{image_set.pk}/files/{image.pk}/role/", {"role": "mask"}, follow=True
    )
    words = "leaf_0.jpg does not look like a mask. Nothing was changed."
    assert Page(answer).one("alert").says(words)


def test_pairing_with_what_is_no_key_is_not_found(client_of, bob, image_set) -> None:
    mask = image_set.files.get(name="leaf_0.mask.png")
    url = f"/image-sets/{image_set.pk}/files/{mask.pk}/pair/"
    assert client_of(bob).post(url, {"image": "leaf_2.jpg"}).status_code == 404


def test_a_mask_can_be_used_as_an_image(client_of, bob, image_set) -> None:
    mask = image_set.files.get(name="leaf_0.mask.png")
    client_of(bob).post(f"/image-sets/{image_set.pk}/files/{mask.pk}/role/", {"role": "image"})
    mask.refresh_from_db()
    assert (mask.role, mask.mask_of, mask.role_fixed) == ("image", None, True)


def removal_url(file: ImageFile) -> str:
    return f"/image-sets/{file.image_set_id}/files/{file.pk}/remove/"


def test_a_removal_is_asked_for_before_it_is_done(client_of, bob, image_set, image) -> None:
    client = client_of(bob)
    page = Page(client.get(f"/image-sets/{image_set.pk}/?show=with-mask"))
    assert all(form.address != removal_url(image) for form in page.every("form"))
    address = f"{removal_url(image)}?show=with-mask"
    (link,) = (one for one in page.every("link") if one.address == address)
    assert link.element.get("hx-get") == address
    question = Page(client.get(address))
    assert question.says("Remove its mask leaf_0.mask.png too")
    box = question.field("Remove its mask leaf_0.mask.png too")
    assert (box.element.get("name"), box.value) == ("with_mask", str(image.mask.pk))
    assert image_set.files.filter(pk=image.pk).exists()
    answer = client.post(removal_url(image), {"back": "show=with-mask&page=2&next=//evil"})
    assert answer["Location"] == f"/image-sets/{image_set.pk}/?show=with-mask&page=2"
    assert not image_set.files.filter(pk=image.pk).exists()
    assert image_set.files.filter(name="leaf_0.mask.png").exists()


def test_an_image_is_removed_with_its_mask_where_that_is_ticked(
    client_of, bob, image_set, image, media_root
) -> None:
    """A mask left behind may be taken for an image by its name."""
    client_of(bob).post(removal_url(image), {"with_mask": str(image.mask.pk)})
    assert sorted(image_set.files.values_list("name", flat=True)) == [
        "leaf_1.jpg", "leaf_1.mask.png", "leaf_2.jpg"
    ]  # fmt: skip
    removed = AuditLine.objects.filter(verb="removed a file from")
    assert {line.details["name"] for line in removed} == {"leaf_0.jpg", "leaf_0.mask.png"}


def test_no_other_mask_is_removed_than_the_one_named(client_of, bob, image_set, image) -> None:
    """The mask that was paired when the answer came used to go, whichever was asked about."""
    address, sent = removal_url(image), {"with_mask": str(image.mask.pk)}
    image.mask.delete()
    sentence = "The mask of leaf_0.jpg was changed meanwhile. Nothing was removed."
    assert Page(client_of(bob).post(address, sent, follow=True)).one("alert").says(sentence)
    image_set.files.filter(name="leaf_1.mask.png").update(mask_of=image)
    assert Page(client_of(bob).post(address, sent, follow=True)).one("alert").says(sentence)
    assert image_set.files.count() == 4


def test_the_question_says_that_a_painted_mask_has_no_copy(client_of, bob, image_set) -> None:
    image_set.files.filter(role="mask").update(origin=ImageFile.Origin.CORRECTED)
    mask = image_set.files.get(name="leaf_1.mask.png")
    dialog = Page(client_of(bob).get(removal_url(mask), headers={"HX-Request": "true"}))
    assert dialog.source.lstrip().startswith("<dialog")
    assert dialog.one("dialog", "Remove this mask").says("leaf_1.jpg is then without a mask")
    assert dialog.one("dialog", "Remove this mask").says("painted here")


def test_the_removal_of_a_set_counts_masks_without_an_image(client_of, bob, image_set) -> None:
    image_set.files.get(name="leaf_0.jpg").delete()
    page = Page(client_of(bob).get(f"/image-sets/{image_set.pk}/"))
    removal = page.one("dialog", "Remove this set")
    assert removal.says("This removes 2 images, 2 masks and everything predicted of them.")


def test_removing_an_image_leaves_its_mask_to_be_paired(bob, image_set, image, media_root) -> None:
    path = image.store.path(image.digest)
    image_file_remove(user=bob, file=image)
    assert not path.exists()
    mask = image_set.files.get(name="leaf_0.mask.png")
    assert mask.mask_of is None
    assert mask.problem == "No image is named leaf_0."


def test_equal_bytes_in_another_set_survive_a_removal(bob, image, make_set) -> None:
    twin = make_set(bob, name="Twin").files.get(name="leaf_0.jpg")
    image_file_remove(user=bob, file=image)
    assert twin.store.path(twin.digest).exists()


def test_a_purge_leaves_no_file_behind(bob, image_set, batch, media_root) -> None:
    image_set_purge(user=bob, image_set=image_set)
    left = [path for path in files_in(media_root) if "segmenters" not in str(path)]
    assert left == []
    assert not PredictionBatch.objects.exists()
    assert not PredictedImage.objects.exists()


def test_a_purge_wants_the_name(client_of, bob, image_set) -> None:
    client = client_of(bob)
    client.post(f"/image-sets/{image_set.pk}/purge/", {"confirm": "leaves"})
    assert ImageSet.objects.filter(pk=image_set.pk).exists()
    client.post(f"/image-sets/{image_set.pk}/purge/", {"confirm": "Leaves"})
    assert not ImageSet.objects.filter(pk=image_set.pk).exists()


def test_names_are_escaped(client_of, bob, make_set) -> None:
    image_set = make_set(bob, name="<script>alert(1)</script>")
    page = Page(client_of(bob).get(f"/image-sets/{image_set.pk}/"))
    assert page.has("heading", "<script>alert(1)</script>")
    assert "<script>alert" not in page.source


def test_the_newest_set_stands_first(client_of, alice, bob, make_set) -> None:
    """Counting made the query forget its order once."""
    for name in ("First", "Second", "Third"):
        make_set(bob, name=name, images=1, masks=0)
    page = Page(client_of(alice).get("/image-sets/"))
    assert page.text.index("Third") < page.text.index("Second") < page.text.index("First")
