"""A set of images without masks, and strokes to paint on them."""

from tests.webapp.factories.images import encoded, picture
from webapp.accounts.models import User
from webapp.segmentation.models import ImageSet
from webapp.segmentation.services.image_sets import image_set_create
from webapp.segmentation.services.uploads import image_file_add


def make_plain_set(user: User) -> ImageSet:
    """Make two images without masks, dark with a bright block."""
    image_set = image_set_create(user=user, name="Plate", foreground="cell")
    for k in range(2):
        content = encoded(picture(k, (96, 64)), "PNG")
        image_file_add(user=user, image_set=image_set, name=f"well_{k}.png", chunks=[content])
    return image_set


def stroke(value: int, *points: float, tool: str = "brush", radius: float = 3.0) -> dict:
    return {"value": value, "tool": tool, "radius": radius, "points": list(points), "radii": []}


INSIDE = stroke(1, 30, 20, 40, 26)
OUTSIDE = stroke(2, 8, 55, 80, 55)
