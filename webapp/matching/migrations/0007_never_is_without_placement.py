from django.db import migrations, models


def remove_new_rejections(apps, schema_editor):
    """Without their placement these rules would keep students apart for good."""
    ForbiddenPair = apps.get_model("matching", "ForbiddenPair")
    ForbiddenPair.objects.filter(placement__isnull=False, proposal__isnull=True).delete()


class Migration(migrations.Migration):

    dependencies = [
        ('housing', '0009_copy_proposals'),
        ('matching', '0006_rules_of_placements'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='forbiddenpair',
            name='rejected_once_a_proposal',
        ),
        migrations.RemoveConstraint(
            model_name='forbiddenpair',
            name='never_once',
        ),
        migrations.RunPython(migrations.RunPython.noop, remove_new_rejections, elidable=True),
        migrations.AddConstraint(
            model_name='forbiddenpair',
            constraint=models.UniqueConstraint(fields=('placement', 'first', 'second'), name='rejected_once_a_placement'),
        ),
        migrations.AddConstraint(
            model_name='forbiddenpair',
            constraint=models.UniqueConstraint(condition=models.Q(('placement__isnull', True)), fields=('first', 'second'), name='never_once'),
        ),
    ]
