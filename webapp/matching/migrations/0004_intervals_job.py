"""Add a job for the intervals, and the time at which somebody asked learning to stop."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("matching", "0003_curves_apart"), ("jobs", "0007_pieces")]

    operations = [
        migrations.AddField(
            "learnedmodel",
            "intervals_job",
            models.OneToOneField(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="model_with_intervals",
                to="jobs.job",
            ),
        ),
        migrations.AddField("learnedmodel", "stop_asked_at", models.DateTimeField(null=True)),
    ]
