"""The shapes of what goes in and out, as JSON Schema 2020-12 for the OpenAPI document."""

from typing import Any

from webapp.matching.services.learning import METHODS
from webapp.segmentation.models import Segmenter

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
YES_NO: Schema = {"type": "boolean"}
KEY: Schema = {"type": "string", "format": "uuid"}
TIME: Schema = {"type": "string", "format": "date-time"}


def maybe(schema: Schema, description: str = "") -> Schema:
    """The schema, or null."""
    found: Schema = {"anyOf": [schema, {"type": "null"}]}
    return found | {"description": description} if description else found


def listed(schema: Schema) -> Schema:
    """A list of such values."""
    return {"type": "array", "items": schema}


def told(schema: Schema, description: str) -> Schema:
    """The schema with a description."""
    return schema | {"description": description}


def record(optional: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """An object with these properties and no others; all required but the optional ones."""
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def ref(name: str) -> Schema:
    """A reference to a named schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def page(name: str) -> Schema:
    """A page of a list."""
    return record(items=listed(ref(name)), total=WHOLE, limit=WHOLE, offset=WHOLE)


_JOB_STATES = ["queued", "running", "succeeded", "failed", "cancelled"]
_INTERVAL = record(
    mean=NUMBER,
    low=maybe(NUMBER, "2.5 % of the bootstrap over images"),
    high=maybe(NUMBER, "97.5 %"),
    images=WHOLE,
)

SCHEMAS: dict[str, Schema] = {
    "Problem": {
        "type": "object",
        "description": "RFC 9457 problem details; detail is one sentence for people.",
        "properties": {
            "type": TEXT,
            "title": TEXT,
            "status": WHOLE,
            "detail": TEXT,
            "problems": listed(TEXT),
        },
        "required": ["type", "title", "status", "detail"],
    },
    "Me": record(username=TEXT, role=TEXT, organisation=TEXT, may_change=YES_NO),
    "Job": record(
        id=KEY,
        kind=TEXT,
        title=TEXT,
        state={"enum": _JOB_STATES},
        progress=maybe(NUMBER, "0 to 1; null while unknown"),
        sentence=TEXT,
        error=TEXT,
        seconds_left=maybe(NUMBER),
        seed=WHOLE,
        code_version=TEXT,
        created_at=TIME,
        started_at=maybe(TIME),
        finished_at=maybe(TIME),
    ),
    "JobPage": page("Job"),
    "TracePoint": record(
        iteration=WHOLE,
        seconds=NUMBER,
        objective=maybe(NUMBER, "upper bound, nats"),
        lower_bound=maybe(NUMBER, "nats"),
        relative_gap=maybe(NUMBER),
    ),
    "Trace": record(points=listed(ref("TracePoint"))),
    "ImageSet": record(
        id=KEY,
        name=TEXT,
        foreground=TEXT,
        images=WHOLE,
        with_mask=WHOLE,
        bytes=WHOLE,
        created_at=TIME,
    ),
    "ImageSetPage": page("ImageSet"),
    "NewImageSet": record(
        ("foreground",),
        name=TEXT,
        foreground=told(TEXT, "what the masks mark, such as leaf"),
    ),
    "ImageFile": record(
        id=KEY,
        name=TEXT,
        role={"enum": ["image", "mask"]},
        media_type=TEXT,
        bytes=WHOLE,
        width=WHOLE,
        height=WHOLE,
        sha256=TEXT,
        origin={"enum": ["uploaded", "corrected"]},
        mask=maybe(KEY, "of an image: its mask"),
        mask_of=maybe(KEY, "of a mask: its image"),
        problem=TEXT,
    ),
    "ImageFilePage": page("ImageFile"),
    "UploadResults": record(
        results=listed(
            record(
                name=TEXT,
                outcome={"enum": ["added", "replaced", "same", "refused"]},
                sentence=TEXT,
                id=maybe(KEY),
            )
        )
    ),
    "Segmenter": record(
        id=KEY,
        name=TEXT,
        foreground=TEXT,
        image_sets=listed(KEY),
        images_learned=WHOLE,
        images_held_out=WHOLE,
        left_out=told(
            listed(record(name=TEXT, reason=TEXT)),
            "images that could not be used",
        ),
        held_out_error=maybe(NUMBER, "share of wrong pixels on held-out images"),
        relative_gap=maybe(NUMBER),
        iterations=maybe(WHOLE, "of all stages: rehearsals on fewer images, then all images"),
        iterations_on_all_images=maybe(WHOLE, "of the last stage alone, whose gap is certified"),
        is_ready=YES_NO,
        is_certified=YES_NO,
        job=maybe(KEY),
        created_at=TIME,
    ),
    "SegmenterPage": page("Segmenter"),
    "NewSegmenter": record(
        ("name", "restraint", "solver", "max_side", "max_seconds", "holdout_percent", "seed"),
        image_sets=listed(KEY),
        name=TEXT,
        restraint=told(NUMBER, "multiple of the usual lambda; 1 by default"),
        solver={"enum": list(Segmenter.Solver.values)},
        max_side=told(WHOLE, "pixels, 40 to 400; 200 by default"),
        max_seconds=told(WHOLE, "1 to 20,000; 300 by default"),
        holdout_percent=told(WHOLE, "0 to 50; 20 by default"),
        seed=told(WHOLE, "0 to 2,147,483,647; chosen for you when left out"),
    ),
    "NewPrediction": record(
        ("readout",), image_set=KEY, model=KEY, readout={"enum": ["marginal", "map"]}
    ),
    "PredictedImage": record(
        id=KEY,
        name=TEXT,
        state={"enum": ["waiting", "done", "refused"]},
        sentence=TEXT,
        width=WHOLE,
        height=WHOLE,
        learned_from=YES_NO,
        accuracy=maybe(NUMBER),
        iou=maybe(NUMBER),
        log_loss=maybe(NUMBER, "nats per pixel"),
        error_map=maybe(NUMBER),
        error_mpm=maybe(NUMBER),
        mean_entropy=maybe(NUMBER, "bits per pixel"),
        foreground_share=maybe(NUMBER),
    ),
    "PredictedImagePage": page("PredictedImage"),
    "Prediction": record(
        id=KEY,
        name=TEXT,
        image_set=KEY,
        model=KEY,
        images=WHOLE,
        done=WHOLE,
        refused=WHOLE,
        job=maybe(KEY),
        accuracy=maybe(_INTERVAL),
        iou=maybe(_INTERVAL),
        log_loss=maybe(_INTERVAL),
        created_at=TIME,
    ),
    "PredictionPage": page("Prediction"),
    "Cohort": record(
        id=KEY,
        name=TEXT,
        students=WHOLE,
        pairs=WHOLE,
        is_simulated=YES_NO,
        questions=listed(record(name=TEXT, kind=TEXT, levels=listed(TEXT))),
        constraints=listed(TEXT),
    ),
    "CohortPage": page("Cohort"),
    "RoommateModel": record(
        id=KEY,
        name=TEXT,
        cohorts=listed(KEY),
        is_learned=YES_NO,
        is_checked=YES_NO,
        is_simulated=YES_NO,
        figures={"type": "object", "description": "objective, gap and other numbers of the run"},
        weights={"type": "array", "items": {"type": "object"}},
        job=maybe(KEY),
        created_at=TIME,
    ),
    "RoommateModelPage": page("RoommateModel"),
    "NewRoommateModel": record(
        ("name", "ridge", "relative_gap", "rho", "method", "seed", "check_on"),
        cohorts=listed(KEY),
        name=TEXT,
        ridge=told(NUMBER, "lambda; 100 by default"),
        relative_gap=told(NUMBER, "1e-4 by default"),
        rho=told(NUMBER, "reweighting; 1 by default"),
        method=told({"enum": list(METHODS)}, "auto by default"),
        seed=told(WHOLE, "0 to 2,147,483,647; chosen for you when left out"),
        check_on=told(KEY, "a later cohort with pairs"),
    ),
    "Proposal": record(
        id=KEY,
        name=TEXT,
        cohort=KEY,
        model=KEY,
        same=listed(TEXT),
        is_computed=YES_NO,
        best_at=maybe(TIME, "when the certificate was made"),
        changes=told(WHOLE, "decisions since then"),
        forbidden=told(WHOLE, "its pairs that are by now rejected or never to be paired"),
        figures={"type": "object"},
        conflicts=told(listed(TEXT), "what must be decided before pairs can be proposed"),
        job=maybe(KEY),
        created_at=TIME,
    ),
    "ProposalPage": page("Proposal"),
    "NewProposal": record(("name", "same"), cohort=KEY, model=KEY, name=TEXT, same=listed(TEXT)),
    "Pair": record(
        id=WHOLE,
        first=told(TEXT, "pseudonymous id, such as S-1121"),
        second=TEXT,
        score=told(NUMBER, "nats"),
        probability=told(NUMBER, "share of pairings of this model in which the two share a room"),
        state={"enum": ["open", "accepted", "locked", "swapped", "rejected", "never"]},
        version=WHOLE,
        decided_by=TEXT,
    ),
    "PairPage": page("Pair"),
    "NewDecision": record(
        decision={"enum": ["accept", "reject", "lock", "never", "reopen"]},
        version=told(WHOLE, "the version of the pair that was looked at"),
    ),
    "Decided": record(sentence=TEXT),
}
