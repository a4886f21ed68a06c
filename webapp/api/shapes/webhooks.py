"""Addresses of programs that are told what happens, and what was delivered."""

from typing import Literal

from pydantic import Field

from webapp.api.shapes.base import Answer, Body, Key, Time
from webapp.common.events import EVENTS

Event = Literal[tuple(EVENTS)]


class Webhook(Answer):
    """An address that is told some events."""

    id: Key = Field(validation_alias="pk")
    url: str
    events: list[Event]
    is_paused: bool
    pause_reason: str
    created_at: Time


class NewWebhook(Body):
    """An address to be told events, or what one is to be."""

    url: str = Field(max_length=500)
    events: list[Event] = Field(min_length=1)
    is_paused: bool = False


class Secret(Answer):
    """The secret that signs deliveries, shown this once."""

    id: Key
    secret: str = Field(description="whsec_…, as the libraries of Standard Webhooks take it")


class Delivery(Answer):
    """One event on its way to one address."""

    id: int = Field(validation_alias="pk")
    key: Key = Field(description="webhook-id of every attempt")
    event: str
    state: Literal["waiting", "sending", "sent", "failed"]
    attempts: int
    answer: int | None = Field(description="status that the program answered last")
    error: str
    created_at: Time
    sent_at: Time | None
