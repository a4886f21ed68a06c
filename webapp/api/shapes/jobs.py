"""Shapes of jobs, and of a token's person."""

from typing import Literal

from pydantic import Field

from webapp.api.shapes.base import Answer, Key, Time


class Me(Answer):
    """The person of a token, the organisation, and the rights of the token."""

    username: str
    role: str
    organisation: str
    may_change: bool


class Job(Answer):
    """A long computation and its state."""

    id: Key = Field(validation_alias="pk")
    kind: str
    title: str
    state: Literal["queued", "running", "succeeded", "failed", "cancelled"]
    progress: float | None = Field(description="0 to 1; null while unknown")
    sentence: str
    error: str
    seconds_left: float | None
    seed: int
    code_version: str
    created_at: Time
    started_at: Time | None
    finished_at: Time | None


class TracePoint(Answer):
    """One step of an optimisation."""

    iteration: int
    seconds: float
    objective: float | None = Field(description="upper bound, nats")
    lower_bound: float | None = Field(description="nats")
    relative_gap: float | None


class Trace(Answer):
    """Convergence of a job."""

    points: list[TracePoint]
