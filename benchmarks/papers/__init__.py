"""Published experiments, a package per paper."""
