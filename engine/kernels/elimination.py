"""Sums, maxima and shares over one variable of a product of log tables, arrays only.

The tables to multiply are parts of one vector ``flat``. The configurations of the other variables
are numbered row by row. A part's entry for the first state is at high[h, p] + low[l, p], with
``high`` (rows, parts) and ``low`` (columns, parts); its entries for consecutive states are
``stride`` (parts,) apart. So a product of 2^20 entries needs two lists of 2^10.
"""

import math

import numpy as np
from numba import njit

from engine.core.arguments import ByteArray, FloatArray, IntArray


@njit(cache=True, nogil=True)
def join(
    flat: FloatArray, high: IntArray, low: IntArray, stride: IntArray, values: FloatArray
) -> float:
    """Write the log product for every state into ``values``; return the largest."""
    largest = -np.inf
    for x in range(values.shape[0]):
        value = 0.0
        for p in range(stride.shape[0]):
            value += flat[high[p] + low[p] + x * stride[p]]
        values[x] = value
        largest = max(largest, value)
    return largest


@njit(cache=True, nogil=True)
def sum_out(
    flat: FloatArray,
    high: IntArray,
    low: IntArray,
    stride: IntArray,
    states: int,
    out: FloatArray,
) -> None:
    """Write log sum exp over the states into ``out`` (rows, columns)."""
    values = np.empty(states)
    for h in range(out.shape[0]):
        for k in range(out.shape[1]):
            largest = join(flat, high[h], low[k], stride, values)
            if largest == -np.inf:
                out[h, k] = largest
                continue
            total = 0.0
            for x in range(states):
                # The exponential of the largest is known: half the work for two states.
                total += 1.0 if values[x] == largest else math.exp(values[x] - largest)
            out[h, k] = largest + math.log(total)


@njit(cache=True, nogil=True)
def max_out(
    flat: FloatArray,
    high: IntArray,
    low: IntArray,
    stride: IntArray,
    states: int,
    out: FloatArray,
    chosen: ByteArray,
) -> None:
    """Write the maximum over the states into ``out`` (rows, columns), its state into ``chosen``.

    One table after the other is added to a whole row, which compilers turn into vector code:
    four times as fast as all tables entry by entry.
    """
    columns = out.shape[1]
    places = np.ascontiguousarray(low.T)
    values = np.empty(columns)
    for h in range(out.shape[0]):
        best, state = out[h], chosen[h]
        for x in range(states):
            values[:] = 0.0
            for p in range(stride.shape[0]):
                table, place = flat[high[h, p] + x * stride[p] :], places[p]
                for k in range(columns):
                    values[k] += table[place[k]]
            for k in range(columns):
                if x == 0 or values[k] > best[k]:
                    best[k] = values[k]
                    state[k] = x


@njit(cache=True, nogil=True)
def share_out(
    flat: FloatArray,
    high: IntArray,
    low: IntArray,
    stride: IntArray,
    weight: FloatArray,
    shares: FloatArray,
    margin: FloatArray,
) -> None:
    """Split the probability ``weight`` (rows, columns) of the others over the states.

    Adds each state's probability to ``margin`` (states,) and, for each part, to the index in
    ``shares`` (as ``flat``) of its entry: the margins of all parts.
    """
    values = np.empty(margin.shape[0])
    for h in range(weight.shape[0]):
        for k in range(weight.shape[1]):
            if weight[h, k] == 0.0:
                continue
            largest = join(flat, high[h], low[k], stride, values)
            total = 0.0
            for x in range(values.shape[0]):
                values[x] = 1.0 if values[x] == largest else math.exp(values[x] - largest)
                total += values[x]
            for x in range(values.shape[0]):
                share = values[x] * (weight[h, k] / total)
                margin[x] += share
                for p in range(stride.shape[0]):
                    shares[high[h, p] + low[k, p] + x * stride[p]] += share
