"""Painting classes on images: strokes as pixels, and warm processes that answer after each one."""
