"""Image sets, models and predictions through the interface."""

import io
import zipfile

import numpy as np
import pytest
from django.test import Client

from tests.webapp.factories.images import block_mask, encoded, picture, upload, zipped
from webapp.api.openapi import PREFIX
from webapp.api.services import token_create
from webapp.audit.models import AuditLine
from webapp.jobs.runner import run_job
from webapp.segmentation.models import ImageSet, PredictionBatch, Segmenter


def body(response) -> bytes:
    return b"".join(response.streaming_content) if response.streaming else response.content


def test_a_whole_round(program_of, bob, segmenter) -> None:
    """Make a set, fill it from a ZIP, predict it, fetch the results."""
    program = program_of(bob)
    made = program.post("/image-sets", {"name": "Scans", "foreground": "leaf"})
    assert made.status_code == 201
    key = made.data["id"]
    content = zipped(
        {
            "a.jpg": encoded(picture(1)),
            "a.mask.png": encoded(block_mask(), "PNG"),
            "b.jpg": encoded(picture(2)),
            "notes.txt": b"hello",
        }
    )
    results = program.post(f"/image-sets/{key}/files", file=upload("all.zip", content)).data
    assert [result["outcome"] for result in results["results"]].count("added") == 3
    assert program.get(f"/image-sets/{key}").data["with_mask"] == 1

    started = program.post("/predictions", {"image_set": key, "model": str(segmenter.pk)})
    assert started.status_code == 202
    run_job(started.data["job"], watched=False)
    job = program.get(f"/jobs/{started.data['job']}").data
    assert (job["state"], job["sentence"]) == ("succeeded", "2 of 2 images predicted.")
    found = program.get(f"/predictions/{started.data['id']}").data
    assert (found["done"], found["iou"]["images"]) == (2, 1)

    images = program.get(f"/predictions/{found['id']}/images?order=name").data["items"]
    base = f"/predictions/{found['id']}/images/{images[0]['id']}"
    marginals = np.load(io.BytesIO(body(program.get(f"{base}/marginals.npy"))))
    assert marginals.shape == (24, 36)
    assert body(program.get(f"{base}/mask.png")).startswith(b"\x89PNG")
    assert body(program.get(f"{base}/overlay.png")).startswith(b"\x89PNG")
    archive = zipfile.ZipFile(io.BytesIO(body(program.get(f"/predictions/{found['id']}/archive"))))
    assert len(archive.namelist()) == 11
    lines = AuditLine.objects.filter(verb="exported", username=bob.username).order_by("pk")
    kinds = [line.details.get("file") or line.details["format"] for line in lines]
    assert kinds == ["marginals.npy", "mask.png", "overlay.png", "ZIP"]
    assert program.delete(f"/predictions/{found['id']}").status_code == 204
    assert program.delete(f"/image-sets/{key}").status_code == 204


def test_a_key_of_the_program_starts_one_prediction(program_of, bob, segmenter, image) -> None:
    program = program_of(bob)
    sent = {"image_set": str(image.image_set.pk), "model": str(segmenter.pk)}
    answers = []
    for key in ("first", "first", "second"):
        program._headers["Idempotency-Key"] = key
        answers.append(program.post("/predictions", sent))
    assert [answer.status_code for answer in answers] == [202, 409, 202]
    assert "was not started twice" in answers[1].data["detail"]
    assert answers[0].data["job"] in answers[1].data["problems"][0]
    assert PredictionBatch.objects.count() == 2


def test_learning_is_queued(program_of, bob, image_set, sent_job_ids) -> None:
    answer = program_of(bob).post(
        "/image-models",
        {"image_sets": [str(image_set.pk)], "name": "By program", "max_side": 100, "seed": 5},
    )
    assert answer.status_code == 202
    segmenter = Segmenter.objects.get(pk=answer.data["id"])
    assert (segmenter.max_side, segmenter.job.seed) == (100, 5)
    assert not answer.data["is_ready"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"image_sets": []}, "at least one"),
        ({"image_sets": "all"}, "expected a list"),
        ({"max_side": 5}, "at least 16 pixels"),
        ({"max_side": True}, "whole number"),
        ({"solver": "magic"}, "solver"),
        ({"restraint": "much"}, "a number"),
        ({"holdout_percent": 90}, "0 to 50"),
        ({"seed": -1}, "seed: expected 0 to"),
        ({"restraint": 10**400}, "too large"),
    ],
)
def test_bad_choices_are_refused_by_name(program_of, bob, image_set, change, words) -> None:
    asked = {"image_sets": [str(image_set.pk)]} | change
    answer = program_of(bob).post("/image-models", asked)
    assert answer.status_code == 422
    assert words in answer.data["detail"]
    assert not Segmenter.objects.exists()


def test_foreign_sets_and_models_cannot_be_used(
    program_of, bob, mallory, make_set, image_set, segmenter
) -> None:
    foreign = make_set(mallory)
    program = program_of(bob)
    assert program.post("/image-models", {"image_sets": [str(foreign.pk)]}).status_code == 404
    asked = {"image_set": str(foreign.pk), "model": str(segmenter.pk)}
    assert program.post("/predictions", asked).status_code == 404
    assert not PredictionBatch.objects.exists()


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff\xfe", b"[" * 100_000])
def test_bodies_that_are_no_object_are_refused(program_of, bob, content) -> None:
    program = program_of(bob)
    answer = program._client.post(
        "/api/v1/image-sets",
        content,
        content_type="application/json",
        headers=program._headers,
    )
    assert answer.status_code == 400
    assert not ImageSet.objects.exists()


def test_names_are_checked(program_of, bob) -> None:
    program = program_of(bob)
    for body, words in (
        ({"name": ""}, "name: This field cannot be blank."),
        ({"name": "x" * 500}, "name: Ensure this value has at most 120 characters (it has 500)."),
        ({"name": "Scans", "foreground": "x" * 41}, "foreground: Ensure this value has at most 40"),
        ({"name": 5}, "name: expected text."),
    ):
        answer = program.post("/image-sets", body)
        assert answer.status_code == 422
        assert answer.data["detail"].startswith(words)


def test_masks_are_paired_and_unpaired(program_of, bob, image_set) -> None:
    program = program_of(bob)
    mask = image_set.files.get(name="leaf_0.mask.png")
    other = image_set.files.get(name="leaf_2.jpg")
    base = f"/image-sets/{image_set.pk}/files/{mask.pk}"
    assert program.post(f"{base}/unpair").data["mask_of"] is None
    assert program.post(f"{base}/pair/{other.pk}").data["mask_of"] == str(other.pk)
    refused = program.post(f"{base}/pair/{mask.pk}")
    assert refused.status_code == 422
    assert refused.data["detail"] == "Choose an image of the same set."


def test_files_are_listed_by_role_in_pages(program_of, bob, image_set) -> None:
    program = program_of(bob, may_change=False)
    base = f"/image-sets/{image_set.pk}/files"
    assert program.get(f"{base}?role=mask").data["total"] == 2
    second = program.get(f"{base}?limit=2&offset=2").data
    assert (len(second["items"]), second["total"]) == (2, 5)
    assert program.get(f"{base}?limit=many").status_code == 422


def test_originals_come_with_safe_headers(program_of, bob, image_set, image) -> None:
    answer = program_of(bob).get(f"/image-sets/{image_set.pk}/files/{image.pk}/content")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "attachment" in answer["Content-Disposition"]
    assert body(answer) == image.store.path(image.digest).read_bytes()
    assert AuditLine.objects.get(verb="exported").target_id == str(image.pk)


def test_a_model_names_what_was_left_out(program_of, bob, segmenter) -> None:
    left_out = [{"name": "leaf_1.jpg", "reason": "leaf_1.jpg: the file is empty."}]
    for outcome in ({}, {"left_out": left_out}):
        segmenter.outcome |= outcome
        segmenter.save()
        answer = program_of(bob).get(f"/image-models/{segmenter.pk}")
        assert answer.data["left_out"] == outcome.get("left_out", [])


def test_a_model_file_is_an_export(program_of, bob, segmenter) -> None:
    answer = program_of(bob).get(f"/image-models/{segmenter.pk}/file")
    assert body(answer) == segmenter.path.read_bytes()
    assert AuditLine.objects.get(verb="exported").target_id == str(segmenter.pk)


@pytest.mark.parametrize("what", ["content", "file", "mask.png", "archive"])
def test_asking_for_headers_alone_is_no_export(bob, batch, image_set, image, what: str) -> None:
    address = {
        "content": f"/image-sets/{image_set.pk}/files/{image.pk}/content",
        "file": f"/image-models/{batch.segmenter_id}/file",
        "mask.png": f"/predictions/{batch.pk}/images/{batch.images.first().pk}/mask.png",
        "archive": f"/predictions/{batch.pk}/archive",
    }[what]
    _, secret = token_create(user=bob, name="sync", may_change=False, days=30)
    headers = {"authorization": f"Bearer {secret}"}
    assert Client().head(PREFIX + address, headers=headers).status_code == 200
    assert not AuditLine.objects.filter(verb="exported").exists()


def test_what_nobody_foresaw_stays_without_details(program_of, bob, monkeypatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the password is swordfish")

    monkeypatch.setattr("webapp.api.endpoints.images.image_sets_of", broken)
    answer = program_of(bob).get("/image-sets")
    assert answer.status_code == 500
    assert "swordfish" not in answer.content.decode()


def test_a_job_is_cancelled(program_of, bob, image_set, segmenter) -> None:
    program = program_of(bob)
    asked = {"image_set": str(image_set.pk), "model": str(segmenter.pk)}
    job = program.post("/predictions", asked).data["job"]
    assert program.post(f"/jobs/{job}/cancel").data["state"] == "cancelled"
    assert program.get(f"/jobs/{job}/trace").data == {"points": []}


def test_objects_are_measured_and_corrected_by_programs(program_of, bob, discs) -> None:
    program = program_of(bob)
    base = f"/predictions/{discs.pk}"
    image = f"{base}/images/{discs.images.order_by('name')[0].pk}"
    assert program.get(f"{base}/objects").data["splits"] == 0.0
    sent = {"kind": "delete", "places": [[80.5, 0.5]]}
    done = program.post(f"{image}/corrections", sent)
    assert done.status_code == 201
    assert done.data["objects"] == 3
    assert done.data["correction"]["sentence"] == "Deleted 1 object"
    refused = program.post(f"{image}/corrections", sent)
    assert refused.status_code == 422
    assert "no object at this place" in refused.data["detail"]
    listed = program.get(f"{image}/corrections").data
    assert [one["created_by"] for one in listed["items"]] == ["bob"]
    assert len(body(program.get(f"{image}/objects.csv")).decode().splitlines()) == 4
    back = program.post(f"{image}/corrections/undo", {"id": done.data["correction"]["id"]})
    assert back.data["objects"] == 4
    assert program.post(f"{image}/corrections/undo", {}).status_code == 422
    assert program.post(f"{base}/objects", {"splits": 3}).status_code == 422
    assert program.post(f"{base}/objects", {"background": [9]}).status_code == 422
    job = program.post(f"{base}/objects", {"splits": -1, "min_pixels": 12})
    assert job.status_code == 202
    choices = program.get(f"{base}/objects").data
    assert (choices["splits"], choices["min_pixels"], choices["drop_border"]) == (-1, 12, False)
