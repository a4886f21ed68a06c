"""Thin views of segmentation over selectors and services."""
