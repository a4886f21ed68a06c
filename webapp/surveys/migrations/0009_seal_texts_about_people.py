from django.db import migrations

import webapp.encryption.fields
from webapp.encryption.migration_steps import masking_errors, sealing


class Migration(migrations.Migration):

    dependencies = [
        ('surveys', '0008_seal_file_names'),
    ]

    operations = [
        migrations.AlterField(
            model_name='mail',
            name='address',
            field=webapp.encryption.fields.SealedKeyField(blank=True, max_length=254),
        ),
        migrations.AlterField(
            model_name='participant',
            name='bounce',
            field=webapp.encryption.fields.SealedTextField(blank=True, max_length=200),
        ),
        migrations.AlterField(
            model_name='participant',
            name='email',
            field=webapp.encryption.fields.SealedKeyField(blank=True, max_length=254),
        ),
        migrations.AlterField(
            model_name='participant',
            name='identifier',
            field=webapp.encryption.fields.SealedKeyField(blank=True, max_length=200),
        ),
        migrations.AlterField(
            model_name='participant',
            name='name',
            field=webapp.encryption.fields.SealedTextField(blank=True, max_length=200),
        ),
        migrations.AlterField(
            model_name='participant',
            name='subject',
            field=webapp.encryption.fields.SealedKeyField(blank=True, max_length=255),
        ),
        migrations.RunPython(
            sealing("surveys", {"Participant": ("email", "name", "identifier", "subject", "bounce"), "Mail": ("address",)}),
            migrations.RunPython.noop,
            elidable=True,
        ),
        migrations.RunPython(
            masking_errors("surveys", ["Mail"]),
            migrations.RunPython.noop,
            elidable=True,
        ),
    ]
