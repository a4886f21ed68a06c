"""Drop the table of changed fields, which no page ever read: audit lines keep role and state."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("audit", "0002_of_installation")]

    operations = [
        migrations.RunSQL(
            "DROP TABLE IF EXISTS auditlog_logentry", reverse_sql=migrations.RunSQL.noop
        )
    ]
