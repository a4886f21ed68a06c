"""Frank-Wolfe, its step rules and orders, and the ascent in theta; they know no model."""

import lazy_loader

# The names stand in the stub beside this file; each is imported when it is first used.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
