from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('segmentation', '0009_pixel_sizes'),
    ]

    operations = [
        migrations.AddField(
            model_name='predictionbatch',
            name='object_options',
            field=models.JSONField(default=dict, help_text='what counts as an object; empty in earlier predictions'),
        ),
    ]
