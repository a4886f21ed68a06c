from django.db import migrations

import webapp.encryption.fields
from webapp.encryption.migration_steps import sealing


class Migration(migrations.Migration):

    dependencies = [
        ('housing', '0004_versions_and_drafts'),
    ]

    operations = [
        migrations.AlterField(
            model_name='roommaterequest',
            name='written',
            field=webapp.encryption.fields.SealedTextField(blank=True, max_length=120),
        ),
        migrations.RunPython(
            sealing("housing", {"RoommateRequest": ("written",)}),
            migrations.RunPython.noop,
            elidable=True,
        ),
    ]
