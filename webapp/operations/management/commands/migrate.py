"""`migrate` of Django, with a quick way for a database that has no tables yet."""

from typing import Any

from django.apps import apps
from django.core.management.base import CommandParser
from django.core.management.commands import migrate
from django.db import connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

_DJANGO_ONLY = ("app_label", "fake", "fake_initial", "plan", "check_unapplied", "prune")


class Command(migrate.Command):
    """Make the tables of an empty database from the models; migrate any other one as Django does.

    An empty database has nothing to migrate, and 140 migrations take 20 processor seconds. What
    both ways make is the same, which ``tests/webapp/operations/test_migrate.py`` compares.
    """

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--one-by-one",
            action="store_true",
            help="apply every migration, also to an empty database",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        one_by_one = options.pop("one_by_one", False)
        connection = connections[options["database"]]
        if not (one_by_one or any(options[name] for name in _DJANGO_ONLY) or _tables(connection)):
            if options["verbosity"] >= 1:
                self.stdout.write("Making the tables of an empty database.")
            make_tables(connection)
        super().handle(*args, **options)


def make_tables(connection: BaseDatabaseWrapper) -> None:
    """Make every table in an empty database and note all migrations as applied, or nothing."""
    noted = list(MigrationLoader(None).disk_migrations)
    with connection.schema_editor() as editor:
        for app in apps.get_app_configs():
            if app.models_module is None:
                continue
            for model in router.get_migratable_models(
                app, connection.alias, include_auto_created=False
            ):
                if model._meta.can_migrate(connection):
                    editor.create_model(model)
        recorder = MigrationRecorder(connection)
        editor.create_model(recorder.Migration)
        for app_label, name in noted:
            recorder.record_applied(app_label, name)


def _tables(connection: BaseDatabaseWrapper) -> list[str]:
    with connection.cursor() as cursor:
        return connection.introspection.table_names(cursor)
