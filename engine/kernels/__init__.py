"""Compiled loops: arrays in, arrays out; wrappers above them validate."""

from engine.kernels.cache_folder import use_own_cache_folder

use_own_cache_folder()
