"""Pictures of three classes, told apart by colour and grain, with label maps."""

import numpy as np

CLASSES = ("ground", "water", "wood")
COLOURS = np.array([[70, 90, 60], [60, 90, 150], [140, 110, 80]])


def class_pictures(
    count: int, *, side: int = 48, seed: int = 0, noise: float = 40.0
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Waves of three classes with noisy colours."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, : side + 8] / side
    images, labels = [], []
    for _ in range(count):
        a, b, c = rng.uniform(0, 6, 3)
        waves = np.stack([np.sin(5 * x + a), np.sin(4 * y + b + x), np.sin(4 * (x - y) + c)])
        label = waves.argmax(axis=0).astype(np.uint8)
        image = COLOURS[label] + rng.normal(0, noise, (*label.shape, 3))
        images.append(np.clip(image, 0, 255).astype(np.uint8))
        labels.append(label)
    return images, labels
