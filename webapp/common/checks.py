"""Refusals to start: settings with which the product would not be safe."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register

MIN_SECRET_LENGTH = 50
_WEAK_SECRETS = ("django-insecure", "changeme", "change-me", "secret", "default", "test", "dev")


@register(Tags.security)
def check_secret_key(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a default, short or monotonous secret outside debug."""
    key = settings.SECRET_KEY
    if settings.DEBUG:
        return []
    lowered = key.lower()
    is_weak = (
        len(key) < MIN_SECRET_LENGTH
        or len(set(key)) < 5
        or any(lowered.startswith(word) for word in _WEAK_SECRETS)
    )
    if not is_weak:
        return []
    return [
        Error(
            "SECRET_KEY is a default or too short; the product does not start with it.",
            hint="Unset SECRET_KEY to use the instance folder's, or set 50 random characters.",
            id="bethe_hall.E001",
        )
    ]


@register(Tags.security)
def check_visibility_timeout(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a queue that would deliver a job again while it is still running."""
    visible = settings.CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"]
    if visible > settings.JOB_HARD_TIME_LIMIT:
        return []
    return [
        Error(
            "The visibility timeout of the broker is not above the hard time limit of a job.",
            id="bethe_hall.E002",
        )
    ]


def refuse_unsafe_settings() -> None:
    """End the process when a check of ours finds an error; for entry points that run no checks.

    Raises
    ------
    SystemExit
        With the sentences of the errors.
    """
    found = [*check_secret_key(None), *check_visibility_timeout(None)]
    if found:
        raise SystemExit("\n".join(f"{message.msg} {message.hint or ''}" for message in found))
