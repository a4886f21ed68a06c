"""Masks and label maps: learning from pictures, and prediction of others."""
