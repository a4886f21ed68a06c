"""Checks that refuse to start with unsafe settings or folders."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register

from webapp.private_files import close_files_to_others, close_to_others, database_files

MIN_SECRET_LENGTH = 50
_WEAK_SECRETS = ("django-insecure", "changeme", "change-me", "secret", "default", "test", "dev")


@register(Tags.security)
def check_secret_key(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a default, short or monotonous secret key outside debug."""
    key = str(settings.SECRET_KEY)
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
    """Refuse a queue that would deliver a job again while it still runs."""
    visible = settings.CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"]
    if visible > settings.JOB_HARD_TIME_LIMIT:
        return []
    return [
        Error(
            "The visibility timeout of the broker is not above the hard time limit of a job.",
            id="bethe_hall.E002",
        )
    ]


@register(Tags.security)
def check_private_files(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Correct the modes of the installation's files, and refuse files that stay open to others."""
    instance, media = Path(settings.INSTANCE_DIR), Path(settings.MEDIA_ROOT)
    instance.mkdir(mode=0o700, parents=True, exist_ok=True)
    backups = Path(settings.BACKUP_FOLDER)
    problems = [close_to_others(instance, large=media)]
    if not media.is_relative_to(instance):
        problems.append(close_to_others(media, large=media))
    if not backups.is_relative_to(instance):  # another person's folder, with files of ours in it
        problems.append(close_files_to_others(backups.glob("hall-*.tar")))
    if settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        name = str(settings.DATABASES["default"]["NAME"])
        if Path(name).is_absolute():  # not a database in memory
            problems.append(close_files_to_others(database_files(Path(name))))
    return [Error(problem, id="bethe_hall.E003") for problem in problems if problem]


def refuse_unsafe_settings() -> None:
    """End the process when one of our checks finds an error; for entry points without checks.

    Raises
    ------
    SystemExit
        With the sentences of the errors.
    """
    found = [
        *check_secret_key(None),
        *check_visibility_timeout(None),
        *check_private_files(None),
    ]
    if found:
        raise SystemExit("\n".join(f"{message.msg} {message.hint or ''}" for message in found))
