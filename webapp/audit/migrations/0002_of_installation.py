"""Mark lines about hosts, workers and backups as for operators only, including existing lines."""

from django.db import migrations, models


def mark(apps, schema_editor):
    lines = apps.get_model("audit", "AuditLine").objects.using(schema_editor.connection.alias)
    jobs = apps.get_model("jobs", "Job").objects.using(schema_editor.connection.alias)
    keys = [str(key) for key in jobs.filter(kind="operations.backup").values_list("pk", flat=True)]
    lines.filter(verb="took out of use").update(is_of_installation=True)
    lines.filter(target_type="job", details__kind="operations.backup").update(
        is_of_installation=True
    )
    for first in range(0, len(keys), 500):
        part = keys[first : first + 500]
        lines.filter(target_type="job", target_id__in=part).update(is_of_installation=True)


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial"), ("jobs", "0011_competitors")]

    operations = [
        migrations.AddField(
            "auditline", "is_of_installation", models.BooleanField(default=False)
        ),
        migrations.RunPython(mark, migrations.RunPython.noop),
    ]
