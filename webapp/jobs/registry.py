"""Registry of job kinds and the functions that run them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.utils import translation
from django.utils.translation import gettext as _

from webapp.charts import ConvergenceWords
from webapp.common.models import OrganisationOwned
from webapp.jobs.context import JobContext
from webapp.jobs.models import Job


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a job that any worker may run: its function's parameters, and its reserved room."""

    parameters: dict[str, Any]
    stores: int = 0


@dataclass(frozen=True, slots=True)
class Pieces:
    """Result of a function whose work continues in pieces; ``kind`` names the pieces' function.

    ``seconds_left`` is the expected time for all pieces, until some of them are done.
    """

    kind: str
    pieces: list[Piece]
    seconds_left: float | None = None


Outcome = dict[str, Any] | Callable[[], dict[str, Any] | None] | Pieces | None
RunFunction = Callable[[JobContext], Outcome]


class Queue(StrEnum):
    """Workers that run a kind of job: short work never waits behind hours of learning."""

    SHORT = "short"  # seconds to a few minutes, while a person waits
    LONG = "long"  # up to hours
    CARD = "card"  # up to hours, much quicker on a graphics card


def keeps_nothing(job: Job) -> str:
    """Return the sentence of a job that leaves nothing behind unless it succeeds."""
    return _("Nothing was changed.")


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of a kind's jobs, and the page that shows it."""

    parameter: str  # the parameter of a job that holds its key
    model: type[OrganisationOwned]
    url_name: str  # name of its page's URL, which takes only the key
    label: str  # "Model": name of the link to that page in lists
    opens: str  # "Open the model": name of the same link on the page of a job
    removed: str  # "The model was removed.": why a job of a removed subject ends


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job: its function, and its texts on pages."""

    name: str  # "roommates.learn"
    run: RunFunction
    verb: str  # "Learn": first word of the title
    subject: Subject | None = None
    queue: Queue = Queue.SHORT
    target_gap: float | None = None  # relative gap drawn as the target of the convergence plot
    words: ConvergenceWords = field(default_factory=ConvergenceWords)  # of the convergence plot
    # Text on the results that a cancelled or failed job keeps: "5 of 20 images are predicted."
    kept: Callable[[Job], str] = keeps_nothing
    # Of a kind in pieces: amount done of the whole, and its result when all is done.
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
    the rest). It must check ``context.should_stop`` at least every half second, and may be called
    again after its process was killed: files that it writes must be replaceable, and long work
    saved through ``context.checkpoint``.

    Parameters
    ----------
    name : str
        ``app.verb``, such as ``"roommates.learn"``.
    verb : str
        For titles, translated when they are shown: ``"Learn"``.
    options : Any
        ``subject``, the link target of its pages; ``queue`` of the workers that run it;
        ``target_gap`` and ``words`` of :class:`JobKind`, for the convergence plot; ``kept``, a
        function of the job that returns the last sentence of a cancelled or failed one instead of
        "Nothing was changed."; ``standing`` and ``conclude`` of a kind that returns `Pieces`.
    """

    def decorate(run: RunFunction) -> RunFunction:
        if name in _kinds and _kinds[name].run.__module__ != run.__module__:
            raise ValueError(f"Two functions claim the job kind {name}.")
        _kinds[name] = JobKind(name=name, run=run, verb=verb, **options)
        return run

    return decorate


def find_kind(name: str) -> JobKind:
    """Return the kind of this name; raise KeyError if no application registered it."""
    return _kinds[name]


def is_known(kind: str) -> bool:
    """Return False for a kind that only an earlier version had."""
    return kind in _kinds


def queue_of(kind: str) -> Queue:
    """Return the queue of a kind; jobs of a kind from an earlier version fail quickly."""
    found = _kinds.get(kind)
    return found.queue if found else Queue.SHORT


def stored_title(kind: JobKind, name: str) -> str:
    """Return the title that a job stores and programs get: its verb in English, and its name."""
    with translation.override("en"):
        verb = str(kind.verb)
    return f"{verb}: {name}"[: Job._meta.get_field("title").max_length] if name else verb


def title_of(job: Job) -> str:
    """Return the title of a job with its verb in the language of the page."""
    kind = _kinds.get(job.kind)
    if kind is None:  # a kind of an earlier version
        return job.title
    before = stored_title(kind, "")
    if job.title == before:
        return str(kind.verb)
    if not job.title.startswith(f"{before}: "):
        return job.title  # stored by an earlier version
    return _("%(verb)s: %(name)s") % {"verb": kind.verb, "name": job.title[len(before) + 2 :]}


def kinds_of(queue: Queue) -> list[str]:
    """Return the names of the kinds of a queue."""
    return [kind.name for kind in _kinds.values() if kind.queue == queue]


def subject_of(kind: str) -> Subject | None:
    """Return the subject of a kind's jobs; None if it has no page."""
    found = _kinds.get(kind)  # None: a kind of an earlier version
    return found.subject if found else None


def gone_subject(job: Job) -> Subject | None:
    """Return the subject of a job if it was removed; None if it exists."""
    subject = subject_of(job.kind)
    if subject is None or subject.parameter not in job.parameters:
        return None
    key, rows = job.parameters[subject.parameter], subject.model._default_manager
    return None if rows.filter(pk=key).exists() else subject


def kept_results_sentence(job: Job) -> str:
    """Return in one sentence what an unsuccessful job leaves behind."""
    kind = _kinds.get(job.kind)  # None: a kind of an earlier version
    return kind.kept(job) if kind else keeps_nothing(job)
