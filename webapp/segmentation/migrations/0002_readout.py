from django.db import migrations, models
from django.db.models import F


def note_how_masks_were_read_out(apps, schema_editor):
    """Record that existing masks and their errors are those of the best labelling."""
    apps.get_model("segmentation", "PredictionBatch").objects.update(readout="map")
    apps.get_model("segmentation", "PredictedImage").objects.update(error=F("error_map"))


def note_the_solver_of_old_models(apps, schema_editor):
    """Record the meaning of "auto" in old models: linear weights, weights found first."""
    apps.get_model("segmentation", "Segmenter").objects.filter(solver="auto").update(solver="theta")


class Migration(migrations.Migration):
    dependencies = [
        ("segmentation", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="predictedimage",
            name="error",
            field=models.FloatField(
                help_text="share of wrong pixels of the mask read out", null=True
            ),
        ),
        migrations.AddField(
            model_name="predictionbatch",
            name="readout",
            field=models.CharField(
                choices=[
                    ("marginal", "The likelier side of each pixel"),
                    ("map", "The best single labelling of the whole image (MAP)"),
                ],
                default="marginal",
                max_length=8,
            ),
        ),
        migrations.AlterField(
            model_name="segmenter",
            name="solver",
            field=models.CharField(
                choices=[
                    ("auto", "Trees, and the loss with the fewest errors"),
                    ("certified", "Trees, and weights with a certificate"),
                    ("theta", "Linear: weights first"),
                    ("block-coordinate", "Linear: one image at a time"),
                    ("frank-wolfe", "Linear: all images at each step"),
                ],
                default="auto",
                max_length=20,
            ),
        ),
        migrations.RunPython(note_how_masks_were_read_out, migrations.RunPython.noop),
        migrations.RunPython(note_the_solver_of_old_models, migrations.RunPython.noop),
    ]
