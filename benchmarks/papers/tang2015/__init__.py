"""Experiments of Tang, Ruozzi, Belanger and Jebara (2015)."""
