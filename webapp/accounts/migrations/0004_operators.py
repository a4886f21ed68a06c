"""Add operators, who look after the installation as administrators of organisations did before.

An account that was made a superuser on the command line becomes an operator; an administrator does
not. Every other operator is made by `manage.py make_operator NAME`.
"""

from django.db import migrations, models


def from_superusers(apps, schema_editor):
    people = apps.get_model("accounts", "User").objects.using(schema_editor.connection.alias)
    people.filter(is_superuser=True, organisation__isnull=False).update(is_operator=True)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0003_organisation_time_zone")]

    operations = [
        migrations.AddField("user", "is_operator", models.BooleanField(default=False)),
        migrations.RunPython(from_superusers, migrations.RunPython.noop),
    ]
