"""The instance folder: everything that one installation keeps, and nothing that is in the code."""

import contextlib
import os
import secrets
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent


def instance_folder() -> Path:
    """Return the folder of database, files, logs and secrets; ``BETHE_HALL_INSTANCE`` moves it."""
    folder = Path(os.environ.get("BETHE_HALL_INSTANCE") or BASE_DIR / "instance").resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def read_or_create_secret(folder: Path) -> str:
    """Return the installation's own secret key, made on the first start and readable by us only."""
    path = folder / "secret_key"
    with contextlib.suppress(FileExistsError):
        # O_EXCL: of two processes that start together exactly one writes the key.
        temporary = folder / f".secret_key.{os.getpid()}.{secrets.token_hex(4)}"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            # Hexadecimal digits: letters may spell a word for which a key is refused.
            file.write(secrets.token_hex(48))
        try:
            os.link(temporary, path)
        finally:
            temporary.unlink()
    return path.read_text(encoding="ascii").strip()


def is_set(name: str) -> bool:
    """Whether an environment variable says yes."""
    return os.environ.get(name, "").strip().lower() in {"1", "true", "yes", "on"}


def listed(name: str, default: str = "") -> list[str]:
    """Return what an environment variable lists, with commas."""
    words = (word.strip() for word in os.environ.get(name, default).split(","))
    return [word for word in words if word]
