from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def mark_values(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Mark formulas in every stored roster, since unmarked values were only the default before."""
    apps.get_model("reports", "RosterShape").objects.update(is_exact=False)


class Migration(migrations.Migration):
    dependencies = [("reports", "0001_initial")]

    operations = [
        migrations.AlterField("rostershape", "is_exact", models.BooleanField(default=False)),
        migrations.RunPython(mark_values, migrations.RunPython.noop, elidable=True),
    ]
