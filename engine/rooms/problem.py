"""Placement problem as arrays: atoms, kinds of rooms, and the value of a group in each."""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import BoolArray, FloatArray, IntArray

LARGEST_ROOM = 8

Groups = tuple[IntArray, IntArray, IntArray]  # members (g, 8) padded with -1, kinds, rows (g,)


@dataclass(frozen=True, slots=True, eq=False)
class RoomProblem:
    """Atoms to be grouped, and kinds of rooms for the groups.

    An atom is one student, or students who must share a room. The value of a group of s people in a
    room of kind t is

        sum over pairs (scores / (s - 1) + bonus) + sum over atoms (own_score / (s - 1) + own_bonus
        + preference of the view of t) + refunds of those who stay in the room
        - extra_price times the people above the normal number of beds

    with scores counted as 0 where s = 1.

    Parameters
    ----------
    scores : ndarray, shape (n, n), symmetric, diagonal 0; -inf where two atoms never share a room.
    bonus : ndarray, shape (n, n) or (0, 0) for none
        Value that a shared room adds whatever its size: wishes.
    sizes : ndarray, shape (n,), people of each atom.
    with_needs : ndarray, shape (n,), people with needs in each atom.
    penalty : ndarray, shape (n,), cost of leaving an atom out.
    own_score, own_bonus : ndarray, shape (n,), sums over the pairs inside each atom.
    capacity, normal, count, view : ndarray, shape (T,)
        Of each kind of room: beds with extra beds, beds without them, rooms, and the view.
    allowed, preference : ndarray, shape (V, n)
        Whether an atom may live in a view, and its liking less the price of the view's rank.
    rank : ndarray, shape (V,), int64, position of the view in the order in which rooms fill.
    extra_price, rank_price : float
        Price of one person in an extra bed, and of one person one position later in the order.
    stay_atom, stay_row, stay_refund : ndarray, shape (e,)
        Atoms that may stay in a room, the room's row, and the gain.
    row_kind : ndarray, shape (R,), the kind of each room that somebody may stay in.
    must_fill : bool, whether a room in use has no free bed.
    """

    scores: FloatArray
    bonus: FloatArray
    sizes: IntArray
    with_needs: IntArray
    penalty: FloatArray
    own_score: FloatArray
    own_bonus: FloatArray
    capacity: IntArray
    normal: IntArray
    count: IntArray
    view: IntArray
    allowed: BoolArray
    preference: FloatArray
    rank: IntArray
    extra_price: float
    rank_price: float
    stay_atom: IntArray
    stay_row: IntArray
    stay_refund: FloatArray
    row_kind: IntArray
    must_fill: bool = False

    @property
    def n_atoms(self) -> int:
        """Number of atoms n."""
        return len(self.sizes)

    @property
    def n_kinds(self) -> int:
        """Number of kinds of rooms T."""
        return len(self.capacity)

    @property
    def has_room(self) -> BoolArray:
        """Mask of the atoms that fit in some room that takes them, shape (n,)."""
        fits = self.sizes <= self.capacity[:, np.newaxis]
        open_ = self.allowed[self.view] & fits & (self.count > 0)[:, np.newaxis]
        return np.asarray(open_.any(axis=0))

    @property
    def largest_entry(self) -> float:
        """Largest possible value of one pair and its two atoms, in absolute value."""
        finite = np.abs(self.scores[np.isfinite(self.scores)]).max(initial=0.0)
        others = (self.bonus, self.own_score, self.own_bonus, self.preference)
        extra = self.extra_price * float((self.capacity - self.normal).max(initial=0))
        return float(finite + extra + sum(np.abs(x).max(initial=0.0) for x in others))

    @property
    def has_levels(self) -> bool:
        """Return True if extra beds or the order of the rooms count before the score."""
        return self.extra_price > 0.0 or self.rank_price > 0.0

    def extra_costs(self, people: int) -> FloatArray:
        """Return the price of the extra beds of a number of people in each kind of room, (T,)."""
        return np.asarray(self.extra_price * np.maximum(people - self.normal, 0))

    def group_shapes(self) -> list[tuple[int, int]]:
        """Return (atoms, people) of the groups that the sizes of atoms and rooms allow."""
        largest = int(self.capacity[self.count > 0].max(initial=0))
        counts = np.bincount(self.sizes, minlength=largest + 1)
        sums = {(0, 0)}
        for size in range(1, largest + 1):
            for _ in range(min(int(counts[size]), largest // size)):
                sums |= {(m + 1, s + size) for m, s in sums if s + size <= largest}
        return sorted(sums - {(0, 0)})

    def group_values(self, members: IntArray, kind: IntArray, row: IntArray) -> FloatArray:
        """Return the values of groups, shape (g,).

        ``members`` (g, 8) padded with -1, ``kind`` (g,), ``row`` (g,) the room they stay in or -1.
        """
        present = members >= 0
        safe = np.where(present, members, 0)
        people = np.where(present, self.sizes[safe], 0).sum(axis=1)
        scale = 1.0 / np.maximum(people - 1, 1)
        scored, liked = np.zeros(len(members)), np.zeros(len(members))
        for a in range(members.shape[1]):
            scored += np.where(present[:, a], self.own_score[safe[:, a]], 0.0)
            liked += np.where(
                present[:, a],
                self.own_bonus[safe[:, a]] + self.preference[self.view[kind], safe[:, a]],
                0.0,
            )
            for b in range(a + 1, members.shape[1]):
                both = present[:, a] & present[:, b]
                if not both.any():
                    break
                scored[both] += self.scores[safe[both, a], safe[both, b]]
                if len(self.bonus):
                    liked[both] += self.bonus[safe[both, a], safe[both, b]]
        total: FloatArray = scored * scale + liked
        if self.extra_price > 0.0:
            total -= self.extra_price * np.maximum(people - self.normal[kind], 0)
        return total + self._refunds(members, row)

    def _refunds(self, members: IntArray, row: IntArray) -> FloatArray:
        """Return the gain of each group from atoms that stay in their room."""
        total = np.zeros(len(members))
        staying = np.flatnonzero(row >= 0)
        if not len(staying) or not len(self.stay_row):
            return total
        entry = self.stay_row * self.n_atoms + self.stay_atom
        order = np.argsort(entry, kind="stable")
        for k in range(members.shape[1]):
            there = staying[members[staying, k] >= 0]
            wanted = row[there] * self.n_atoms + members[there, k]
            place = np.minimum(np.searchsorted(entry, wanted, sorter=order), len(order) - 1)
            found = order[place]
            total[there] += np.where(entry[found] == wanted, self.stay_refund[found], 0.0)
        return total
