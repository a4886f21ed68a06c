"""Joining students who must share a room into one atom each."""

from collections.abc import Iterable

import numpy as np

from engine.core.arguments import FloatArray, IntArray


def join_students(n_students: int, groups: Iterable[tuple[int, ...]]) -> IntArray:
    """Return the atom of every student, shape (n,), numbered by their first student.

    Groups that share a student become one atom.
    """
    parent = list(range(n_students))

    def find(k: int) -> int:
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = parent[k]
        return k

    for group in groups:
        for other in group[1:]:
            a, b = sorted((find(group[0]), find(other)))
            parent[b] = a
    roots = np.array([find(k) for k in range(n_students)], dtype=np.int64)
    return np.unique(roots, return_inverse=True)[1].astype(np.int64)


def sum_over_atoms(matrix: FloatArray, atom_of: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return sums of a symmetric matrix over pairs of atoms (a, a), diagonal 0, and within atoms.

    The diagonal of the matrix is ignored; -inf stays -inf.
    """
    n_atoms = int(atom_of.max(initial=-1)) + 1
    plain = matrix.copy()
    np.fill_diagonal(plain, 0.0)
    if n_atoms == len(atom_of):
        return plain, np.zeros(n_atoms)
    order = np.argsort(atom_of, kind="stable")
    start = np.searchsorted(atom_of[order], np.arange(n_atoms))
    sums = np.add.reduceat(plain[order], start, axis=0)
    sums = np.ascontiguousarray(np.add.reduceat(sums[:, order], start, axis=1))
    inside = np.diag(sums) / 2.0
    np.fill_diagonal(sums, 0.0)
    return sums, inside
