from django.conf import settings
from django.db import migrations
from django.db.models import Max

import webapp.encryption.fields

_BATCH = 500


def encrypt(apps, schema_editor):
    """Write names, numbers and e-mails again, so that they are encrypted if a key is set."""
    if not settings.ENCRYPTION_KEYS:
        return
    students = apps.get_model("cohorts", "Student").objects.using(schema_editor.connection.alias)
    keys = list(students.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(keys), _BATCH):
        rows = list(students.filter(pk__in=keys[start : start + _BATCH]).only(
            "original_id", "email", "name"
        ))  # fmt: skip
        students.bulk_update(rows, ["original_id", "email", "name"], batch_size=_BATCH)


def continue_numbers(apps, schema_editor):
    """Continue after the highest number of an organisation; numbers in use stay as they are."""
    alias = schema_editor.connection.alias
    students = apps.get_model("cohorts", "Student").objects.using(alias)
    organisations = apps.get_model("accounts", "Organisation").objects.using(alias)
    arrivals = apps.get_model("cohorts", "LateArrivals").objects.using(alias)
    last = students.order_by().values_list("cohort__organisation").annotate(last=Max("number"))
    late = arrivals.order_by().values_list("cohort__organisation").annotate(
        last=Max("last_number")
    )
    for organisation, number in [*last, *late]:
        organisations.filter(pk=organisation, last_student_number__lt=number).update(
            last_student_number=number
        )


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0007_names_and_numbers_of_students"),
        ("cohorts", "0008_late_arrivals"),
    ]

    operations = [
        migrations.AddField(
            model_name="student",
            name="preferred",
            field=webapp.encryption.fields.SealedTextField(blank=True, max_length=200),
        ),
        migrations.AddField(
            model_name="student",
            name="pronouns",
            field=webapp.encryption.fields.SealedTextField(blank=True, max_length=60),
        ),
        migrations.AlterField(
            model_name="student",
            name="email",
            field=webapp.encryption.fields.SealedTextField(blank=True, max_length=254),
        ),
        migrations.AlterField(
            model_name="student",
            name="name",
            field=webapp.encryption.fields.SealedTextField(blank=True, max_length=200),
        ),
        migrations.AlterField(
            model_name="student",
            name="original_id",
            field=webapp.encryption.fields.SealedKeyField(max_length=1000),
        ),
        migrations.RunPython(continue_numbers, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(encrypt, migrations.RunPython.noop, elidable=True),
    ]
