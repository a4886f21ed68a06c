"""Demonstration data of segmentation: a generated set with masks and one without."""

import io

import numpy as np
from django.db import transaction
from PIL import Image

from engine import generate_leaf_images
from webapp.accounts.models import Organisation, User
from webapp.segmentation.models import ImageSet
from webapp.segmentation.rendering import mask_png
from webapp.segmentation.services.image_sets import image_set_create, pairing_refresh
from webapp.segmentation.services.uploads import image_file_add

LEARN_SET = "Leaves with masks (generated)"
PREDICT_SET = "Leaves to predict (generated)"
SEED = 20261120
SHAPE = (240, 320)  # height, width in pixels


def load_demonstration(organisation: Organisation, user: User) -> str:
    """Create the two sets unless they exist; return one sentence about them."""
    if ImageSet.objects.filter(organisation=organisation, name=LEARN_SET).exists():
        return "The generated leaf images are there already."
    rng = np.random.default_rng(SEED)
    with transaction.atomic():
        _make_set(user, LEARN_SET, count=12, rng=rng, with_masks=True, first=1)
        _make_set(user, PREDICT_SET, count=6, rng=rng, with_masks=False, first=13)
    return "18 generated leaf images, 12 of them with masks."


def _make_set(
    user: User, name: str, *, count: int, rng: np.random.Generator, with_masks: bool, first: int
) -> None:
    image_set = image_set_create(user=user, name=name, foreground="leaf")
    for number, leaf in enumerate(generate_leaf_images(count, rng=rng, shape=SHAPE), start=first):
        stem = f"leaf_{number:04d}"
        buffer = io.BytesIO()
        Image.fromarray(leaf.image).save(buffer, "JPEG", quality=92)
        image_file_add(
            user=user, image_set=image_set, name=f"{stem}.jpg", chunks=[buffer.getvalue()]
        )
        if with_masks:
            image_file_add(
                user=user,
                image_set=image_set,
                name=f"{stem}.mask.png",
                chunks=[mask_png(leaf.mask)],
            )
    pairing_refresh(image_set=image_set)
