
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0002_job_list_visits'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='stores_bytes',
            field=models.BigIntegerField(default=0),
        ),
    ]
