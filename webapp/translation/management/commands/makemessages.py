"""Write the catalogues of sentences: python manage.py makemessages --locale en.

With --domain djangojs it writes those of the scripts.
"""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser
from django.core.management.commands import makemessages

SCRIPTS = "djangojs"  # the domain of the sentences of scripts


class Command(makemessages.Command):
    """Collect the sentences of all templates and modules, or scripts, in `webapp/locale`.

    Django would give an app with a folder of its own for translations a catalogue of its own.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.set_defaults(
            extensions=["html,txt,py,jinja"],
            add_location="file",
            no_wrap=True,
            no_obsolete=True,
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["domain"] == SCRIPTS:
            options["extensions"] = ["js"]
        super().handle(*args, **options)

    def find_files(self, root: str) -> list[Any]:
        is_product = _is_script if self.domain == SCRIPTS else _is_product
        found = [file for file in super().find_files(root) if is_product(file.path)]
        for file in found:
            file.locale_dir = str(settings.LOCALE_PATHS[0])
        return found


def _is_product(path: str) -> bool:
    """Return True for the folders whose sentences reach a page, a mail or a file."""
    parts = Path(path).parts
    return parts[0] in ("templates", "webapp") and "migrations" not in parts


def _is_script(path: str) -> bool:
    """Return True for the product's own scripts."""
    parts = Path(path).parts
    return parts[0] == "static" and "vendor" not in parts
