"""Encrypt the names of files that students sent, as their answers are.

Audit lines about downloads held the name too: they get the person and the question instead.
"""

import json

from django.db import migrations, models

from webapp.encryption.fields import SealedJSONField, seal, unseal

VERB = "downloaded a student's file"


def seal_names(apps, schema_editor):
    """Store every name as the sealed field does."""
    for row in _rows(apps, schema_editor):
        row.name = seal(json.dumps(row.name))
        row.save(update_fields=["name"])


def unseal_names(apps, schema_editor):
    """Store every name as plain text again."""
    for row in _rows(apps, schema_editor):
        row.name = json.loads(unseal(row.name))[:150]
        row.save(update_fields=["name"])


def _rows(apps, schema_editor):
    rows = apps.get_model("surveys", "AnswerFile").objects.using(schema_editor.connection.alias)
    return rows.only("name").iterator(500)


def take_out(apps, schema_editor):
    """Remove names of files from audit lines."""
    lines = apps.get_model("audit", "AuditLine").objects.using(schema_editor.connection.alias)
    for line in lines.filter(verb=VERB).only("details").iterator(500):
        line.details.pop("file", None)
        line.save(update_fields=["details"])


class Migration(migrations.Migration):
    dependencies = [("surveys", "0007_no_links_in_mails"), ("audit", "0002_of_installation")]

    operations = [
        migrations.AlterField("answerfile", "name", models.TextField()),
        migrations.RunPython(seal_names, unseal_names),
        migrations.RunPython(take_out, migrations.RunPython.noop),
        migrations.AlterField("answerfile", "name", SealedJSONField()),
    ]
