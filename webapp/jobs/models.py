"""Models of long computations. The row holds the state; the queue only carries its id."""

import uuid
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy, ngettext

from webapp.common import formats
from webapp.common.models import OrganisationOwned
from webapp.files.storage import named_path, organisation_folder


class JobState(models.TextChoices):
    """State of a job; the last three are final."""

    QUEUED = "queued", gettext_lazy("Queued")
    RUNNING = "running", gettext_lazy("Running")
    SUCCEEDED = "succeeded", gettext_lazy("Done")
    FAILED = "failed", gettext_lazy("Failed")
    CANCELLED = "cancelled", gettext_lazy("Cancelled")


ACTIVE_STATES = (JobState.QUEUED, JobState.RUNNING)


class Job(OrganisationOwned):
    """One long computation of one organisation; ``created_by`` is its owner.

    Every change of state is a compare-and-set on ``state`` and ``claim``: a process that lost its
    claim (it was thought dead and another one continued) changes nothing any more.

    A job that is too large for one process is split into pieces (`webapp.jobs.pieces`): jobs of
    their own, claimed by any worker on any host, and hidden from lists.
    """

    HEAVY = ("result",)
    # Kinds with this prefix belong to the whole installation: only operators see and cancel them.
    OF_INSTALLATION = "operations."

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=60)
    title = models.CharField(max_length=200)
    parameters = models.JSONField(default=dict)
    state = models.CharField(max_length=12, choices=JobState.choices, default=JobState.QUEUED)
    progress = models.FloatField(null=True)  # 0..1; None: the amount of work is unknown
    sentence = models.CharField(max_length=300, blank=True)
    seconds_left = models.FloatField(null=True)
    error = models.CharField(max_length=500, blank=True)  # in the user's words
    result = models.JSONField(default=dict)
    seed = models.BigIntegerField()
    stores_bytes = models.BigIntegerField(default=0)  # reserved for bytes still to be written
    code_version = models.CharField(max_length=60)
    attempt = models.PositiveSmallIntegerField(default=0)
    deaths = models.PositiveSmallIntegerField(default=0)  # attempts whose process died by itself
    resumed_from = models.PositiveIntegerField(null=True)  # step at which the last attempt resumed
    started_at = models.DateTimeField(null=True)  # of the first attempt
    attempt_started_at = models.DateTimeField(null=True)  # None while it waits
    ran_before = models.FloatField(default=0.0)  # seconds, of the attempts that were interrupted
    finished_at = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    n_competitors = models.PositiveIntegerField(
        default=0, help_text="other processes for which it waits; 0: it has the processor"
    )
    cancel_requested_at = models.DateTimeField(null=True)
    cancelled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    cancel_reason = models.CharField(max_length=200, blank=True)  # in the user's words
    request_id = models.CharField(max_length=64, blank=True)  # id of the request that started it
    request_key = models.CharField(max_length=64, blank=True)  # the same if sent twice
    parent = models.ForeignKey(
        "self", null=True, on_delete=models.CASCADE, related_name="pieces"
    )  # of a piece: the job that it is a part of
    n_pieces = models.PositiveIntegerField(default=0)  # if split; no process runs the job itself
    claim = models.UUIDField(null=True)  # claim of the process that runs it
    worker = models.CharField(max_length=120, blank=True)  # its name by liveness.py
    worker_parent = models.CharField(max_length=120, blank=True)  # name of its parent process
    # Number of processes killed for lack of memory on its machine when this attempt began.
    memory_kills = models.PositiveBigIntegerField(null=True)
    dispatched_at = models.DateTimeField(null=True)
    dispatch_count = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["organisation", "-created_at"]),
            models.Index(fields=["state", "heartbeat_at"]),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "request_key"],
                condition=~models.Q(request_key=""),
                name="one_job_a_request_key",
            )
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def folder(self) -> Path:
        """Return the folder of intermediate files on the running host; removed when it is over."""
        return organisation_folder(self.organisation_id) / "jobs" / str(self.pk)

    @property
    def checkpoint_path(self) -> Path:
        """Return the stored checkpoint, from which any host resumes; removed when it is over."""
        return named_path(self.organisation_id, "checkpoints", self.pk)

    @property
    def is_of_installation(self) -> bool:
        """Return True if it concerns the whole installation, such as a backup."""
        return self.kind.startswith(self.OF_INSTALLATION)

    @property
    def is_active(self) -> bool:
        """Return True if the job still waits or runs; pages poll while it does."""
        return self.state in ACTIVE_STATES

    @property
    def competition(self) -> str:
        """Return a sentence if other programs keep a running job waiting; '' otherwise."""
        if self.state != JobState.RUNNING or not self.n_competitors:
            return ""
        return ngettext(
            "waiting for processor time: %(count)s other process",
            "waiting for processor time: %(count)s other processes",
            self.n_competitors,
        ) % {"count": f"{self.n_competitors:,}"}

    @property
    def is_cancelling(self) -> bool:
        """Return True if a running job was asked to stop and has not stopped yet."""
        return self.state == JobState.RUNNING and self.cancel_requested_at is not None

    @property
    def elapsed(self) -> timedelta:
        """Return the running time of the job in all attempts, without its waiting time."""
        before = timedelta(seconds=self.ran_before)
        if self.attempt_started_at is None:
            return before
        this_attempt = (self.finished_at or timezone.now()) - self.attempt_started_at
        return before + max(this_attempt, timedelta())  # a clock may have been set back

    @property
    def time_left(self) -> str:
        """Return the estimate in words, 'about 20 s'; '' while unknown."""
        return formats.time_left(self.seconds_left)

    @property
    def announced_percent(self) -> int | None:
        """Return the progress in steps of ten, for screen readers."""
        return None if self.progress is None else 10 * int(10 * self.progress)

    @property
    def percent(self) -> int | None:
        """Return the progress as a whole per cent, rounded down; None while unknown."""
        return None if self.progress is None else int(100 * self.progress)


class JobTracePoint(models.Model):
    """Point of the convergence plot. Bounds are in the job's own unit (nats for learning)."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="trace")
    iteration = models.PositiveIntegerField()
    seconds = models.FloatField()  # of computing, over all attempts
    objective = models.FloatField(null=True)  # upper bound on the optimum
    lower_bound = models.FloatField(null=True)
    gap = models.FloatField(null=True)
    relative_gap = models.FloatField(null=True)

    class Meta:
        ordering = ["iteration"]
        constraints = [
            models.UniqueConstraint(fields=["job", "iteration"], name="one_trace_point_a_step")
        ]

    def __str__(self) -> str:
        return f"step {self.iteration}"


class Worker(models.Model):
    """A worker that answered the sweep: its queue, and the time of its last answer."""

    is_of_installation = True

    name = models.CharField(max_length=120, unique=True)  # "QUEUE-MACHINE@HOST"
    process = models.CharField(max_length=120, blank=True)  # name of its main process
    processes = models.PositiveSmallIntegerField(default=0)
    memory_used = models.BigIntegerField(default=0, help_text="bytes of its host; 0: unknown")
    memory_total = models.BigIntegerField(default=0, help_text="bytes of its host; 0: unknown")
    seen_at = models.DateTimeField()
    silent: float  # seconds since its answer; workers() sets it

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def queue(self) -> str:
        """Return the queue of its jobs: "short", "long" or "card"."""
        return self.name.partition("-")[0]

    @property
    def host(self) -> str:
        """Return the name of its host, for people."""
        return self.name.partition("@")[2]


class JobListVisit(models.Model):
    """Time when a person last opened an organisation's list of jobs; the bell counts from there."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    organisation = models.ForeignKey(
        "accounts.Organisation", on_delete=models.CASCADE, related_name="+"
    )
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "organisation"], name="one_visit_a_person_and_organisation"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_id} at {self.seen_at}"
