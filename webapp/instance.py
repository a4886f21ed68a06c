"""The instance folder: all data of one installation, and none of its code."""

import contextlib
import os
import secrets
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent


def instance_path() -> Path:
    """Return the folder of database, files, logs and secrets; ``BETHE_HALL_INSTANCE`` moves it."""
    return Path(os.environ.get("BETHE_HALL_INSTANCE") or BASE_DIR / "instance").resolve()


def instance_folder() -> Path:
    """Return the same folder, and make it if it is absent."""
    folder = instance_path()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def read_or_create_secret(folder: Path | None = None) -> str:
    """Return the installation's secret key; its first use creates it with mode 600."""
    folder = folder or instance_folder()
    path = folder / "secret_key"
    with contextlib.suppress(FileExistsError):
        # O_EXCL: if two processes start together, exactly one writes the key.
        temporary = folder / f".secret_key.{os.getpid()}.{secrets.token_hex(4)}"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            # Hexadecimal digits, since letters may spell a word for which Django refuses a key.
            file.write(secrets.token_hex(48))
        try:
            os.link(temporary, path)
        finally:
            temporary.unlink()
    return path.read_text(encoding="ascii").strip()
