"""A prediction that is spread, whose worker is killed within a piece, is an undisturbed one."""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.live.product import new_product
from tests.patience import wait_for

_PREDICT = """
from tests.webapp.factories.images import encoded, make_segmenter, picture
from webapp.accounts.models import User
from webapp.segmentation.services.image_sets import image_set_create
from webapp.segmentation.services.predictions import prediction_start
from webapp.segmentation.services.uploads import image_file_add
bob = User.objects.get(username="bob")
segmenter = make_segmenter(bob)
image_set = image_set_create(user=bob, name="Leaves", foreground="leaf")
for k in range(9):
    content = encoded(picture(k, (480, 360)), "PNG")
    image_file_add(user=bob, image_set=image_set, name=f"leaf_{k}.png", chunks=[content])
for _ in range(2):
    print(prediction_start(user=bob, segmenter=segmenter, image_set=image_set).job_id)
"""
_RESULTS = """
import hashlib, json
from webapp.segmentation.models import PredictionBatch
said = {}
for batch in PredictionBatch.objects.all():
    said[str(batch.job_id)] = [
        [row.name, row.state, row.mean_entropy, row.foreground_share,
         *(hashlib.sha256(path.read_bytes()).hexdigest()
           for path in (row.marginals_path, row.mask_path, row.layers_path))]
        for row in batch.images.all()
    ]
print(json.dumps(said))
"""
# A piece that runs while other images of its prediction are done.
_PIECE = """
SELECT worker, parent_id FROM jobs_job WHERE state = 'running' AND parent_id IN (
    SELECT b.job_id FROM segmentation_predictedimage JOIN segmentation_predictionbatch b
    ON b.uuid = batch_id WHERE state = 'done'
)
"""
_AGAIN = "SELECT 1 FROM jobs_job WHERE parent_id = ? AND attempt > 1"


@pytest.mark.slow
def test_pieces_go_on_where_their_worker_was_killed(tmp_path: Path) -> None:
    product = new_product(
        tmp_path,
        DJANGO_SETTINGS_MODULE="tests.webapp.live_settings",
        PIECE_IMAGES="3",
        LEARN_WORKERS="1",
    )
    product.start()
    try:
        with ThreadPoolExecutor(1) as pool:
            # Watched from the first moment: a quick worker is done soon after the program.
            started = pool.submit(product.run, _PREDICT, timeout=240)
            piece = wait_for(lambda: product.rows(_PIECE), logs=product.logs)[0]
            os.kill(int(piece["worker"].split(":")[-2]), signal.SIGKILL)
            jobs = started.result().splitlines()[-2:]
        key = piece["parent_id"]
        killed, undisturbed = sorted(jobs, key=lambda job: job.replace("-", "") != key)
        wait_for(lambda: product.rows(_AGAIN, key), logs=product.logs)
        over = "SELECT state FROM jobs_job WHERE n_pieces > 0 AND finished_at IS NOT NULL"
        wait_for(lambda: len(product.rows(over)) == 2, logs=product.logs)
        assert {row["state"] for row in product.rows(over)} == {"succeeded"}
        said = json.loads(product.run(_RESULTS).splitlines()[-1])
        assert said[killed] == said[undisturbed]
        assert [row[1] for row in said[killed]] == ["done"] * 9
        assert not product.rows("SELECT 1 FROM jobs_job WHERE parent_id IS NOT NULL")
    finally:
        product.stop()
