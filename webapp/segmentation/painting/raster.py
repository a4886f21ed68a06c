"""Size of images for learning and answering while somebody paints."""

MOST_LIVE_PIXELS = 1_100_000
"""Maximum pixels of an image for learning and answering while somebody paints."""


def live_factor(width: int, height: int) -> int:
    """Return how many pixels of the image one live pixel spans along a side."""
    factor = 1
    while (width // factor) * (height // factor) > MOST_LIVE_PIXELS:
        factor += 1
    return factor


def live_size(width: int, height: int) -> tuple[int, int]:
    """Return the width and height of the image at live size."""
    factor = live_factor(width, height)
    return max(1, width // factor), max(1, height // factor)
