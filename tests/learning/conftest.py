"""What several files of tests learn from, made once."""

import pytest

from engine.learning.segmentation.mask_learning import TrainedSegmentation, train_segmentation
from tests.learning.segmentation.leaf_pictures import leaves


@pytest.fixture(scope="session")
def trained() -> TrainedSegmentation:
    """Weights learned from five leaves, to a tight gap."""
    return train_segmentation(*leaves(5), relative_gap=1e-4)
