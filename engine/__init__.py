"""Approximate maximum likelihood for structured models that needs only a MAP solver."""

import lazy_loader

# The names stand in the stub beside this file. Importing them when they are first used lets a verb
# of the command line, and a caller who wants one oracle, start without the rest of the library.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
