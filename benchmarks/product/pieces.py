"""A prediction of many images dealt out: what it costs to start, deal, claim, tell and end it.

    python -m benchmarks product pieces [--images 100000]

Predicts nothing: what is measured is what spreading adds. The database is SQLite in a new folder,
or what DATABASE_URL names, which must be empty.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

from benchmarks.common.reporting import ROOT, print_machine, print_table


def main() -> None:
    """Make an installation, then measure in it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--images", type=int, default=100_000)
    images = parser.parse_args().images
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BETHE_HALL_INSTANCE"] = folder
        os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
        os.environ["ORGANISATION_QUOTA_GB"] = "1e6"
        command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        subprocess.run(command, cwd=ROOT, check=True)
        import django

        django.setup()
        print_machine()
        print_table(f"{images:,} images", ["step", "seconds", "once for"], list(measure(images)))


def measure(images: int) -> list[list[object]]:
    """Return steps, their seconds, and what each is done for."""
    from webapp.accounts.models import Organisation, User
    from webapp.jobs import dispatch, pieces, runner
    from webapp.jobs.claims import job_claim, job_claim_next
    from webapp.jobs.registry import Queue, kinds_of
    from webapp.jobs.services import jobs_sweep
    from webapp.segmentation.models import ImageFile, ImageSet, PredictedImage, Segmenter
    from webapp.segmentation.services.predictions import prediction_start

    dispatch.send = lambda job_id, queue: True  # type: ignore[assignment]  # there is no broker
    user = User.objects.create_user(
        username="bob", role="staff", organisation=Organisation.objects.create(name="Northfield")
    )
    owned = {"organisation": user.organisation, "created_by": user}
    image_set = ImageSet.objects.create(name="Many", foreground="leaf", **owned)
    ImageFile.objects.bulk_create(
        (
            ImageFile(image_set=image_set, name=f"{k:06}.png", digest=f"{k:064x}", width=64,
                      height=64, role=ImageFile.Role.IMAGE, size=1000)
            for k in range(images)
        ),
        batch_size=1000,
    )  # fmt: skip
    segmenter = Segmenter.objects.create(name="Leaf", outcome={"status": "converged"}, **owned)
    rows: list[list[object]] = []

    def timed(step: str, unit: str, work: object, count: int = 1) -> object:
        started = time.perf_counter()
        answer = work()  # type: ignore[operator]
        rows.append([step, (time.perf_counter() - started) / count, unit])
        return answer

    batch = timed(
        "start, in the request of a person", "all",
        lambda: prediction_start(user=user, segmenter=segmenter, image_set=image_set),
    )  # fmt: skip
    job = job_claim(job_id=batch.job_id)  # type: ignore[attr-defined]
    timed("deal, in a worker", "all", lambda: runner._run_claimed(job))  # type: ignore[arg-type]
    kinds = kinds_of(Queue.LONG)
    taken = timed("claim the next piece", "a piece",
                  lambda: [job_claim_next(kinds=kinds) for _ in range(10)], 10)  # fmt: skip
    timed("tell how far the whole is", "2 s",
          lambda: pieces._standing(job))  # type: ignore[arg-type]  # fmt: skip
    timed("sweep", "10 s", jobs_sweep)
    PredictedImage.objects.update(state=PredictedImage.State.DONE)
    for piece in taken:  # type: ignore[attr-defined]
        runner._finish(piece, dict)
    while (piece := job_claim_next(kinds=kinds)) is not None:
        runner._finish(piece, dict)
    timed("end the whole", "all", lambda: pieces.spread_advance(job_id=job.pk))  # type: ignore[union-attr]
    job.refresh_from_db()  # type: ignore[union-attr]
    rows.append([f"-> {job.state}: {job.sentence}", None, f"{len(taken)}"])  # type: ignore
    return rows


if __name__ == "__main__":
    main()
