"""Images, sets, models and predictions, made through the services that pages use."""

import io
import zipfile
from collections.abc import Callable, Sequence

import numpy as np
from django.conf import LazySettings
from django.core.files.uploadedfile import SimpleUploadedFile
from PIL import Image
from skimage.draw import disk

from engine.learning.segmentation.model import N_PARAMETERS, Detail, make_segmentation_model
from webapp.accounts.models import User
from webapp.files import store
from webapp.jobs.claims import job_claim
from webapp.jobs.models import Job, JobState
from webapp.segmentation.measuring import object_options
from webapp.segmentation.models import ImageSet, PredictionBatch, Segmenter
from webapp.segmentation.rendering import mask_png
from webapp.segmentation.services.image_sets import image_set_create, pairing_refresh
from webapp.segmentation.services.object_corrections import objects_write
from webapp.segmentation.services.predictions import predict_image, prediction_start
from webapp.segmentation.services.uploads import image_file_add


def picture(seed: int = 0, size: tuple[int, int] = (36, 24)) -> np.ndarray:
    """Noise with a bright block, shape (height, width, 3); size is (width, height)."""
    rng = np.random.default_rng(seed)
    width, height = size
    pixels = rng.integers(0, 90, (height, width, 3), dtype=np.uint8)
    pixels[height // 4 : height // 2, width // 4 : width // 2] += 120
    return pixels


def block_mask(size: tuple[int, int] = (36, 24)) -> np.ndarray:
    """The mask of the block of ``picture``."""
    width, height = size
    mask = np.zeros((height, width), dtype=np.uint8)
    mask[height // 4 : height // 2, width // 4 : width // 2] = 255
    return mask


def encoded(pixels: np.ndarray, kind: str = "JPEG", **options: object) -> bytes:
    """A picture in some format."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    """A ZIP of these files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def upload(name: str, content: bytes) -> SimpleUploadedFile:
    """An uploaded file, as a browser sends it."""
    return SimpleUploadedFile(name, content)


MakeSet = Callable[..., ImageSet]


def make_image_set(
    user: User,
    *,
    images: int = 3,
    masks: int = 2,
    name: str = "Leaves",
    size: tuple[int, int] = (36, 24),
) -> ImageSet:
    """Make a set of some images, the first few of them with masks."""
    image_set = image_set_create(user=user, name=name, foreground="leaf")
    for k in range(images):
        content = encoded(picture(k, size))
        image_file_add(user=user, image_set=image_set, name=f"leaf_{k}.jpg", chunks=[content])
        if k < masks:
            mask = encoded(block_mask(size), "PNG")
            image_file_add(user=user, image_set=image_set, name=f"leaf_{k}.mask.png", chunks=[mask])
    pairing_refresh(image_set=image_set)
    return image_set


def make_segmenter(user: User, name: str = "Leaf model", seed: int = 0) -> Segmenter:
    """A model that is learned: its weights are noise, its file is real."""
    segmenter = Segmenter.objects.create(
        organisation=user.organisation, created_by=user, name=name, foreground="leaf"
    )
    theta = np.random.default_rng(seed).normal(0, 0.2, N_PARAMETERS)
    make_segmentation_model(theta, ridge=1.0, rho=0.5, detail=Detail(40)).save(segmenter.path)
    segmenter.outcome = {
        "relative_gap": 9e-4,
        "converged": True,
        "status": "converged",
        "seconds": 2.0,
        "log_likelihood": -12.0,
        "objective": -11.99,
        "iterations": 8,
    }
    segmenter.job = Job.objects.create(
        organisation=user.organisation,
        created_by=user,
        kind="segmentation.learn",
        title=f"Learn: {name}",
        state=JobState.SUCCEEDED,
        seed=1,
        code_version="test",
    )
    segmenter.save()
    return segmenter


def make_batch(user: User, segmenter: Segmenter, image_set: ImageSet) -> PredictionBatch:
    """A finished prediction, computed in place."""
    from engine import load_segmentation_model

    batch = prediction_start(user=user, segmenter=segmenter, image_set=image_set)
    model = load_segmentation_model(segmenter.path)
    job = job_claim(job_id=batch.job_id)
    for row in batch.images.select_related("batch"):
        predict_image(model=model, row=row, job=job)
    Job.objects.filter(pk=batch.job_id).update(state=JobState.SUCCEEDED, sentence="Done")
    batch.refresh_from_db()
    return batch


DISCS = ((30, 30), (30, 49), (0, 80), (50, 80))
"""Row and column of the middles of discs of radius 10: the first two touch."""


def put_discs(batch: PredictionBatch, centres: Sequence[tuple[int, int]] = DISCS) -> None:
    """Put discs in place of the noise that was predicted, on pictures of 96 by 64 pixels."""
    mask = np.zeros((64, 96), dtype=bool)
    for centre in centres:
        mask[disk(centre, 10, shape=mask.shape)] = True
    for row in batch.images.all():
        row.batch = batch
        store.get(row.mask_path).write_bytes(mask_png(mask))
        np.save(store.get(row.marginals_path), mask.astype(np.float32))
        objects_write(row, object_options(row))


def make_discs(user: User) -> PredictionBatch:
    """Predict two images, each of two touching discs, one at the border, one alone."""
    image_set = make_image_set(user, images=2, masks=0, size=(96, 64))
    batch = make_batch(user, make_segmenter(user), image_set)
    put_discs(batch)
    return batch


def serve_plain_files(settings: LazySettings) -> None:
    """Serve static files without a manifest."""
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    }
