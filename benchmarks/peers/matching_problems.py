"""Four families of complete graphs, and the small steps by which a solver changes their scores."""

import numpy as np

from engine.oracles.one_hot_scores import OneHotScores

FAMILIES = ("uniform", "survey", "survey+noise", "tied")
SURVEY_LEVELS = (2, 2, *(5,) * 12)  # the roommates questionnaire
TIED_LEVELS = (2, 5, 5, 5)  # the four informative questions alone: at most 250 kinds of student
NOISE = 0.05
ROWS = 500  # made at a time, so that no second matrix is held
STEP = 0.02


def survey_scores(n: int, levels: tuple[int, ...], direction: int) -> OneHotScores:
    """Random answers (always the same) under random distance and pair weights (by direction)."""
    answers = np.random.default_rng(7)
    weights = np.random.default_rng(direction)
    firsts = np.concatenate(([0], np.cumsum(levels)))
    codes = np.empty((n, len(levels)), dtype=np.int64)
    block = np.zeros((firsts[-1], firsts[-1]))
    for q, k in enumerate(levels):
        codes[:, q] = firsts[q] + answers.integers(0, k, n)
        pairs = np.triu(weights.normal(size=(k, k)))
        distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
        own = slice(firsts[q], firsts[q + 1])
        block[own, own] = pairs + np.triu(pairs, 1).T + weights.normal() * distance
    return OneHotScores(codes, block)


def make_scores(family: str, n: int, direction: int = 0) -> np.ndarray:
    """Scores of a family, shape (n, n), symmetric with a zero diagonal."""
    scores = np.zeros((n, n))
    add_scores(scores, family, direction, 1.0)
    return scores


def add_scores(scores: np.ndarray, family: str, direction: int, factor: float) -> None:
    """Add ``factor`` times the scores of a direction, in place and row by row."""
    n = len(scores)
    levels = TIED_LEVELS if family == "tied" else SURVEY_LEVELS
    one_hot = None if family == "uniform" else survey_scores(n, levels, direction)
    rng = np.random.default_rng(1000 + direction)
    for start in range(0, n, ROWS):
        stop = min(start + ROWS, n)
        rows = np.zeros((stop - start, n)) if one_hot is None else one_hot.rows(start, stop)
        if family in ("uniform", "survey+noise"):
            size = 1.0 if family == "uniform" else NOISE
            rows += size * rng.random(rows.shape)
        for r in range(stop - start):
            # The upper triangle counts; its mirror image keeps the matrix symmetric.
            i = start + r
            scores[i, i + 1 :] += factor * rows[r, i + 1 :]
            scores[i + 1 :, i] = scores[i, i + 1 :]


def take_step(scores: np.ndarray, family: str, direction: int) -> None:
    """Move 2 % of the way to the scores of another direction, in place."""
    scores *= 1 - STEP
    add_scores(scores, family, direction, STEP)
