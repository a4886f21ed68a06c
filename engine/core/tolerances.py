"""Numbers that second-order solvers of matchings share, each with the evidence for its value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Step lengths, smallest numbers and rounding errors.

    Steps were counted on 36 assignments with scores of deviation 1 to 1,000, on 14 dense groups
    whose odd sets bind, on 12 graphs with excluded pairs, and on 18 years of assignments.

    Parameters
    ----------
    armijo : float, share of the promised rise that a step must deliver.
        Assignments and their years took the same steps with 1e-4, 1e-3 and 1e-2.
    max_halvings : int, largest number of halvings of one step.
        A step of 2^-40 changes no value by more than its rounding.
    noise : float, fall of a value that rounding may cause, relative to values above 1.
        Assignments took the same steps with 1e-14, 1e-13 and 1e-12; 1e-13 left one more graph open.
    to_the_boundary : float, largest share of the distance to the boundary that a step takes.
        0.9 and 0.95 took 493 and 469 steps in dense groups; assignments and their years differ by
        less than 1 %. With 0.99 one graph of two parts lost its certificate.
    to_the_boundary_corrected : float, the same for directions with Mehrotra's correction.
    smallest_curvature : float, smallest |1 - (1 + c) tau| or |curvature| of a step.
        Assignments and dense groups took the same steps from 1e-10 to 1e-7. No bound depends on it.
    smallest_entry : float, smallest marginal, far below the rounding of any sum.
        Assignments and dense groups took the same steps from 1e-300 to 1e-40; 1e-100 and less left
        one more graph open.
    tiny : float, smallest positive divisor, and the smallest sum whose logarithm is taken.
    rounding : float, rounding error of a sum, as a share of the sum of its terms' sizes.
        Almost twice the unit roundoff of 2.2e-16: no bound fell below an optimum of 50 digits.
    last_barrier : float, nats, below which the room of an odd set is a rounding error.
    pull : float, share of an interior point that is mixed into a warm start.
    boosts : tuple of float
        Shares of the diagonal added in turn until a Cholesky factor exists; refinement corrects
        them. Assignments and their years took the same steps with five and with six of them.
    """

    armijo: float = 1e-4
    max_halvings: int = 40
    noise: float = 1e-14
    to_the_boundary: float = 0.95
    to_the_boundary_corrected: float = 0.99
    smallest_curvature: float = 1e-8
    smallest_entry: float = 1e-40
    tiny: float = 1e-300
    rounding: float = 4e-16
    last_barrier: float = 1e-14
    pull: float = 1e-3
    boosts: tuple[float, ...] = (0.0, 1e-15, 1e-13, 1e-11, 1e-9, 1e-6)


TOLERANCES = Tolerances()
