"""Static files named with their hash, so that browsers may keep them for ever."""

from typing import Any

from whitenoise.storage import CompressedManifestStaticFilesStorage


class ForgivingManifestStorage(CompressedManifestStaticFilesStorage):
    """Storage that falls back to the plain name of a file not collected yet, without an error."""

    manifest_strict = False

    def hashed_name(self, name: str, content: Any = None, filename: str | None = None) -> str:
        """Return the name with its hash, or the plain name if the file is absent."""
        try:
            return super().hashed_name(name, content, filename)
        except ValueError:
            return name
