"""Features, scores and sufficient statistics of conditional random fields."""

import lazy_loader

# The names are listed in the stub beside this file; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
