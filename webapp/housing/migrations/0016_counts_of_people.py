from django.db import migrations, models
from django.db.models import Count


def count_people(apps, schema_editor):
    """Store how many students of each placement are present, and how many have a bed."""
    Placement = apps.get_model("housing", "Placement")
    Place = apps.get_model("housing", "Place")
    for placement in Placement.objects.only("pk").iterator():
        present = Place.objects.filter(placement=placement.pk, has_left=False)
        counts = present.aggregate(n_people=Count("pk"), n_placed=Count("room"))
        Placement.objects.filter(pk=placement.pk).update(**counts)


class Migration(migrations.Migration):

    dependencies = [
        ('housing', '0015_indexes_of_places'),
    ]

    operations = [
        migrations.AddField(
            model_name='placement',
            name='n_people',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='placement',
            name='n_placed',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.RunPython(count_people, migrations.RunPython.noop),
    ]
