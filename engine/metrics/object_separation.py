"""Separation of touching objects: a watershed of the probabilities, merged by shape and size."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.core.arguments import BoolArray, FloatArray
from engine.core.errors import InvalidProblemError
from engine.core.options import check_number, check_whole

Numbers = NDArray[np.int32]
Contact = tuple[float, float, float]
"""Saddle, length and sum of edges of a contact of two regions."""
Moments = tuple[float, float, float, float, float, float]
"""Pixels of a region, and sums over them of x, y, x squared, y squared and x times y."""

LEVELS = (0.6, 0.7, 0.8, 0.9, 0.95)
"""Probabilities at which distances to the border are measured beside those in the mask itself."""
EDGE_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9)
"""The same where a model knows edges: the root of an edge's probability counts as half inside."""
EDGE_HEIGHT = 10.0
"""Pixels of distance that a full probability of an edge counts for; 30 did as well on nuclei."""
SMOOTHING = 1.0
"""Standard deviation of the Gaussian that smooths the mean distance, pixels."""
SEED_WINDOW = 5
"""Side of the window, pixels, within which a seed has the largest mean distance."""


class MergeWeights(NamedTuple):
    """Weights of the log-odds that two regions are one object, fitted on pictures of nuclei.

    They multiply the share of the ellipse of equal moments that both fill together, that which
    they fill each by itself (mean by area), the log of their area over the typical area, the width
    of the neck over that of the narrower region, and the mean probability of an edge along the
    contact; ``bias`` is added.
    """

    roundness: float
    parts: float
    size: float
    neck: float
    edge: float
    bias: float


SHAPE_WEIGHTS = MergeWeights(-5.4, 0.0, -0.9, 4.3, 0.0, 0.15)
EDGE_WEIGHTS = MergeWeights(6.3, -20.3, -1.08, 2.62, -4.12, 11.85)
"""The same where a model knows edges, from predictions of pictures that it did not learn from."""
SPLITS_SCALE = 2.0
"""Log-odds that a merge needs at ``splits`` of one half; they grow without bound towards one."""
MIN_ROUND = 0.95
"""Share of its ellipse that a component fills if it is taken for a single object."""
MIN_SINGLES, MIN_SINGLE_PIXELS = 5, 20
"""Number and pixels of single objects from which the typical area is estimated."""


@dataclass(frozen=True, slots=True, eq=False)
class _Contacts:
    """Pairs of regions that touch, (n, 2), and numbers of each contact, (n,).

    ``saddles`` are the largest distances along contacts, ``lengths`` the numbers of neighbouring
    pixels, and ``edges`` the sums of the probabilities of an edge over these.
    """

    pairs: NDArray[np.int64]
    saddles: FloatArray
    lengths: FloatArray
    edges: FloatArray


def separate_objects(
    mask: BoolArray,
    probability: NDArray[np.floating] | None = None,
    *,
    edge: NDArray[np.floating] | None = None,
    splits: float = 0.0,
    typical_area: float | None = None,
) -> Numbers:
    """Number the objects of a mask, separating those that touch.

    A watershed of the mean distance to the border over several probabilities gives regions; the
    most probable pair of neighbours is merged until no pair is more likely one object than two.
    One object fills the ellipse of its moments, is not much larger than the typical object, has
    no neck, and no learned edge between its regions. Where edges are known, the watershed follows
    them, faint ones too, and regions that fill their own ellipses badly are likelier parts of one.

    Parameters
    ----------
    mask : ndarray, shape (height, width), bool
    probability : ndarray, shape (height, width), of the pixel being inside; by default the mask.
    edge : ndarray, shape (height, width), optional
        Probability, part of ``probability``, that the pixel lies at the edge of an object: of a
        model that learned edges (`engine.datasets.edges_of`).
    splits : float, from -1 (none: pixels that touch are one object) to 1 (every region by itself).
    typical_area : float, pixels of a usual object; by default estimated from round objects.

    Returns
    -------
    ndarray, shape (height, width), int32: numbers from 1; 0 outside the mask.

    Raises
    ------
    InvalidProblemError
        If the shapes differ, a number is out of range, or a probability inside is not a number.

    Notes
    -----
    Time about 1.5 seconds and memory about 60 bytes a pixel; pixels joined by corners touch.

    References
    ----------
    Meyer, F. (1994), Topographic distance and watershed lines: the flooding from seeds.

    Examples
    --------
    >>> mask = np.zeros((20, 40), dtype=bool)
    >>> rows, columns = np.mgrid[:20, :40]
    >>> for centre in (12, 27):
    ...     mask |= (rows - 10) ** 2 + (columns - centre) ** 2 < 70
    >>> int(separate_objects(mask).max())
    2
    """
    check_number("splits", splits, at_least=-1.0, at_most=1.0)
    if typical_area is not None:
        check_number("typical_area", typical_area, above=0.0)
    mask = np.asarray(mask, dtype=bool)
    if mask.ndim != 2:
        raise InvalidProblemError(f"mask: expected rows and columns, received {mask.shape}.")
    _check_plane("probability", probability, mask)
    _check_plane("edge", edge, mask)
    if not mask.any():
        return np.zeros(mask.shape, dtype=np.int32)
    if edge is None:
        distance = _mean_distance(mask, probability, LEVELS)
        height = distance
    else:
        inside = np.asarray(mask if probability is None else probability, dtype=np.float64)
        faint = np.sqrt(np.maximum(edge, 0.0))
        distance = _mean_distance(mask, inside - faint / 2.0, EDGE_LEVELS)
        height = distance + EDGE_HEIGHT * _smooth(np.where(mask, inside - edge, 0.0))
    regions = _flooded(mask, distance, height)
    contacts = _contacts(regions, distance, edge)
    moments = _moments(regions)
    typical = typical_area or _estimated_area(moments, contacts)
    weights = SHAPE_WEIGHTS if edge is None else EDGE_WEIGHTS
    peaks, least = _peaks(regions, distance), _least_odds(splits)
    return _merged(moments, peaks, contacts, typical, weights, least)[regions]


def object_planes(
    probabilities: NDArray[np.floating], place: int, edge: int, background: Sequence[int]
) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Return the mask of a class with its edges, and the probabilities of both, to separate it.

    A pixel is an object if no background is likelier; one at an edge belongs to the class that is
    the likeliest beside it.

    Parameters
    ----------
    probabilities : ndarray, shape (height, width, n_labels)
    place, edge : int, labels of the class and of edges
    background : labels that are no objects

    Returns
    -------
    mask : ndarray, shape (height, width), bool
    probability, edge : ndarray, shape (height, width), of the class with its edge, and of the edge

    Raises
    ------
    InvalidProblemError
        If a label has no plane.

    Examples
    --------
    >>> planes = np.array([[[0.2, 0.7, 0.1], [0.3, 0.3, 0.4], [0.8, 0.1, 0.1]]])
    >>> mask, probability, edge = object_planes(planes, 1, 2, [0])
    >>> mask.tolist(), probability.round(1).tolist()
    ([[True, True, False]], [[0.8, 0.7, 0.2]])
    """
    check_whole("place", place, at_least=0)
    check_whole("edge", edge, at_least=0)
    if probabilities.ndim != 3 or max(place, edge) >= probabilities.shape[2]:
        raise InvalidProblemError(
            f"probabilities: expected a plane for labels {place} and {edge}, "
            f"received {probabilities.shape}."
        )
    own = np.asarray(probabilities[:, :, place], dtype=np.float64)
    edges = np.asarray(probabilities[:, :, edge], dtype=np.float64)
    inside, is_own = own + edges, np.ones(own.shape, dtype=bool)
    for other in range(probabilities.shape[2]):
        if other not in (place, edge, *background):
            inside += probabilities[:, :, other]
            ahead = own > probabilities[:, :, other]
            is_own &= ahead | ((own == probabilities[:, :, other]) & (place < other))
    own_edge = np.where(is_own, edges, 0.0)
    return is_own & (inside > 0.5), own + own_edge, own_edge


def typical_area_of(areas: FloatArray) -> float | None:
    """Return the typical area of known objects, their median; None if there are too few.

    Examples
    --------
    >>> typical_area_of(np.array([50.0, 60.0, 40.0, 55.0, 70.0]))
    55.0
    """
    usable = np.asarray(areas, dtype=np.float64)
    return float(np.median(usable)) if len(usable) >= MIN_SINGLES else None


def _least_odds(splits: float) -> float:
    """Return the log-odds of one object over two from which regions are merged."""
    if abs(splits) == 1.0:
        return float(np.copysign(np.inf, splits))
    return SPLITS_SCALE * splits / (1.0 - abs(splits))


def _check_plane(name: str, values: NDArray[np.floating] | None, mask: BoolArray) -> None:
    """Raise InvalidProblemError unless a plane has the mask's shape and numbers inside it."""
    if values is None:
        return
    if values.shape != mask.shape:
        raise InvalidProblemError(
            f"{name}: expected the shape of the mask, {mask.shape}, received {values.shape}."
        )
    count = int(np.count_nonzero(~np.isfinite(values[mask])))
    if count:
        raise InvalidProblemError(
            f"{name}: expected numbers inside the mask, found {count:,} that are not finite."
        )


def _mean_distance(
    mask: BoolArray, probability: NDArray[np.floating] | None, levels: Sequence[float]
) -> FloatArray:
    """Return the distance to the border, averaged over the borders at several probabilities."""
    from scipy.ndimage import distance_transform_edt

    total = np.asarray(distance_transform_edt(mask), dtype=np.float64)
    if probability is None:
        return _smooth(total)
    for level in levels:
        total += distance_transform_edt(mask & (probability > level))
    return _smooth(total / (1 + len(levels)))


def _smooth(values: FloatArray) -> FloatArray:
    """Return values smoothed by a Gaussian."""
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(values, SMOOTHING))


def _flooded(mask: BoolArray, distance: FloatArray, height: FloatArray) -> Numbers:
    """Return the regions of a watershed of the height, from the local maxima of the distance."""
    from scipy.ndimage import maximum_filter
    from skimage.measure import label
    from skimage.segmentation import watershed

    is_seed = mask & (distance == maximum_filter(distance, SEED_WINDOW))
    seeds = label(is_seed, connectivity=2)  # type: ignore[no-untyped-call]
    regions = watershed(-height, seeds, connectivity=2, mask=mask)  # type: ignore[no-untyped-call]
    unseeded = mask & (regions == 0)
    if unseeded.any():
        rest = label(unseeded, connectivity=2)  # type: ignore[no-untyped-call]
        regions[unseeded] = rest[unseeded] + regions.max()
    return np.asarray(regions, dtype=np.int32)


def _contacts(
    regions: Numbers, distance: FloatArray, edge: NDArray[np.floating] | None
) -> _Contacts:
    """Return neighbouring regions, joined by sides or corners, and what lies between them."""
    height, width = regions.shape
    known: NDArray[np.floating] = np.zeros(regions.shape) if edge is None else edge
    keys, heights, edges = [], [], []
    n = int(regions.max()) + 1
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        one = slice(0, height - down), slice(max(0, -right), width - max(0, right))
        two = slice(down, height), slice(max(0, right), width - max(0, -right))
        first, second = regions[one], regions[two]
        touch = (first != second) & (first > 0) & (second > 0)
        low = np.minimum(first[touch], second[touch]).astype(np.int64)
        keys.append(low * n + np.maximum(first[touch], second[touch]))
        heights.append(np.minimum(distance[one][touch], distance[two][touch]))
        edges.append(np.maximum(known[one][touch], known[two][touch]))
    pairs, places = np.unique(np.concatenate(keys), return_inverse=True)
    saddles = np.zeros(len(pairs))
    np.maximum.at(saddles, places, np.concatenate(heights))
    lengths = np.bincount(places, minlength=len(pairs)).astype(np.float64)
    sums = np.zeros(len(pairs))
    np.add.at(sums, places, np.concatenate(edges))
    return _Contacts(np.stack([pairs // n, pairs % n], axis=1), saddles, lengths, sums)


def _moments(regions: Numbers) -> FloatArray:
    """Return the `Moments` of every region, shape (n_regions + 1, 6)."""
    rows, columns = np.nonzero(regions)
    number = regions[rows, columns]
    x, y = columns.astype(np.float64), rows.astype(np.float64)
    sums = [np.bincount(number, weights=each) for each in (np.ones(len(x)), x, y, x * x, y * y)]
    return np.stack([*sums, np.bincount(number, weights=x * y)], axis=1)


def _peaks(regions: Numbers, distance: FloatArray) -> FloatArray:
    """Return the largest distance within every region."""
    peaks = np.zeros(int(regions.max()) + 1)
    np.maximum.at(peaks, regions.ravel(), distance.ravel())
    return peaks


def _roundness(moments: Moments) -> float:
    """Return the share of the ellipse with the same second moments that a region fills."""
    pixels, x, y, xx, yy, xy = moments
    across = xx / pixels - (x / pixels) ** 2 + 1 / 12
    down = yy / pixels - (y / pixels) ** 2 + 1 / 12
    both = xy / pixels - x * y / pixels**2
    spread = float(max(across * down - both * both, 1e-9))
    return float(pixels / (4 * np.pi * spread**0.5))


def _estimated_area(moments: FloatArray, contacts: _Contacts) -> float:
    """Return the median area of round regions without neighbours, else of all regions."""
    is_alone = np.ones(len(moments), dtype=bool)
    is_alone[contacts.pairs.ravel()] = False
    is_alone &= moments[:, 0] >= MIN_SINGLE_PIXELS
    singles = [row[0] for row in moments[is_alone] if _roundness(tuple(row)) > MIN_ROUND]
    return typical_area_of(np.array(singles)) or float(np.median(moments[1:, 0]))


def _merged(
    moments: FloatArray,
    peaks: FloatArray,
    contacts: _Contacts,
    typical: float,
    weights: MergeWeights,
    least: float,
) -> Numbers:
    """Merge regions, most probable pair first; return the object of each region.

    ``least`` are the log-odds of one object over two from which a pair is merged. Merged regions
    get numbers of their own; ``parents`` leads from a region to the one that it became part of.
    """
    sums: list[Moments] = [tuple(row) for row in moments.tolist()]
    rounds = [_roundness(row) if row[0] else 0.0 for row in sums]
    tops: list[float] = peaks.tolist()
    parents = list(range(len(sums)))
    beside: list[dict[int, Contact]] = [{} for _ in sums]

    def union_of(one: int, two: int) -> Moments:
        a, b = sums[one], sums[two]
        return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5])

    def odds(one: int, two: int, contact: Contact) -> float:
        saddle, length, edges = contact
        union = union_of(one, two)
        neck = saddle / max(min(tops[one], tops[two]), 1e-9)
        size = float(np.log(union[0] / typical))
        each = (sums[one][0] * rounds[one] + sums[two][0] * rounds[two]) / union[0]
        shape = weights.roundness * _roundness(union) + weights.parts * each + weights.size * size
        return shape + weights.neck * neck + weights.edge * edges / length + weights.bias

    queue = []
    numbers = np.stack([contacts.saddles, contacts.lengths, contacts.edges], axis=1)
    for (one, two), (saddle, length, edges) in zip(
        contacts.pairs.tolist(), numbers.tolist(), strict=True
    ):
        beside[one][two] = beside[two][one] = (saddle, length, edges)
        queue.append((-odds(one, two, (saddle, length, edges)), one, two))
    heapq.heapify(queue)
    while queue and -queue[0][0] >= least:
        _, one, two = heapq.heappop(queue)
        if parents[one] != one or parents[two] != two:
            continue
        new = len(sums)
        sums.append(union_of(one, two))
        rounds.append(_roundness(sums[new]))
        tops.append(max(tops[one], tops[two]))
        parents[one] = parents[two] = new
        parents.append(new)
        around: dict[int, Contact] = {}
        for old in (one, two):
            for other, (saddle, length, edges) in beside[old].items():
                del beside[other][old]
                if other not in (one, two):
                    top, longer, more = around.get(other, (0.0, 0.0, 0.0))
                    around[other] = (max(saddle, top), length + longer, edges + more)
            beside[old] = {}
        beside.append(around)
        for other, contact in around.items():
            beside[other][new] = contact
            heapq.heappush(queue, (-odds(other, new, contact), other, new))
    return _objects_of(parents, len(moments))


def _objects_of(parents: list[int], count: int) -> Numbers:
    """Return the number of the object that each of the first ``count`` regions ended in."""
    for place in range(len(parents) - 1, -1, -1):  # parents come after their children
        parents[place] = parents[parents[place]]
    roots = np.array(parents[:count])
    numbers = np.zeros(count, dtype=np.int32)
    numbers[1:] = np.unique(roots[1:], return_inverse=True)[1] + 1
    return numbers
