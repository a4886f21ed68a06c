from django.db import migrations, models

# Rule columns with such names counted as needs by default until now.
_WORDS = ("accessib", "need", "step", "quiet")


def name_needs(apps, schema_editor):
    """Keep counting the columns that placements of a cohort counted by default."""
    cohorts = apps.get_model("cohorts", "Cohort").objects.using(schema_editor.connection.alias)
    for cohort in cohorts.only("pk", "constraints").iterator():
        needs = [c for c in cohort.constraints if any(word in c.casefold() for word in _WORDS)]
        if needs:
            cohorts.filter(pk=cohort.pk).update(needs=needs)


class Migration(migrations.Migration):
    dependencies = [
        ("cohorts", "0006_draft_purpose"),
    ]

    operations = [
        migrations.AddField(
            model_name="cohort",
            name="needs",
            field=models.JSONField(default=list),
        ),
        migrations.RunPython(name_needs, migrations.RunPython.noop, elidable=True),
    ]
