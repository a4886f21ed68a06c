from django.db import migrations, models


def count_from_the_first_attempt(apps, schema_editor):
    """Use the first attempt's start, since the start of the last one was not kept."""
    apps.get_model('jobs', 'Job').objects.exclude(state='queued').update(
        attempt_started_at=models.F('started_at')
    )


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0003_stores_bytes'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='attempt_started_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='job',
            name='ran_before',
            field=models.FloatField(default=0.0),
        ),
        migrations.RunPython(count_from_the_first_attempt, migrations.RunPython.noop),
    ]
