"""The three ways in which a call can fail; everything else is a bug."""

from typing import Any


class InvalidProblemError(ValueError):
    """Bad input. The message says what was expected, what was received, and where.

    Examples
    --------
    >>> issubclass(InvalidProblemError, ValueError)
    True
    """


class InfeasibleError(ValueError):
    """A well-formed problem without a solution. The message names why.

    Parameters
    ----------
    message : str
        One clear sentence.
    deficient_set : tuple[int, ...], optional
        For matchings, nodes whose removal leaves more odd components than the set has members
        (Tutte-Berge); empty when the cause is of another kind.
    conflicts : tuple, optional
        For placements, the reasons as ``RoomConflict``, smallest clash first.

    Examples
    --------
    >>> error = InfeasibleError("Three students cannot form pairs.", deficient_set=(0,))
    >>> str(error), error.deficient_set
    ('Three students cannot form pairs.', (0,))
    """

    def __init__(
        self,
        message: str,
        deficient_set: tuple[int, ...] = (),
        conflicts: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(message)
        self.deficient_set = deficient_set
        self.conflicts = conflicts


class CertificateError(AssertionError):
    """An answer failed its own optimality check: our bug, never the caller's.

    Examples
    --------
    >>> issubclass(CertificateError, AssertionError)
    True
    """


class StoppedError(Exception):
    """The caller's ``should_stop`` answered True and there is no partial result to return.

    Examples
    --------
    >>> try:
    ...     raise StoppedError("stopped after 3 of 10 sweeps")
    ... except StoppedError as error:
    ...     print(error)
    stopped after 3 of 10 sweeps
    """
