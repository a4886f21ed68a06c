"""Static files under names that contain their hash, so that browsers may keep them for ever."""

from typing import Any

from whitenoise.storage import CompressedManifestStaticFilesStorage


class ForgivingManifestStorage(CompressedManifestStaticFilesStorage):
    """Falls back to the plain name for a file that was not collected (yet): a page without style
    says more than an error page."""

    manifest_strict = False

    def hashed_name(self, name: str, content: Any = None, filename: str | None = None) -> str:
        """Return the name with its hash, or the name alone when the file is not there."""
        try:
            return super().hashed_name(name, content, filename)
        except ValueError:
            return name
