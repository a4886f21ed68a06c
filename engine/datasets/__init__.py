"""Readers, writers, and generators of data with known truth."""

import lazy_loader

# The names are listed in the stub beside this file; each is imported at first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
