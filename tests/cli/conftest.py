"""All tests of commands learn few small trees, which takes a third less time."""

from collections.abc import Iterator

import pytest

from tests.small_trees import learned_trees


@pytest.fixture(scope="module", autouse=True)
def small_trees() -> Iterator[None]:
    with learned_trees():
        yield
