"""Add the rooms that staff choose within a late change, and its figures before and after."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Add two fields to proposed changes."""

    dependencies = [("housing", "0002_accepted_rooms_and_doubt")]

    operations = [
        migrations.AddField(
            model_name="proposedchange",
            name="chosen",
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name="proposedchange",
            name="outcomes",
            field=models.JSONField(default=dict),
        ),
    ]
