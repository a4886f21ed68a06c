"""Jobs of segmentation: learning a model, predicting a set, and removing."""

import json
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine import (
    InvalidProblemError,
    NetworkOptions,
    Progress,
    edge_network_options,
    load_segmentation_model,
    train_boosted_segmentation,
    train_class_segmentation,
)
from engine.learning.segmentation.model import Detail
from webapp.charts import ConvergenceWords
from webapp.database.full_disk import FULL_DISK
from webapp.files import store
from webapp.files.contents import StorageFullError, full_disk_explained
from webapp.jobs.context import JobContext
from webapp.jobs.models import Job
from webapp.jobs.registry import Pieces, Queue, Subject, job_kind, keeps_nothing
from webapp.segmentation.checking import CHECKING_SHARE, check_classes, check_held_out
from webapp.segmentation.detail import settle_detail
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.labelled_files import LabelledFiles, left_out_sentence
from webapp.segmentation.learning_reports import (
    REMOVED,
    LearningWatcher,
    finite,
    learning_outcome,
    limit_sentence,
)
from webapp.segmentation.model_origin import MOST_IMAGES, Checked, Origin, origin_write
from webapp.segmentation.models import (
    ImageFile,
    ImageSet,
    PredictedImage,
    PredictionBatch,
    Segmenter,
)
from webapp.segmentation.object_options import options_of
from webapp.segmentation.reading_time import ReadingTime
from webapp.segmentation.services.object_corrections import objects_write
from webapp.segmentation.services.painted_models import predict_painted, train_painted
from webapp.segmentation.services.predictions import predict_image, prediction_pieces
from webapp.segmentation.services.removals import KIND, removed_take_away
from webapp.segmentation.services.waiting_images import rows_make
from webapp.segmentation.spread_learning import train_linear
from webapp.translation.lazy import gettext_lazy, pgettext_lazy

USUAL_SECONDS = 1.0  # seconds to predict an image, until one is predicted
PREDICTIONS = Subject(
    "batch",
    PredictionBatch,
    "segmentation:prediction",
    gettext_lazy("Predictions"),
    gettext_lazy("Open the predictions"),
    gettext_lazy("The predictions were removed."),
)


LEARNING: dict[str, Any] = {
    "verb": pgettext_lazy("title of a job", "Learn"),
    "subject": Subject(
        "segmenter",
        Segmenter,
        "segmentation:segmenter",
        gettext_lazy("Model"),
        gettext_lazy("Open the model"),
        gettext_lazy("The model was removed."),
    ),
    "words": ConvergenceWords(
        upper=gettext_lazy("Objective: no weights can fit better than this"),
        lower=gettext_lazy("Log-likelihood of the weights found so far"),
        axis=gettext_lazy("Log-likelihood of the masks (nats)"),
    ),
}


@job_kind("segmentation.learn", queue=Queue.LONG, **LEARNING)
@job_kind("segmentation.learn_network", queue=Queue.CARD, **LEARNING)
def learn(context: JobContext) -> Any:
    """Learn a model from masked images, reporting its error on held-out images."""
    segmenter = Segmenter.objects.get(pk=context.parameters["segmenter"])
    if segmenter.solver == Segmenter.Solver.PAINTED:
        return learn_painted(context, segmenter)
    if segmenter.learns_edges:
        return learn_edges(context, segmenter)
    learned = _labelled(context, segmenter, "learned")
    held_out = _labelled(context, segmenter, "held_out")
    watcher = LearningWatcher(context, segmenter)
    trained = _train(context, segmenter, learned, held_out, watcher)
    context.raise_if_stopped()
    for labelled in (learned, held_out):
        labelled.end_reading()
    checked = check_held_out(context, trained.model, held_out, segmenter.max_seconds)
    used = Segmenter.objects.values_list("learned_digests", "held_out_digests")
    _keep_model(context, segmenter, trained.model, checked, *used.get(pk=segmenter.pk))

    def finish() -> dict[str, Any]:
        outcome = learning_outcome(context, trained, watcher.steps, learned, held_out) | {
            "checked": checked
        }
        if not Segmenter.objects.filter(pk=segmenter.pk).update(outcome=outcome):
            raise SegmentationError(str(REMOVED))
        return {"segmenter": str(segmenter.pk), "sentence": outcome["sentence"]}

    return finish


def learn_painted(context: JobContext, segmenter: Segmenter) -> Any:
    """Learn classes from strokes; then predict the set, if requested."""
    trained, used = train_painted(context, segmenter)
    context.raise_if_stopped()
    checked, digests = check_classes(trained.kept), [file.digest for file in used]
    _keep_model(context, segmenter, trained.model, checked, digests, [])

    def finish() -> dict[str, Any]:
        figures = {name: finite(value) for name, value in trained.result.figures().items()}
        n = len(used)
        learned = ngettext(
            "Learned from strokes on %(count)s image.",
            "Learned from strokes on %(count)s images.",
            n,
        ) % {"count": n}
        errors = {name: finite(float(value)) for name, value in trained.errors.items()}
        outcome = figures | {
            "loss": trained.loss,
            "ridge": float(trained.model.ridge),
            "converged": trained.result.status.is_converged,
            "n_learned": n,
            "n_held_out": 0,
            "left_out": [],
            "n_known": list(trained.n_known),
            "n_maps": trained.model.n_maps,
            "errors": errors,
            "checked": checked,
            "sentence": f"{learned} {limit_sentence(trained.left_out)}".strip(),
        }
        fields = {"outcome": outcome, "learned_digests": digests}
        if not Segmenter.objects.filter(pk=segmenter.pk).update(**fields):
            raise SegmentationError(str(REMOVED))
        sentence = outcome["sentence"]
        if context.parameters.get("predict"):
            sentence = f"{sentence} {predict_painted(segmenter.pk)}".strip()
        return {"segmenter": str(segmenter.pk), "sentence": sentence}

    return finish


def learn_edges(context: JobContext, segmenter: Segmenter) -> Any:
    """Learn objects and their edges from masks, at full size."""
    learned = _labelled(context, segmenter, "learned", edges=True)
    watcher = LearningWatcher(context, segmenter)
    images, labels, maps = learned.in_step()
    is_network = segmenter.solver == Segmenter.Solver.NETWORK
    trained = train_class_segmentation(
        images,
        labels,
        [one["name"] for one in segmenter.classes],
        maps=maps,
        is_smooth=False,
        position=False,
        detail=Detail(scale=1.0),
        max_seconds=max(segmenter.max_seconds - context.seconds, 0.0),
        network=edge_network_options(segmenter.max_seconds) if is_network else None,
        on_progress=watcher,
        should_stop=context.should_stop,
        checkpoint=context.checkpoint,
        rng=context.rng,
    )
    context.raise_if_stopped()
    learned.end_reading()
    checked = check_classes(trained.kept)
    used = Segmenter.objects.values_list("learned_digests", flat=True).get(pk=segmenter.pk)
    _keep_model(context, segmenter, trained.model, checked, used, [])

    def finish() -> dict[str, Any]:
        outcome = learning_outcome(context, trained, watcher.steps, learned, None) | {
            "checked": checked,
            "n_known": list(trained.n_known),
        }
        if not Segmenter.objects.filter(pk=segmenter.pk).update(outcome=outcome):
            raise SegmentationError(str(REMOVED))
        return {"segmenter": str(segmenter.pk), "sentence": outcome["sentence"]}

    return finish


def _keep_model(
    context: JobContext,
    segmenter: Segmenter,
    model: Any,
    checked: dict[str, Any],
    learned: list[str],
    held_out: list[str],
) -> None:
    """Write the model file with its origin to the job's folder, with everything reported before."""
    context.flush()
    origin = Origin(
        image_sets=[one.name for one in segmenter.image_sets.all()],
        learned_digests=learned[:MOST_IMAGES],
        held_out_digests=held_out[:MOST_IMAGES],
        checked=Checked.model_validate_json(json.dumps(checked)) if checked else None,
    )
    try:
        with full_disk_explained():
            weights_file = context.make_folder() / "weights.npz"
            model.save(weights_file)
            origin_write(weights_file, origin)
            context.keep_file(weights_file, segmenter.path)
    except StorageFullError as error:
        raise InvalidProblemError(str(FULL_DISK)) from error


def _train(
    context: JobContext,
    segmenter: Segmenter,
    learned: LabelledFiles,
    held_out: LabelledFiles,
    watcher: LearningWatcher,
) -> Any:
    """Train with the chosen method, from the job's checkpoint after an interruption."""
    settle_detail(context, segmenter, learned)
    options: dict[str, Any] = {
        "ridge_factor": segmenter.restraint,
        "rho": segmenter.rho,
        "max_side": segmenter.max_side,
        "relative_gap": segmenter.relative_gap,
        "max_seconds": max(_learning_seconds(segmenter, held_out) - context.seconds, 0.0),
        "on_progress": watcher,
        "should_stop": context.should_stop,
    }
    if segmenter.grows_trees:
        is_certified = segmenter.solver == Segmenter.Solver.CERTIFIED
        options["loss"] = "likelihood" if is_certified else None
        options["holdout"] = held_out.in_step()
        images, masks, maps = learned.in_step()
        options["checkpoint"] = context.checkpoint
        if segmenter.solver == Segmenter.Solver.NETWORK:
            options["network"] = NetworkOptions()
        return train_boosted_segmentation(images, masks, maps=maps, **options)
    return train_linear(context, segmenter, learned, held_out, options)


def _learning_seconds(segmenter: Segmenter, held_out: LabelledFiles) -> float:
    """Return the part of the time limit for learning; the rest is for the held-out images."""
    return segmenter.max_seconds * (1.0 - CHECKING_SHARE if held_out.files else 1.0)


def kept_sentence(job: Job) -> str:
    """Return "5 of 20 images are predicted." for a prediction that did not finish."""
    rows = PredictedImage.objects.filter(batch=job.parameters["batch"])
    done, total = rows.done().count(), rows.count()
    total += _unlisted(job)
    if not done:
        return keeps_nothing(job)
    of_all = ngettext("of %(total)s image", "of %(total)s images", total) % {"total": total}
    words = ngettext(
        "%(count)s %(of_all)s is predicted.", "%(count)s %(of_all)s are predicted.", done
    )
    return words % {"count": done, "of_all": of_all}


def standing(job: Job) -> tuple[int, int]:
    """Return the number of finished images of a prediction, and of all its images."""
    rows = PredictedImage.objects.filter(batch=job.parameters["batch"])
    counts = rows.aggregate(
        all=Count("pk"), waiting=Count("pk", filter=Q(state=PredictedImage.State.WAITING))
    )
    return counts["all"] - counts["waiting"], counts["all"] + _unlisted(job)


def _unlisted(job: Job) -> int:
    """Return the number of images of a prediction that have no row yet."""
    batches = PredictionBatch.objects.filter(pk=job.parameters["batch"])
    return batches.values_list("n_unlisted", flat=True).first() or 0


def predicted(job: Job) -> dict[str, Any]:
    """Return the result of a prediction with all images finished."""
    rows = PredictedImage.objects.filter(batch=job.parameters["batch"])
    return {"sentence": predicted_sentence(rows), "batch": job.parameters["batch"]}


@job_kind(
    "segmentation.predict",
    verb=pgettext_lazy("title of a job", "Predict"),
    queue=Queue.LONG,
    subject=PREDICTIONS,
    kept=kept_sentence,
    standing=standing,
    conclude=predicted,
)
def predict(context: JobContext) -> dict[str, Any] | Pieces:
    """Predict every unfinished image of a batch; a bad image does not stop the others.

    More images than fit in one piece are divided among all workers on all hosts.
    """
    batch = PredictionBatch.objects.filter(pk=context.parameters["batch"]).first()
    if batch is None or not batch.images.exists():
        raise InvalidProblemError(_("There is nothing to predict in this batch."))
    _list_images(context, batch)
    pieces = prediction_pieces(batch)
    if len(pieces) > 1:
        n_waiting = batch.images.waiting().count()
        return Pieces("segmentation.predict_piece", pieces, USUAL_SECONDS * n_waiting)
    _predict(context, batch.images.all())
    return predicted(context.job)


def _list_images(context: JobContext, batch: PredictionBatch) -> None:
    """Create the rows that the request left, a few hundred at a time."""
    n_listed = batch.images.count()
    total = n_listed + batch.n_unlisted
    learned = set(batch.model.learned_digests) if batch.n_unlisted else set()
    while batch.n_unlisted:
        context.raise_if_stopped()
        words = _("Listing images: %(done)s of %(total)s")
        counts = {"done": f"{n_listed:,}", "total": f"{total:,}"}
        context.report(words % counts, n_listed / total)
        n_listed = total - rows_make(batch=batch, learned=learned)


@job_kind(
    "segmentation.predict_piece",
    verb=pgettext_lazy("title of a job", "Predict"),
    queue=Queue.LONG,
    subject=PREDICTIONS,
    kept=lambda job: "",  # the parent job reports it
)
def predict_piece(context: JobContext) -> dict[str, Any]:
    """Predict the images of one piece of a batch: those between two names, both included."""
    first, last = context.parameters["first"], context.parameters["last"]
    rows = PredictedImage.objects.filter(batch=context.parameters["batch"])
    _predict(context, rows.filter(name__gte=first, name__lte=last))
    return {}


def _has_same_options(batch: PredictionBatch) -> bool:
    """Return True if the batch still has the options that it was read with."""
    stored = PredictionBatch.objects.filter(pk=batch.pk).values_list("object_options", flat=True)
    return stored.first() == batch.object_options


@job_kind(
    "segmentation.objects",
    verb=pgettext_lazy("title of a job", "Measure objects"),
    subject=Subject(
        "batch",
        PredictionBatch,
        "segmentation:prediction-objects",
        gettext_lazy("Objects"),
        gettext_lazy("Open the objects"),
        gettext_lazy("The objects were removed."),
    ),
    kept=lambda job: _("Images measured before the stop keep their new counts."),
)
def measure(context: JobContext) -> dict[str, Any]:
    """Measure the objects of every predicted image of a batch by its options."""
    batch = PredictionBatch.objects.filter(pk=context.parameters["batch"]).first()
    if batch is None:
        raise InvalidProblemError(_("The prediction was removed meanwhile."))
    options = options_of(batch.object_options, batch.model.classes)
    rows = list(batch.images.done().select_related("file"))
    lost, total = 0, len(rows)
    for done, row in enumerate(rows):
        row.batch = batch
        context.raise_if_stopped()
        if not _has_same_options(batch):
            raise InvalidProblemError(_("Other choices were made meanwhile; those are measured."))
        words = ngettext(
            "%(done)s of %(total)s image measured", "%(done)s of %(total)s images measured", total
        )
        context.report(words % {"done": done, "total": total}, done / total)
        lost += len(objects_write(row, options))
    words = ngettext("%(count)s image measured.", "%(count)s images measured.", total)
    sentence = words % {"count": total}
    if lost:
        words = ngettext(
            "%(count)s correction could not be applied again; see History.",
            "%(count)s corrections could not be applied again; see History.",
            lost,
        )
        sentence = f"{sentence} {words % {'count': lost}}"
    return {"sentence": sentence}


@job_kind(
    KIND,
    verb=pgettext_lazy("title of a job", "Remove"),
    kept=lambda job: _("The rest is deleted within a day."),
)
def remove(context: JobContext) -> dict[str, Any]:
    """Delete the rows and files of a removed set or prediction."""
    models = {model.__name__: model for model in (ImageSet, PredictionBatch)}
    model = models[context.parameters["model"]]
    target = model.everything.filter(pk=context.parameters["key"]).first()
    if target is None:  # deleted by a process that was killed before it could report
        return {"sentence": _("All of it is gone.")}

    def report(n_rows: int) -> None:
        context.raise_if_stopped()
        words = ngettext("%(count)s image taken away", "%(count)s images taken away", n_rows)
        context.report(words % {"count": f"{n_rows:,}"})

    gone = removed_take_away(target, report)
    words = ngettext("%(count)s image taken away.", "%(count)s images taken away.", gone)
    return {"sentence": words % {"count": f"{gone:,}"}}


def _predict(context: JobContext, rows: QuerySet[PredictedImage]) -> None:
    """Predict the waiting images among the rows."""
    total = rows.count()
    waiting = list(rows.filter(state=PredictedImage.State.WAITING).select_related("batch"))
    if not waiting:
        return
    segmenter = waiting[0].batch.model
    model = load_segmentation_model(store.get(segmenter.path))
    for done, row in enumerate(waiting, start=total - len(waiting)):
        context.on_progress(
            Progress(
                sentence=_("%(done)s of %(total)s so far") % {"done": done, "total": total},
                fraction=done / total,
                seconds_left=_seconds_left(context, done - total + len(waiting), total - done),
            )
        )
        context.raise_if_stopped()
        try:
            predict_image(model=model, row=row, job=context.job)
        except StorageFullError as error:
            raise InvalidProblemError(str(FULL_DISK)) from error


def predicted_sentence(rows: Any) -> str:
    """Return "47 of 48 images predicted. notes.txt is not an image."""
    refused = list(rows.filter(state=PredictedImage.State.REFUSED))
    total = rows.count()
    words = ngettext(
        "%(done)s of %(total)s image predicted.", "%(done)s of %(total)s images predicted.", total
    )
    sentences = [words % {"done": total - len(refused), "total": total}]
    if refused:
        sentences.append(refused[0].sentence)
    if (n_more := len(refused) - 1) > 0:
        words = ngettext("%(count)s more was refused.", "%(count)s more were refused.", n_more)
        sentences.append(words % {"count": n_more})
    return " ".join(sentences)


def _seconds_left(context: JobContext, done_now: int, left: int) -> float:
    each = context.seconds / done_now if done_now else USUAL_SECONDS
    return each * left


def _labelled(
    context: JobContext, segmenter: Segmenter, purpose: str, *, edges: bool = False
) -> LabelledFiles:
    """Return the job's files for training, or those held out.

    Once they are read, the model records the images actually used: some may have been left out,
    removed or replaced since the job was queued.
    """

    reading = ReadingTime(context, segmenter)

    def on_next() -> None:
        context.raise_if_stopped()
        reading.next(len(labelled.files))

    def when_read(used: list[ImageFile]) -> None:
        if purpose == "learned" and not used:
            words = _("None of the images can be used.")
            raise InvalidProblemError(f"{words} {left_out_sentence(labelled.left_out)}".strip())
        digests = {f"{purpose}_digests": [file.digest for file in used]}
        Segmenter.objects.filter(pk=segmenter.pk).update(**digests)

    files = _files(context.parameters[purpose])
    n_planes = context.parameters.get("planes", 0)
    labelled = LabelledFiles(
        files, on_next=on_next, when_read=when_read, n_planes=n_planes, edges=edges
    )
    return labelled


def _files(keys: list[str]) -> list[ImageFile]:
    """Return the files of these keys, in this order, without those removed meanwhile."""
    found = ImageFile.objects.filter(pk__in=keys, mask__isnull=False)
    by_key = {str(file.pk): file for file in found.select_related("mask", "image_set")}
    return [by_key[key] for key in keys if key in by_key]
