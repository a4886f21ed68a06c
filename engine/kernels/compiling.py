"""Decorators that keep the first call after an installation short."""

import numpy as np
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
