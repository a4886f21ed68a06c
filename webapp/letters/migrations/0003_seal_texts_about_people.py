from django.db import migrations

import webapp.encryption.fields
from webapp.encryption.migration_steps import masking_errors, sealing


class Migration(migrations.Migration):

    dependencies = [
        ('letters', '0002_questions_about_requests'),
    ]

    operations = [
        migrations.AlterField(
            model_name='letter',
            name='address',
            field=webapp.encryption.fields.SealedTextField(max_length=254),
        ),
        migrations.AlterField(
            model_name='letter',
            name='subject',
            field=webapp.encryption.fields.SealedTextField(max_length=200),
        ),
        migrations.AlterField(
            model_name='letter',
            name='text',
            field=webapp.encryption.fields.SealedTextField(),
        ),
        migrations.AlterField(
            model_name='requestquestion',
            name='address',
            field=webapp.encryption.fields.SealedTextField(max_length=254),
        ),
        migrations.AlterField(
            model_name='requestquestion',
            name='subject',
            field=webapp.encryption.fields.SealedTextField(max_length=200),
        ),
        migrations.AlterField(
            model_name='requestquestion',
            name='text',
            field=webapp.encryption.fields.SealedTextField(),
        ),
        migrations.RunPython(
            sealing("letters", {"Letter": ("address", "subject", "text"), "RequestQuestion": ("address", "subject", "text")}),
            migrations.RunPython.noop,
            elidable=True,
        ),
        migrations.RunPython(
            masking_errors("letters", ["Letter", "RequestQuestion"]),
            migrations.RunPython.noop,
            elidable=True,
        ),
    ]
