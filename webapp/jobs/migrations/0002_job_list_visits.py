import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def begin_at_the_last_sign_in(apps, schema_editor):
    """Count from the last sign-in, so that the bell does not report every job that ever ended.

    A person who opened the list since then gets jobs that ended in between reported again: the
    time of the visit is in the sessions, which are not read here.
    """
    users = apps.get_model('accounts', 'User').objects.filter(organisation__isnull=False)
    visit = apps.get_model('jobs', 'JobListVisit')
    visit.objects.bulk_create(
        visit(
            user_id=user.pk,
            organisation_id=user.organisation_id,
            seen_at=user.last_login or user.date_joined,
        )
        for user in users
    )


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_initial'),
        ('jobs', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='JobListVisit',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seen_at', models.DateTimeField()),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.organisation')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'organisation'), name='one_visit_a_person_and_organisation')],
            },
        ),
        migrations.RunPython(begin_at_the_last_sign_in, migrations.RunPython.noop),
    ]
