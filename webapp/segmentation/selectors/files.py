"""Stored files that an organisation's rows refer to."""

from collections.abc import Iterator

from webapp.segmentation.models import ImageFile, PredictedImage, Segmenter


def needed_contents(organisation_id: int) -> set[str]:
    """Return the digests of files that a set or a prediction of the organisation refers to."""
    results = PredictedImage.objects.filter(batch__organisation_id=organisation_id)
    files = ImageFile.objects.filter(image_set__organisation_id=organisation_id)
    return {
        *files.values_list("digest", flat=True),
        *results.values_list("image_digest", flat=True),
        *results.values_list("mask_digest", flat=True),
    }


def needed_weights(organisation_id: int) -> Iterator[str]:
    """Yield the first part of the names of models' files: weights and previews."""
    segmenters = Segmenter.objects.filter(organisation_id=organisation_id)
    return map(str, segmenters.values_list("pk", flat=True))


def needed_predictions(organisation_id: int) -> Iterator[str]:
    """Yield the names of files of predicted images, without suffix."""
    results = PredictedImage.objects.filter(batch__organisation_id=organisation_id)
    return map(str, results.values_list("pk", flat=True))
