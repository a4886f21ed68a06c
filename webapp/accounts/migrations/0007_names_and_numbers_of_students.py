from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0006_unique_names_and_codes")]

    operations = [
        migrations.AddField(
            model_name="organisation",
            name="last_student_number",
            field=models.PositiveIntegerField(default=1000, editable=False),
        ),
        migrations.AddField(
            model_name="organisation",
            name="names_for",
            field=models.CharField(
                choices=[
                    ("staff", "Staff and administrators"),
                    ("administrators", "Administrators only"),
                    ("nobody", "Nobody: students appear as S-1042"),
                ],
                default="staff",
                max_length=16,
            ),
        ),
    ]
