"""Long computations. The row is the truth; the queue only carries its id."""

import uuid
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import models
from django.utils import timezone

from webapp.common import formats
from webapp.common.models import OrganisationOwned
from webapp.files.storage import array_path, organisation_folder


class JobState(models.TextChoices):
    """Where a job stands; it leaves the last three never."""

    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    SUCCEEDED = "succeeded", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


ACTIVE_STATES = (JobState.QUEUED, JobState.RUNNING)


class Job(OrganisationOwned):
    """One long computation of one organisation; ``created_by`` is its owner.

    Every change of state is a compare-and-set on ``state`` and ``claim``: a process that lost its
    claim (it was thought dead and somebody else went on) changes nothing any more.

    A job that is too large for one process is dealt out in pieces (`webapp.jobs.pieces`): jobs of
    their own, claimed by any worker on any host, which no list shows.
    """

    HEAVY = ("result",)

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
    stores_bytes = models.BigIntegerField(default=0)  # reserved for what it still writes
    code_version = models.CharField(max_length=60)
    attempt = models.PositiveSmallIntegerField(default=0)
    resumed_from = models.PositiveIntegerField(null=True)  # step at which the last attempt went on
    started_at = models.DateTimeField(null=True)  # of the first attempt
    attempt_started_at = models.DateTimeField(null=True)  # None while it waits
    ran_before = models.FloatField(default=0.0)  # seconds, of the attempts that were interrupted
    finished_at = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    cancel_requested_at = models.DateTimeField(null=True)
    cancelled_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    request_id = models.CharField(max_length=64, blank=True)  # of the request that started it
    parent = models.ForeignKey(
        "self", null=True, on_delete=models.CASCADE, related_name="pieces"
    )  # of a piece: the job whose work it is a part of
    n_pieces = models.PositiveIntegerField(default=0)  # dealt out; no process runs the job itself
    claim = models.UUIDField(null=True)  # of the process that runs it
    worker = models.CharField(max_length=120, blank=True)  # the name that liveness.py gives
    dispatched_at = models.DateTimeField(null=True)
    dispatch_count = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["organisation", "-created_at"]),
            models.Index(fields=["state", "heartbeat_at"]),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def folder(self) -> Path:
        """Where its intermediate files lie on the host that runs it; removed when it is over."""
        return organisation_folder(self.organisation_id) / "jobs" / str(self.pk)

    @property
    def checkpoint_path(self) -> Path:
        """Where what it goes on from is stored, for whichever host goes on; removed like that."""
        return array_path(self.organisation_id, "checkpoints", self.pk)

    @property
    def is_active(self) -> bool:
        """Whether the job still waits or runs; pages poll while it does."""
        return self.state in ACTIVE_STATES

    @property
    def is_cancelling(self) -> bool:
        """Whether somebody asked a running job to stop and it has not stopped yet."""
        return self.state == JobState.RUNNING and self.cancel_requested_at is not None

    @property
    def elapsed(self) -> timedelta:
        """How long the job has run, or ran, in all attempts; not the time that it waited."""
        before = timedelta(seconds=self.ran_before)
        if self.attempt_started_at is None:
            return before
        this_attempt = (self.finished_at or timezone.now()) - self.attempt_started_at
        return before + max(this_attempt, timedelta())  # a clock may have been set back

    @property
    def time_left(self) -> str:
        """The estimate in words, 'about 20 s'; '' while unknown."""
        return formats.time_left(self.seconds_left)

    @property
    def announced_percent(self) -> int | None:
        """Progress in tens, as a screen reader hears it."""
        return None if self.progress is None else 10 * int(10 * self.progress)

    @property
    def percent(self) -> int | None:
        """Progress as a whole per cent, rounded down; None while unknown."""
        return None if self.progress is None else int(100 * self.progress)


class JobTracePoint(models.Model):
    """One point of the convergence plot. Bounds in the job's own unit (nats for learning)."""

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
    """A worker that answered the sweep: who takes jobs of which queue, and when it was heard."""

    name = models.CharField(max_length=120, unique=True)  # "QUEUE-MACHINE@HOST"
    processes = models.PositiveSmallIntegerField(default=0)
    memory_used = models.BigIntegerField(default=0, help_text="bytes of its host; 0: unknown")
    memory_total = models.BigIntegerField(default=0, help_text="bytes of its host; 0: unknown")
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def queue(self) -> str:
        """Whose jobs it takes: "short" or "long"."""
        return self.name.partition("-")[0]

    @property
    def host(self) -> str:
        """The name of its host, for people."""
        return self.name.partition("@")[2]


class JobListVisit(models.Model):
    """When a person last opened an organisation's list of jobs; the bell counts from there."""

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
