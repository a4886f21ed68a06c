"""Compiled loops on arrays; their callers validate the arguments."""

from engine.kernels.cache_folder import use_own_cache_folder
from engine.kernels.compiling import pause_collector_while_compiling

use_own_cache_folder()
pause_collector_while_compiling()
