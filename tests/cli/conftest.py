"""What all commands share."""

from collections.abc import Iterator

import pytest

from tests.small_trees import learned_trees


@pytest.fixture(scope="module", autouse=True)
def small_trees() -> Iterator[None]:
    with learned_trees():
        yield
