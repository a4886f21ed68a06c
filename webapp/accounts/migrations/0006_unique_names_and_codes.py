"""Make name keys and sign-in codes unique; a step of its own, as PostgreSQL requires."""

from django.db import migrations, models

import webapp.accounts.models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0005_names_and_sign_in_codes")]

    operations = [
        migrations.AlterField(
            "user",
            "name_key",
            webapp.accounts.models.NameKeyField(
                max_length=450, null=True, unique=True, editable=False
            ),
        ),
        migrations.AlterField(
            "organisation",
            "sign_in_code",
            models.CharField(
                max_length=16,
                unique=True,
                default=webapp.accounts.models.new_sign_in_code,
                editable=False,
            ),
        ),
    ]
