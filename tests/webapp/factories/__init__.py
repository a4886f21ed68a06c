"""Plain functions that make what tests of several parts need, one file for each concept.

A function takes what it needs as arguments, so that every folder can call it. Fixtures are
one-liners around these functions: the shared ones stand in ``tests/webapp/conftest.py``.
"""

import pkgutil

import pytest

# Failed asserts in here show their values, as they do in files of tests.
FILES = [found.name for found in pkgutil.iter_modules(__path__)]
pytest.register_assert_rewrite(*(f"{__name__}.{name}" for name in FILES))
