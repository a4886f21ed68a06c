"""An installation as a large university has it after some years, for measuring the pages.

500 cohorts, one of 10,000 students with 40 placements of 5,000 pairs, 200 learned models, 300 image
sets (one of 3,000 files), 200 predictions (one of 2,000 images), 1,000 jobs and 20,000 audit lines.
Rows are written directly, through the models; what they hold has the size of what the product
writes itself: the survey has 14 questions, every model has its curves, every pair its numbers.

``fill`` runs inside Django; ``benchmarks.product.web`` calls it.
"""

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import lru_cache
from typing import Any

import numpy as np
from django.db import transaction
from django.utils import timezone

from engine import question_weights, simulate_university, train_roommates
from engine.datasets.university import SimulatedCohort
from engine.learning.roommates.training import TrainedRoommates
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort, PairsOrigin, PastPair, Student
from webapp.files import store
from webapp.housing.models import BuildingList, PairState, Place, PlacedPair, Placement
from webapp.housing.pairs.placing import ensure_rooms, rules_of_pairs
from webapp.jobs.models import Job, JobState
from webapp.matching.allowed_pairs import SAMPLED_PAIRS
from webapp.matching.like_students import GROUPS
from webapp.matching.models import LearnedModel
from webapp.matching.results import learning_figures, weight_rows
from webapp.segmentation.models import (
    HeldOutPoint,
    ImageFile,
    ImageSet,
    PredictedImage,
    PredictionBatch,
    Segmenter,
)

SEED = 7
LARGE = "First-years of everybody"
BATCH = 2_000
CURVE_POINTS = 160


@lru_cache(maxsize=1)
def learned_year() -> tuple[SimulatedCohort, TrainedRoommates]:
    """Return one year of a small university and what was learned from it."""
    year = simulate_university(120, 1, rng=np.random.default_rng(SEED), by_gender=True).cohorts[0]
    return year, train_roommates([(year.survey, year.pairs)], ridge=10.0)


class Filler:
    """Writes the rows of one organisation; ``scale`` shrinks every count for a quick look.

    ``prefix`` begins the names that must differ from those of another filling.
    """

    def __init__(self, user: User, scale: float = 1.0, prefix: str = "") -> None:
        self.prefix = prefix
        self.user = user
        self.owner = {"organisation": user.organisation, "created_by": user}
        self.rng = np.random.default_rng(SEED)
        self._scale = scale
        self.first_number = 1001  # of the next cohort

    def count(self, number: int) -> int:
        """Return a count at this scale: even, and never too few to show anything."""
        return max(4, 2 * round(number * self._scale / 2))

    def fill(self, say: Callable[[str], None] = print) -> None:
        """Write everything, one transaction for each kind."""
        self._model_data()
        for step in (self._cohorts, self._large, self._models, self._placements):
            with transaction.atomic():
                say(step.__name__.strip("_"))
                step()
        for step in (self._image_sets, self._segmenters, self._predictions, self._jobs):
            with transaction.atomic():
                say(step.__name__.strip("_"))
                step()

    def _model_data(self) -> None:
        year, self.trained = learned_year()
        self.survey = year.survey
        self.questions = [
            {"name": q.name, "kind": q.kind, "levels": list(q.levels)}
            for q in year.survey.questionnaire.questions
        ]

    def _cohorts(self) -> None:
        """Small years of the past, with pairs; half of them to be paired still."""
        for k in range(self.count(500) - 1):
            self._cohort(f"Hall {k:03d}", self.survey.n_students, with_pairs=k % 2 == 0)

    def _large(self) -> None:
        self.large = self._cohort(LARGE, self.count(10_000), with_pairs=False)

    def _cohort(self, name: str, n_students: int, *, with_pairs: bool) -> Cohort:
        cohort = Cohort.objects.create(
            **self.owner,
            name=self.prefix + name,
            filename="survey.csv",
            questions=self.questions,
            constraints=["Gender"],
            n_students=n_students,
        )
        levels = [len(question["levels"]) for question in self.questions]
        answers = self.rng.integers(0, levels, (n_students, len(levels)))
        students = Student.objects.bulk_create(
            (
                Student(
                    cohort=cohort,
                    number=self.first_number + k,
                    original_id=f"A{self.first_number + k:07d}",
                    answers=row,
                    attributes={"Gender": "female" if k % 2 else "male"},
                )
                for k, row in enumerate(answers.tolist())
            ),
            batch_size=BATCH,
        )
        self.first_number += n_students  # a number means one student of the organisation
        if with_pairs:
            PastPair.objects.bulk_create(
                PastPair(cohort=cohort, first=first, second=second)
                for first, second in zip(students[::2], students[1::2], strict=True)
            )
            Cohort.objects.filter(pk=cohort.pk).update(
                n_pairs=n_students // 2, pairs_origin=PairsOrigin.IMPORTED
            )
        return cohort

    def _models(self) -> None:
        curve = [[float(x), float(x) ** 0.5] for x in np.linspace(0, 1, CURVE_POINTS)]
        past = list(Cohort.objects.filter(n_pairs__gt=0, organisation=self.user.organisation)[:50])
        findings = {
            "auc": 0.71, "baseline_auc": 0.62, "n_pairs": 60, "right": 0.2, "chance": 0.01,
            "n_right": 12, "hamming_error": 0.8, "hamming_chance": 0.99, "is_simulated": False,
        }  # fmt: skip
        curves = {"roc": curve, "baseline_roc": curve, "reliability": [], "raw_reliability": []}
        self.models = []
        for k in range(self.count(200)):
            source = past[k % len(past)]
            model = LearnedModel.objects.create(
                **self.owner,
                name=f"Model {k:03d}",
                questions=self.questions,
                sources=[
                    {
                        "cohort": str(source.pk),
                        "name": source.name,
                        "students": source.n_students,
                        "pairs": source.n_pairs,
                        "simulated": False,
                    }
                ],
                options={"ridge": 10.0, "relative_gap": 1e-4, "rho": 1.0, "method": "auto"},
                learned_at=timezone.now(),
                figures=learning_figures(self.trained, 1e-4),
                weights=weight_rows(question_weights(self.trained.model)),
                checked_name=source.name,
                findings=findings,
                curves=curves,
                job=self._job("roommates.learn", f"Learn: Model {k:03d}"),
            )
            model.cohorts.set([source])
            self.trained.model.save(model.path)
            store.put(model.path)  # for every host
            self.models.append(model)

    def _placements(self) -> None:
        arrays = uuid.uuid4()
        for k in range(self.count(40)):
            buildings = BuildingList.everything.create(
                **self.owner, name=f"{self.prefix}Pairs {k:03d}", is_private=True
            )
            placement = Placement.objects.create(
                **self.owner,
                name=f"Pairs {k:03d}",
                cohort=self.large,
                buildings=buildings,
                model=self.models[0],
                rules=rules_of_pairs(["Gender"]),
                is_pairs=True,
                revision=1,
                arrays=arrays,
                best_at=timezone.now(),
                figures={"n_single": 0, "n_rough": 0, "is_calibrated": True, "gap": 0.0},
                job=self._job("roommates.propose", f"Pair: Pairs {k:03d}"),
            )
            if k == 0:
                self._write_arrays(placement)
            rooms = ensure_rooms(placement, (self.large.n_students + 1) // 2)
            pairs = PlacedPair.objects.bulk_create(self._pairs(placement, rooms), batch_size=BATCH)
            Place.objects.bulk_create(self._places(placement, pairs), batch_size=BATCH)
            placement.n_pairs, placement.n_open = len(pairs), sum(pair.is_open for pair in pairs)
            placement.count_people()
            placement.save()

    def _write_arrays(self, placement: Placement) -> None:
        """All placements share one file of marginals, which is large: 400 MB of 10,000 students."""
        small, large = placement.files_of(placement.arrays)
        n = self.large.n_students
        between = self.rng.random((min(GROUPS, n), min(GROUPS, n))) + 0.5
        np.savez(
            small,
            doubt=np.full(n, 90.0),
            n_allowed=np.full(n, n // 2 - 1),
            between_groups=between,
            allowed_scores=self.rng.normal(size=SAMPLED_PAIRS).astype(np.float32),
        )
        marginals = np.lib.format.open_memmap(large, "w+", np.float32, (n, n))
        for rows in np.array_split(np.arange(n), max(1, n // 500)):
            marginals[rows] = self.rng.random((len(rows), n), dtype=np.float32) / n
        marginals.flush()

    def _pairs(self, placement: Placement, rooms: list[int]) -> Iterator[PlacedPair]:
        keys = list(self.large.students.values_list("pk", "number"))
        by_gender = [key for start in (0, 1) for key in keys[start::2]]
        names = [question["name"] for question in self.questions]
        for k in range(0, len(by_gender) - 1, 2):
            (first, a), (second, b) = sorted(by_gender[k : k + 2], key=lambda key: key[1])
            chosen = self.rng.choice(len(names), 4, replace=False).tolist()
            yield PlacedPair(
                placement=placement,
                room_id=rooms[k // 2],
                first_id=first,
                second_id=second,
                first_number=a,
                second_number=b,
                score=float(self.rng.normal()),
                probability=0.004,
                multiple=12.0,
                doubt=float(self.rng.integers(20, 400)),
                allowed=float(len(keys) // 2),
                doubt_share=float(self.rng.random()),
                chips=[[names[q], q % 2 == 0] for q in chosen[:3]],
                weak=f"|{chosen[3]}|",
                state=PairState.ACCEPTED if k % 8 == 0 else PairState.OPEN,
                decided_by="bob" if k % 8 == 0 else "",
            )

    def _places(self, placement: Placement, pairs: list[PlacedPair]) -> Iterator[Place]:
        for pair in pairs:
            seats = ((pair.first_id, pair.first_number), (pair.second_id, pair.second_number))
            for bed, (key, number) in enumerate(seats, start=1):
                yield Place(
                    placement=placement,
                    student_id=key,
                    number=number,
                    room_id=pair.room_id,
                    bed=bed,
                    score=pair.score,
                    doubt=pair.doubt_share,
                )

    def _image_sets(self) -> None:
        self.sets = []
        for k in range(self.count(300)):
            image_set = ImageSet.objects.create(**self.owner, name=f"Set {k:03d}")
            self._files(image_set, self.count(3_000) if k == 0 else 20)
            self.sets.append(image_set)

    def _files(self, image_set: ImageSet, count: int) -> None:
        common = {
            "image_set": image_set,
            "width": 640,
            "height": 480,
            "size": 100_000,
        }
        images = ImageFile.objects.bulk_create(
            (
                ImageFile(
                    **common, name=f"{k:05d}.jpg", digest=self._digest(), media_type="image/jpeg"
                )
                for k in range(count)
            ),
            batch_size=500,
        )
        ImageFile.objects.bulk_create(
            (
                ImageFile(
                    **common,
                    name=f"{k:05d}_mask.png",
                    digest=self._digest(),
                    media_type="image/png",
                    role=ImageFile.Role.MASK,
                    mask_of=image,
                )
                for k, image in enumerate(images[: count // 2])
            ),
            batch_size=500,
        )

    def _digest(self) -> str:
        return self.rng.bytes(32).hex()

    def _segmenters(self) -> None:
        self.segmenters = []
        for k in range(self.count(100)):
            segmenter = Segmenter.objects.create(
                **self.owner,
                name=f"Leaves {k:03d}",
                learned_digests=[self._digest() for _ in range(200)],
                held_out_digests=[self._digest() for _ in range(40)],
                outcome={
                    "relative_gap": 5e-4,
                    "converged": True,
                    "status": "converged",
                    "seconds": 30.0,
                    "steps": 40,
                    "iterations": 40,
                    "log_likelihood": -100.0,
                    "ridge": 1.0,
                },
                job=self._job("segmentation.learn", f"Learn: Leaves {k:03d}"),
            )
            segmenter.image_sets.set([self.sets[k % len(self.sets)]])
            HeldOutPoint.objects.bulk_create(
                HeldOutPoint(segmenter=segmenter, iteration=i, seconds=i, error=1 / (i + 1))
                for i in range(30)
            )
            self.segmenters.append(segmenter)

    def _predictions(self) -> None:
        bins = {"pixels": [1000] * 10, "predicted": [100.0] * 10, "observed": [95.0] * 10}
        for k in range(self.count(200)):
            image_set = self.sets[k % len(self.sets)]
            batch = PredictionBatch.objects.create(
                **self.owner,
                name=f"Prediction {k:03d}",
                segmenter=self.segmenters[k % len(self.segmenters)],
                image_set=image_set,
                job=self._job("segmentation.predict", f"Predict: Prediction {k:03d}"),
            )
            files = image_set.files.filter(role=ImageFile.Role.IMAGE).select_related("mask")
            PredictedImage.objects.bulk_create(
                (self._predicted(batch, file, bins) for file in files[: self.count(2_000)]),
                batch_size=500,
            )

    def _predicted(
        self, batch: PredictionBatch, file: ImageFile, bins: dict[str, Any]
    ) -> PredictedImage:
        has_mask = file.paired_mask is not None
        numbers = {
            "error_map": 0.04, "error_mpm": 0.04, "iou": float(self.rng.random()), "log_loss": 0.1,
            "extra_share": 0.02, "missed_share": 0.02, "reliability": bins,
        }  # fmt: skip
        return PredictedImage(
            batch=batch,
            file=file,
            name=file.name,
            image_digest=file.digest,
            mask_digest=file.mask.digest if has_mask else "",
            state=PredictedImage.State.DONE,
            width=file.width,
            height=file.height,
            seconds=1.0,
            mean_entropy=0.2,
            foreground_share=0.4,
            **(numbers if has_mask else {}),
        )

    def _job(self, kind: str, title: str) -> Job:
        now = timezone.now()
        return Job.objects.create(
            **self.owner,
            kind=kind,
            title=title,
            parameters={},
            state=JobState.SUCCEEDED,
            sentence="Done",
            result={"sentence": "Done", "note": "x" * 400},
            seed=1,
            code_version="0",
            started_at=now,
            attempt_started_at=now,
            finished_at=now + timedelta(seconds=3),
        )

    def _jobs(self) -> None:
        for k in range(self.count(500)):
            self._job("roommates.propose", f"Propose: job {k:03d}")
        AuditLine.objects.bulk_create(
            (
                AuditLine(
                    organisation=self.user.organisation,
                    user=self.user,
                    username=self.user.username,
                    verb=("accepted", "exported", "imported", "locked")[k % 4],
                    target_type="placement",
                    target_id=str(uuid.uuid4()),
                    target_name=f"Pairs {k % 40:03d}",
                    details={"pairs": [f"S-{1001 + k % 9000} + S-{2001 + k % 8000}"], "count": 1},
                )
                for k in range(self.count(20_000))
            ),
            batch_size=BATCH,
        )


def fill(user: User, scale: float = 1.0) -> None:
    """Fill the organisation of a user."""
    Filler(user, scale).fill()
