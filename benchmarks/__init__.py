"""Benchmarks, published experiments and searches for wrong answers."""
