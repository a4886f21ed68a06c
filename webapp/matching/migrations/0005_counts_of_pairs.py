"""Store the number of pairs and of open pairs of a proposal, which lists counted before."""

from django.db import migrations, models
from django.db.models import Count, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce


def count_pairs(apps, schema_editor):
    """Count the pairs of existing proposals once."""
    pair = apps.get_model("matching", "ProposedPair")
    mine = pair.objects.filter(proposal=OuterRef("pk")).order_by().values("proposal")
    open_ones = Q(state="open")
    apps.get_model("matching", "Proposal").objects.update(
        n_pairs=Coalesce(Subquery(mine.annotate(n=Count("pk")).values("n")), 0),
        n_open=Coalesce(
            Subquery(mine.annotate(n=Count("pk", filter=open_ones)).values("n")), 0
        ),
    )


class Migration(migrations.Migration):
    dependencies = [("matching", "0004_intervals_job")]

    operations = [
        migrations.AddField(
            "proposal", "n_pairs", models.PositiveIntegerField(default=0, db_default=0)
        ),
        migrations.AddField(
            "proposal", "n_open", models.PositiveIntegerField(default=0, db_default=0)
        ),
        migrations.RunPython(count_pairs, migrations.RunPython.noop),
    ]
