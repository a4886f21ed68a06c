"""Means that keep the first call after an installation short."""

import gc

import numpy as np
from numba.core import event
from numba.extending import register_jitable

# For functions that only kernels call. They are compiled into the calling kernel, whose cache
# includes their code; entry points for Python and C, a third of the work, are left out. Called
# from Python, they run uncompiled.
inner = register_jitable(no_cfunc_wrapper=True)

# The same for arithmetic on many numbers at once: called functions keep their own rules, and
# Python's error on a division by 0 would prevent vector code.
arithmetic = register_jitable(
    no_cfunc_wrapper=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"}
)

# For parts of a loop that runs millions of times: their code is copied into every caller.
step = register_jitable(forceinline=True, no_cfunc_wrapper=True)


@inner
def variable(value: int) -> int:
    """Return ``value`` as an ordinary integer: literal arguments would compile a new version."""
    return int(np.int64(value))


class _PausedCollector(event.Listener):
    """Pause of the collector of cyclic garbage while a kernel compiles."""

    def __init__(self) -> None:
        self._depth = 0  # a kernel's functions compile within it, one thread at a time
        self._was_enabled = False

    def on_start(self, event: event.Event) -> None:
        """Pause."""
        if self._depth == 0:
            self._was_enabled = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        """Go on after the outermost function."""
        self._depth -= 1
        if self._depth == 0 and self._was_enabled:
            gc.enable()


def pause_collector_while_compiling() -> None:
    """Collect no cyclic garbage while kernels compile; reading the cache is no part of it.

    Most objects of the compiler live on, and searching them took a tenth of its time.
    """
    event.register("numba:compile", _PausedCollector())  # type: ignore[no-untyped-call]  # no stubs
