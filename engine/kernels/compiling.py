"""What keeps the first call after an installation short."""

import numpy as np
from numba.extending import register_jitable

# For functions that only kernels call. They are compiled into the kernel at the top, which carries
# their code in its cache; entries for Python and C, a third of the work, are left out. Python that
# calls one all the same runs it uncompiled.
inner = register_jitable(no_cfunc_wrapper=True)

# The same for arithmetic on many numbers at once: what is called keeps its own rules, and those of
# Python, to raise an error where something is divided by 0, leave nothing to do at once.
arithmetic = register_jitable(
    no_cfunc_wrapper=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"}
)

# For parts of a loop that runs millions of times: their code stands wherever they are called from.
step = register_jitable(forceinline=True, no_cfunc_wrapper=True)


@inner
def variable(value: int) -> int:
    """Return ``value`` as an ordinary integer: what is called with a literal is compiled again."""
    return int(np.int64(value))
