"""Make sign-in names independent of case, and give each organisation a sign-in link.

Where two names differ only in case, the older account gets the key and the others have none: each
of them still signs in by its own spelling, which is looked up first.
"""

import django.contrib.auth.validators
from django.db import migrations, models

import webapp.accounts.models
import webapp.accounts.names


def fill(apps, schema_editor):
    alias = schema_editor.connection.alias
    people = apps.get_model("accounts", "User")._base_manager.using(alias)
    taken = set()
    for person in people.order_by("pk").only("username"):
        key = webapp.accounts.names.sign_in_key(person.username)
        if key not in taken:
            taken.add(key)
            people.filter(pk=person.pk).update(name_key=key)
    organisations = apps.get_model("accounts", "Organisation").objects.using(alias)
    for pk in list(organisations.values_list("pk", flat=True)):
        code = webapp.accounts.models.new_sign_in_code()
        organisations.filter(pk=pk).update(sign_in_code=code)


class Migration(migrations.Migration):
    dependencies = [("accounts", "0004_operators")]

    operations = [
        migrations.AlterModelManagers(
            "user", [("objects", webapp.accounts.models.PeopleManager())]
        ),
        migrations.AlterField(
            "user",
            "username",
            models.CharField(
                "username",
                max_length=150,
                unique=True,
                error_messages={"unique": "This name is taken. Choose another one."},
                validators=[
                    django.contrib.auth.validators.UnicodeUsernameValidator(),
                    webapp.accounts.names.check_alphabet,
                ],
            ),
        ),
        migrations.AddField(
            "user",
            "name_key",
            webapp.accounts.models.NameKeyField(max_length=450, null=True, editable=False),
        ),
        migrations.AddField(
            "organisation", "sign_in_code", models.CharField(max_length=16, null=True)
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
