"""Linear minimisation oracles (MAP solvers) and wrappers that count, time and cache them."""
