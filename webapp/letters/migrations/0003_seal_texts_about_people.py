from django.db import migrations

import webapp.common.encryption
from webapp.common.sealed_rows import masking_errors, sealing


class Migration(migrations.Migration):

    dependencies = [
        ('letters', '0002_questions_about_requests'),
    ]

    operations = [
        migrations.AlterField(
            model_name='letter',
            name='address',
            field=webapp.common.encryption.SealedTextField(max_length=254),
        ),
        migrations.AlterField(
            model_name='letter',
            name='subject',
            field=webapp.common.encryption.SealedTextField(max_length=200),
        ),
        migrations.AlterField(
            model_name='letter',
            name='text',
            field=webapp.common.encryption.SealedTextField(),
        ),
        migrations.AlterField(
            model_name='requestquestion',
            name='address',
            field=webapp.common.encryption.SealedTextField(max_length=254),
        ),
        migrations.AlterField(
            model_name='requestquestion',
            name='subject',
            field=webapp.common.encryption.SealedTextField(max_length=200),
        ),
        migrations.AlterField(
            model_name='requestquestion',
            name='text',
            field=webapp.common.encryption.SealedTextField(),
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
