
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='organisation',
            name='stored_at',
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name='organisation',
            name='stored_bytes',
            field=models.BigIntegerField(default=0, editable=False),
        ),
    ]
