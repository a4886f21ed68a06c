"""Models of segmentation: image sets with their files, learned models, predictions."""

from webapp.segmentation.models.correction import ObjectCorrection
from webapp.segmentation.models.image_set import ImageFile, ImageSet
from webapp.segmentation.models.painting import Stroke
from webapp.segmentation.models.prediction import PredictedImage, PredictionBatch
from webapp.segmentation.models.segmenter import HeldOutPoint, Segmenter

__all__ = [
    "HeldOutPoint",
    "ImageFile",
    "ImageSet",
    "ObjectCorrection",
    "PredictedImage",
    "PredictionBatch",
    "Segmenter",
    "Stroke",
]
