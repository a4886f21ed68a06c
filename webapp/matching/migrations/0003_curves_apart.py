"""Move the curves of a check into a column of their own, and index pairs by student."""

from django.db import migrations, models

CURVES = ("roc", "baseline_roc", "reliability", "raw_reliability")


def take_apart(apps, schema_editor):
    """Move the curves out of the findings, which lists read."""
    learned = apps.get_model("matching", "LearnedModel")
    for model in learned.objects.exclude(findings={}).only("findings").iterator():
        curves = {name: model.findings.pop(name) for name in CURVES if name in model.findings}
        learned.objects.filter(pk=model.pk).update(findings=model.findings, curves=curves)


def put_together(apps, schema_editor):
    learned = apps.get_model("matching", "LearnedModel")
    for model in learned.objects.exclude(curves={}).only("findings", "curves").iterator():
        learned.objects.filter(pk=model.pk).update(findings={**model.findings, **model.curves})


class Migration(migrations.Migration):
    dependencies = [("matching", "0002_rule_events")]

    operations = [
        migrations.AddField("learnedmodel", "curves", models.JSONField(default=dict)),
        migrations.RunPython(take_apart, put_together),
        migrations.AddIndex(
            "proposedpair",
            models.Index(fields=["proposal", "first_number"], name="pair_by_first_number"),
        ),
        migrations.AddIndex(
            "proposedpair",
            models.Index(fields=["proposal", "second_number"], name="pair_by_second_number"),
        ),
    ]
