"""Shapes of image sets, their files, image models and predictions."""

from typing import Annotated, Any, Literal

from pydantic import Field

from webapp.api.shapes.base import Answer, Body, Key, OneOf, Paging, Seed, SentKey, Time, between
from webapp.segmentation.measuring import sides_of
from webapp.segmentation.models import ImageFile as ImageFileRow
from webapp.segmentation.models import ObjectCorrection, PredictionBatch
from webapp.segmentation.models import Segmenter as SegmenterRow
from webapp.segmentation.object_options import options_of
from webapp.segmentation.selectors.predictions import batch_numbers

Solver = Annotated[str, OneOf(SegmenterRow.Solver.values)]


class ImageSet(Answer):
    """Images of one kind of object, with counts."""

    id: Key = Field(validation_alias="pk")
    name: str
    foreground: str
    images: int = Field(validation_alias="n_images")
    with_mask: int = Field(validation_alias="n_masked")
    bytes: int = Field(validation_alias="n_bytes")
    created_at: Time


class NewImageSet(Body):
    """An image set to create."""

    name: str
    foreground: str = Field("object", description="what the masks mark, such as leaf")


class ImageFile(Answer):
    """An image or a mask."""

    id: Key
    name: str
    role: Annotated[str, OneOf(("image", "mask", "map"))]
    media_type: str
    bytes: int
    width: int
    height: int
    sha256: str
    origin: Annotated[str, OneOf(("uploaded", "corrected"))]
    mask: Key | None = Field(description="of an image: its mask")
    mask_of: Key | None = Field(description="of a mask: its image")
    problem: str
    understood: str = Field(description="of a mask: what was read, such as 75 pixels, 3 objects")
    pixel_size_um: list[float] | None = Field(
        description="width and height of a pixel, micrometres, where the file or the set states it"
    )

    @classmethod
    def of(cls, file: ImageFileRow) -> "ImageFile":
        """Return the answer for a file."""
        return cls(
            id=file.pk,
            name=file.name,
            role=file.role,
            media_type=file.media_type,
            bytes=file.size,
            width=file.width,
            height=file.height,
            sha256=file.digest,
            origin=file.origin,
            mask=file.paired_mask.pk if file.paired_mask else None,
            mask_of=file.mask_of_id or None,
            problem=file.problem,
            understood=file.understood,
            pixel_size_um=sides_of(file.pixel_size),
        )


class FileQuery(Paging):
    """Query for the files of an image set."""

    role: str = Field("", description="image, mask or map")


class UploadResult(Answer):
    """Result of uploading one file."""

    name: str
    outcome: Annotated[str, OneOf(("added", "replaced", "same", "left out", "refused"))]
    sentence: str
    id: Key | None
    encodings: dict[str, str] = Field(
        description="of a ZIP whose names are in no stated encoding: samples by encoding"
    )


class UploadResults(Answer):
    """Results of uploading files."""

    results: list[UploadResult]


class LeftOut(Answer):
    """An image that could not be used."""

    name: str
    reason: str


class Segmenter(Answer):
    """An image model, learned from masked images."""

    id: Key
    name: str
    foreground: str
    image_sets: list[Key]
    images_learned: int
    images_held_out: int
    left_out: list[LeftOut] = Field(description="images that could not be used")
    held_out_error: float | None = Field(description="share of wrong pixels on held-out images")
    relative_gap: float | None
    iterations: int | None = Field(
        description="of all stages: rehearsals on fewer images, then all images"
    )
    iterations_on_all_images: int | None = Field(
        description="of the last stage alone, whose gap is certified"
    )
    map_planes: int = Field(
        description="planes of the probability map that each image to predict needs; 0: none"
    )
    is_ready: bool
    is_certified: bool
    job: Key | None
    created_at: Time

    @classmethod
    def of(cls, row: SegmenterRow) -> "Segmenter":
        """Return the answer for a model with its held-out curve."""
        outcome = row.outcome
        certified = bool(outcome.get("converged")) and outcome.get("is_certified", True)
        return cls(
            id=row.pk,
            name=row.name,
            foreground=row.foreground,
            image_sets=[one.pk for one in row.image_sets.all()],
            images_learned=len(row.learned_digests),
            images_held_out=len(row.held_out_digests),
            left_out=outcome.get("left_out", []),
            held_out_error=row.held_out_error,
            relative_gap=outcome.get("relative_gap"),
            iterations=outcome.get("steps"),
            iterations_on_all_images=outcome.get("iterations"),
            map_planes=outcome.get("n_maps", 0),
            is_ready=row.is_ready,
            is_certified=certified,
            job=row.job_id or None,
            created_at=row.created_at,
        )


class NewSegmenter(Body):
    """A model to learn."""

    image_sets: list[SentKey]
    name: str | None = Field(None, description="the first set's name by default")
    restraint: Annotated[float, *between(1e-6, 1e6)] = Field(
        1.0, description="multiple of the usual lambda; 1 by default"
    )
    solver: Solver = str(SegmenterRow.Solver.AUTO)
    max_side: Annotated[int, *between(0, 1000)] = Field(
        200,
        description="pixels, 16 to 1,000; 0: whatever pays, with trees up to full size; "
        "200 by default",
    )
    max_seconds: Annotated[int, *between(1, 20_000)] = Field(
        300, description="1 to 20,000; 300 by default"
    )
    holdout_percent: Annotated[int, *between(0, 50)] = Field(
        20, description="0 to 50; 20 by default"
    )
    seed: Seed | None = Field(None, description="0 to 2,147,483,647; chosen for you when left out")


class NewPrediction(Body):
    """An image set to predict with a model."""

    image_set: SentKey
    model: SentKey
    readout: Literal["marginal", "map"] = "marginal"


class PredictedImage(Answer):
    """One image of a prediction with its figures."""

    id: Key = Field(validation_alias="pk")
    name: str
    state: Literal["waiting", "done", "refused"]
    sentence: str
    width: int
    height: int
    learned_from: bool
    accuracy: float | None
    iou: float | None
    log_loss: float | None = Field(description="nats per pixel")
    error_map: float | None
    error_mpm: float | None
    mean_entropy: float | None = Field(description="bits per pixel")
    foreground_share: float | None


class ImageQuery(Paging):
    """Query for the images of a prediction, with their order."""

    order: str = Field("worst", description="worst (default), best, entropy or name")


class ObjectChoices(Answer):
    """Options that decide which regions of a prediction are objects."""

    splits: float
    background: list[int]
    min_pixels: int
    drop_border: bool
    typical_area: float | None = Field(description="pixels of a usual object; null: by image")
    edge: int | None = Field(description="class that marks edges of objects; null: none")

    @classmethod
    def of(cls, batch: PredictionBatch) -> "ObjectChoices":
        """Return the answer for a prediction."""
        return cls(**options_of(batch.object_options, batch.model.classes).as_json())


class NewObjectChoices(Body):
    """Choices by which the objects of every image are measured again; what is left out stays."""

    splits: Annotated[float, *between(-1.0, 1.0)] | None = Field(
        None, description="-1 (pixels that touch are one object) to 1 (most splits)"
    )
    background: list[int] | None = Field(None, description="classes that are no objects")
    edge: int | None = Field(None, description="class that marks edges of objects")
    min_pixels: Annotated[int, *between(1, 1_000_000)] | None = None
    drop_border: bool | None = Field(None, description="leave out objects at the border")


class NewCorrection(Body):
    """One correction of the objects of an image, in the image's own pixels."""

    id: SentKey | None = Field(None, description="your key: sent twice, it is stored once")
    kind: Literal["delete", "merge", "split", "border", "number", "number all", "class"]
    places: list[list[float]] = Field(
        default_factory=list, description="x and y of a place in every object meant"
    )
    points: list[list[float]] = Field(
        default_factory=list, description="x and y of a line's points or a border's corners"
    )
    number: int = Field(0, description="of number: the new number")
    value: int = Field(0, description="of class and of a new border: the class")
    order: Literal["", "rows", "size"] = Field("", description="of number all")


class UndoneCorrection(Body):
    """A correction to undo or redo; by default your own last one."""

    id: SentKey | None = None
    redo: bool = False


class Correction(Answer):
    """One correction of objects by hand."""

    id: Key
    kind: str
    sentence: str
    created_by: str
    created_at: Time
    undone: bool
    problem: str = Field(description="why it is not applied to the objects of today")
    source: str = Field(description="the prediction that it was taken over from")

    @classmethod
    def of(cls, row: ObjectCorrection) -> "Correction":
        """Return the answer for a correction."""
        return cls(
            id=row.pk,
            kind=row.kind,
            sentence=row.sentence,
            created_by=str(row.created_by or ""),
            created_at=row.created_at,
            undone=row.undone,
            problem=row.problem,
            source=row.source,
        )


class Corrected(Answer):
    """Result of a correction: the objects that there are now."""

    correction: Correction
    objects: int
    lost: list[str] = Field(description="corrections that are not applied any more, and why")


class Interval(Answer):
    """A mean over images with its 95 % range."""

    mean: float
    low: float | None = Field(description="2.5 % of the bootstrap over images")
    high: float | None = Field(description="97.5 %")
    images: int = Field(validation_alias="n_images")


class Prediction(Answer):
    """Masks and probabilities that a model predicted for an image set."""

    id: Key
    name: str
    image_set: Key
    model: Key
    images: int
    done: int
    refused: int
    job: Key | None
    accuracy: Interval | None
    iou: Interval | None
    log_loss: Interval | None
    created_at: Time

    @classmethod
    def of(cls, batch: PredictionBatch) -> "Prediction":
        """Return the answer for a prediction with its counts and figures."""
        numbers: Any = batch_numbers(batch)
        return cls(
            id=batch.pk,
            name=batch.name,
            image_set=batch.image_set_id,
            model=batch.segmenter_id or "",
            images=batch.n_images,
            done=batch.n_done,
            refused=batch.n_refused,
            job=batch.job_id or None,
            accuracy=numbers.accuracy if numbers else None,
            iou=numbers.iou if numbers else None,
            log_loss=numbers.log_loss if numbers else None,
            created_at=batch.created_at,
        )
