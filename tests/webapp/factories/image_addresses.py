"""Every address of the image pages, with objects that exist."""

from django.urls import NoReverseMatch, reverse

from webapp.segmentation.models import ImageFile, ImageSet, PredictionBatch, Segmenter
from webapp.segmentation.urls import urlpatterns
from webapp.segmentation.views.predicted_images import FILES


def addresses_of_images(
    image_set: ImageSet, image: ImageFile, segmenter: Segmenter, batch: PredictionBatch
) -> dict[str, str]:
    """Return every address of the application with objects that exist."""
    segmenter.preview_path(0).write_bytes(b"png")
    row = batch.images.get(name="leaf_0.jpg")
    found = {}
    for pattern in urlpatterns:
        name = pattern.name
        for arguments in (
            [],
            [image_set.pk],
            [segmenter.pk] if "segmenter" in name else [batch.pk],
            [image_set.pk, image.pk],
            [segmenter.pk, 0],
            [batch.pk, row.pk],
            [batch.pk, "csv"],
        ):
            owner_fits = not arguments or (
                (arguments[0] == image_set.pk) == name.startswith(("image-", "paint"))
                and (arguments[0] == segmenter.pk) == name.startswith("segmenter")
            )
            if not owner_fits:
                continue
            try:
                found[name] = reverse(f"segmentation:{name}", args=arguments)
            except NoReverseMatch:
                continue
    for kind in FILES:
        key = f"predicted-image-file {kind}"
        found[key] = reverse("segmentation:predicted-image-file", args=[batch.pk, row.pk, kind])
    found.pop("predicted-image-file", None)
    missing = {p.name for p in urlpatterns} - set(found) - {"predicted-image-file"}
    assert not missing, f"no address tried for {missing}"
    return found
