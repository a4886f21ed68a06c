"""Linear maximisation (MAP) over polytopes: matchings, minimum cuts, roof duality, programmes."""

import lazy_loader

# The stub beside this file lists the names; each is imported when first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
