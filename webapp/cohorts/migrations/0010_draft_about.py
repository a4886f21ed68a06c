from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("cohorts", "0009_identity_of_students")]

    operations = [
        migrations.AddField(
            model_name="draft",
            name="about",
            field=models.UUIDField(db_index=True, null=True),
        ),
    ]
