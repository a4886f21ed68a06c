"""Shapes of webhooks and of their deliveries."""

from typing import Annotated, Literal

from pydantic import Field

from webapp.api.shapes.base import Answer, Body, Key, OneOf, Time
from webapp.common.events import EVENTS

Event = Annotated[str, OneOf(EVENTS)]


class Webhook(Answer):
    """A URL that receives chosen events."""

    id: Key = Field(validation_alias="pk")
    url: str
    events: list[Event]
    is_paused: bool
    pause_reason: str
    created_at: Time


class NewWebhook(Body):
    """A webhook to add, or the new values of one."""

    url: str = Field(max_length=500)
    events: list[Event] = Field(min_length=1)
    is_paused: bool = False


class Secret(Answer):
    """The secret that signs deliveries, shown only now."""

    id: Key
    secret: str = Field(description="whsec_…, as the libraries of Standard Webhooks take it")


class Delivery(Answer):
    """Delivery of one event to one webhook."""

    id: int = Field(validation_alias="pk")
    key: Key = Field(description="webhook-id of every attempt")
    event: str
    state: Literal["waiting", "sending", "sent", "failed"]
    attempts: int
    answer: int | None = Field(description="status that the program answered last")
    error: str
    created_at: Time
    sent_at: Time | None
