"""Compiled loops on arrays; their callers validate the arguments."""

from engine.kernels.cache_folder import use_own_cache_folder

use_own_cache_folder()
