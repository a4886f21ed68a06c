"""Few small trees, for tests that look at files, words and jobs and not at accuracy."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from engine.learning.segmentation import tree_learning
from engine.learning.segmentation.tree_options import TreeOptions

SMALL = TreeOptions(n_trees=12, n_leaves=8, rate=0.3, min_leaf=10)


@contextmanager
def learned_trees(options: TreeOptions = SMALL) -> Iterator[None]:
    """Learn both stages of trees with these options."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_learning, "FIRST", options)
        patch.setattr(tree_learning, "SECOND", options)
        yield
