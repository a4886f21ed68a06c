"""Score tables on grids that the oracle meets: attractive, mixed, smooth, real gradients."""

import numpy as np
from scipy.ndimage import gaussian_filter

from engine.entropies.pairwise import grid_entropy
from engine.graphs.grid import Grid, GridTables
from engine.oracles.grid_roof_duality import GridRoofDuality


def attractive(grid: Grid, rng: np.random.Generator) -> np.ndarray:
    """Independent fields and positive couplings: a plain minimum cut."""
    tables = grid.zeros()
    tables.nodes[:] = rng.normal(size=tables.nodes.shape)
    for edges in (tables.horizontal, tables.vertical):
        edges[..., 0, 0] = edges[..., 1, 1] = rng.uniform(0.0, 1.0, edges.shape[:2])
    return tables.flat


def mixed(grid: Grid, rng: np.random.Generator) -> np.ndarray:
    """Independent tables of both signs: frustrated."""
    return rng.normal(size=grid.size)


def smooth(grid: Grid, rng: np.random.Generator) -> np.ndarray:
    """A noisy picture of blobs with strong equal couplings: long paths in the flow."""
    side = max(grid.height, grid.width)
    blobs = gaussian_filter(rng.normal(size=(grid.height, grid.width)), side / 20)
    tables = grid.zeros()
    tables.nodes[..., 1] = blobs / blobs.std() + rng.normal(size=blobs.shape)
    for edges in (tables.horizontal, tables.vertical):
        edges[..., 0, 0] = edges[..., 1, 1] = 1.0
    return tables.flat


def denoising(grid: Grid, rng: np.random.Generator) -> np.ndarray:
    """Scores of a denoising model: a noisy binary picture and varying positive couplings."""
    side = max(grid.height, grid.width)
    clean = gaussian_filter(rng.normal(size=(grid.height, grid.width)), side / 20) > 0
    noise = rng.random(clean.shape) ** 2.5 * 0.9
    picture = np.where(clean, 1.0 - noise, noise)
    tables = grid.zeros()
    tables.nodes[..., 1] = 6.0 * (picture - 0.5)
    for edges in (tables.horizontal, tables.vertical):
        edges[..., 0, 0] = edges[..., 1, 1] = 0.3 + 0.5 * rng.random(edges.shape[:2])
    return tables.flat


def frank_wolfe_gradients(
    grid: Grid, rng: np.random.Generator, iterations: tuple[int, ...] = (5, 20, 50)
) -> list[tuple[str, np.ndarray]]:
    """Gradients met by Frank-Wolfe on the tree-reweighted free energy of a denoising model."""
    scores = denoising(grid, rng)
    entropy = grid_entropy(grid, 0.5)
    oracle = GridRoofDuality(grid, reuse_vertex=True)
    tables = grid.uniform().flat
    found = []
    for iteration in range(1, max(iterations) + 1):
        gradient = scores + entropy.gradient(tables)
        if iteration in iterations:
            found.append((f"FW step {iteration}", gradient))
        vertex = oracle.compute_extreme_point(gradient).vertex.values
        tables = tables + 2.0 / (iteration + 2.0) * (vertex - tables)
    return found


def ising(grid: Grid, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fields (H, W) and couplings right (H, W-1) and down (H-1, W), written for the peers."""
    tables = GridTables(grid, scores)
    field = 0.5 * (tables.nodes[..., 1] - tables.nodes[..., 0])
    couplings = []
    for edges, first, second in (
        (tables.horizontal, np.s_[:, :-1], np.s_[:, 1:]),
        (tables.vertical, np.s_[:-1, :], np.s_[1:, :]),
    ):
        a, b, c, d = edges[..., 0, 0], edges[..., 0, 1], edges[..., 1, 0], edges[..., 1, 1]
        field[first] += 0.25 * (c + d - a - b)
        field[second] += 0.25 * (b + d - a - c)
        couplings.append(0.25 * ((a - b) - (c - d)))
    return field, couplings[0], couplings[1]
