"""Errors of the engine: three kinds of failure and a stop; any other exception is a bug."""

from typing import Any


class InvalidProblemError(ValueError):
    """Error for bad input. The message gives what was expected, what was received, and where.

    Examples
    --------
    >>> issubclass(InvalidProblemError, ValueError)
    True
    """


class InfeasibleError(ValueError):
    """Error for a well-formed problem without a solution. The message names the reason.

    Parameters
    ----------
    message : str
        One clear sentence.
    deficient_set : tuple[int, ...], optional
        For matchings, nodes whose removal leaves more odd components than the set has members
        (Tutte-Berge); empty for other causes.
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
    """Error for an answer that fails its own optimality check: our bug, never the caller's.

    Examples
    --------
    >>> issubclass(CertificateError, AssertionError)
    True
    """


class StoppedError(Exception):
    """Error when the caller's ``should_stop`` returns True without a partial result to return.

    Examples
    --------
    >>> try:
    ...     raise StoppedError("stopped after 3 of 10 sweeps")
    ... except StoppedError as error:
    ...     print(error)
    stopped after 3 of 10 sweeps
    """
