"""Which function runs which kind of job."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from webapp.common.models import OrganisationOwned
from webapp.jobs.context import JobContext
from webapp.jobs.models import Job


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a job that any worker may run: what its function gets, and the room it reserves."""

    parameters: dict[str, Any]
    stores: int = 0


@dataclass(frozen=True, slots=True)
class Pieces:
    """What a function returns whose work goes on in pieces; ``kind`` names their function.

    ``seconds_left`` is what all of it is expected to take, until some of it is done.
    """

    kind: str
    pieces: list[Piece]
    seconds_left: float | None = None


Outcome = dict[str, Any] | Callable[[], dict[str, Any] | None] | Pieces | None
RunFunction = Callable[[JobContext], Outcome]


class Queue(StrEnum):
    """Which workers run a kind of job: short work never waits behind hours of learning."""

    SHORT = "short"  # seconds to a few minutes, with somebody waiting
    LONG = "long"  # up to hours


def nothing_is_kept(job: Job) -> str:
    """Return what pages say of a job that leaves nothing behind unless it succeeds."""
    return "Nothing was changed."


@dataclass(frozen=True, slots=True)
class Subject:
    """What jobs of a kind work on, and where that is looked at."""

    parameter: str  # the parameter of a job that holds its key
    model: type[OrganisationOwned]
    url_name: str  # of its page, which takes the key alone
    noun: str  # "model": what the link to that page opens


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job: how it is run and what pages say about it."""

    name: str  # "roommates.learn"
    run: RunFunction
    verb: str  # "Learn": first word of the title and of the audit line
    subject: Subject | None = None
    queue: Queue = Queue.SHORT
    target_gap: float | None = None  # relative gap drawn as the target of the convergence plot
    objective_label: str = "Objective: nothing can be better than this"
    lower_bound_label: str = "Best found so far"
    axis_label: str = "Objective (nats)"
    # What a job leaves behind that was cancelled or failed: "5 of 20 images are predicted."
    kept: Callable[[Job], str] = nothing_is_kept
    # Of a kind that is dealt out: how much of the whole is done, and its result when all is.
    standing: Callable[[Job], tuple[int, int]] | None = None
    conclude: Callable[[Job], dict[str, Any]] | None = None


_kinds: dict[str, JobKind] = {}


def job_kind(name: str, *, verb: str, **options: Any) -> Callable[[RunFunction], RunFunction]:
    """Register the decorated function for jobs of this kind.

    Put it into ``webapp/<app>/jobs.py``; that module is imported when Django starts. The function
    gets a :class:`~webapp.jobs.context.JobContext` and returns

    - a dict: the job's ``result`` (plain JSON values), or
    - a function without arguments: it is called in the very transaction that marks the job as
      succeeded and returns that dict, so rows that the job writes exist exactly if it succeeded,
      however and whenever its process dies, or
    - `Pieces`: the rest is done in pieces by all workers on all hosts. The job succeeds with what
      ``conclude`` returns once all of them did, and fails when one does.

    It fails by raising ``InvalidProblemError``, ``InfeasibleError`` or ``Refusal`` (their sentence
    is shown to the user) or anything else (the user reads that it failed on our side; the log has
    the rest).
    It must check ``context.should_stop`` at least every half second, and may be called again after
    its process was killed: files that it writes must be replaceable, and long work saved through
    ``context.checkpoint``.

    Parameters
    ----------
    name : str
        ``app.verb``, such as ``"roommates.learn"``.
    verb : str
        For titles and the audit log: ``"Learn"``.
    options : Any
        ``subject``, which the pages of jobs link to; ``queue``, of the workers that run it;
        ``target_gap``, ``objective_label``, ``lower_bound_label``, ``axis_label`` of
        :class:`JobKind`, for the convergence plot;
        ``kept``, from the job to the sentence that a cancelled or failed one ends with instead of
        "Nothing was changed."; ``standing`` and ``conclude`` of a kind that returns `Pieces`.
    """

    def decorate(run: RunFunction) -> RunFunction:
        if name in _kinds and _kinds[name].run.__module__ != run.__module__:
            raise ValueError(f"Two functions claim the job kind {name}.")
        _kinds[name] = JobKind(name=name, run=run, verb=verb, **options)
        return run

    return decorate


def find_kind(name: str) -> JobKind:
    """Return the kind of this name; KeyError when no application registered it."""
    return _kinds[name]


def queue_of(kind: str) -> Queue:
    """Return the queue of a kind; one that only an earlier version knew fails quickly."""
    found = _kinds.get(kind)
    return found.queue if found else Queue.SHORT


def kinds_of(queue: Queue) -> list[str]:
    """Return the names of the kinds of a queue."""
    return [kind.name for kind in _kinds.values() if kind.queue == queue]


def subject_of(kind: str) -> Subject | None:
    """Return what jobs of this kind work on; None where nothing of theirs has a page."""
    found = _kinds.get(kind)  # None: an earlier version of the code knew it
    return found.subject if found else None


def what_is_kept(job: Job) -> str:
    """Return what a job that did not succeed leaves behind, in one sentence."""
    kind = _kinds.get(job.kind)  # None: an earlier version of the code knew it
    return kind.kept(job) if kind else nothing_is_kept(job)
