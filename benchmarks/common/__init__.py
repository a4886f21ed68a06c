"""Parts that all benchmarks share: tables, stored results, memory, pictures."""
