"""Corrections of objects by hand: acts, undo, counts and files after them, and several people."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
import tifffile

from tests.webapp.factories.images import DISCS, make_batch, make_segmenter, put_discs
from tests.webapp.roles import Page
from webapp.audit.models import AuditLine
from webapp.files import store
from webapp.segmentation.errors import SegmentationError
from webapp.segmentation.measuring import (
    measure_stored,
    object_numbers,
    object_options,
    stored_objects,
)
from webapp.segmentation.models import ObjectCorrection, PredictedImage, PredictionBatch
from webapp.segmentation.object_options import ObjectOptions
from webapp.segmentation.selectors.corrections import MAKES_OBJECTS, corrected_area
from webapp.segmentation.services import object_corrections
from webapp.segmentation.services.object_corrections import (
    correction_add,
    correction_undo,
    objects_write,
)
from webapp.segmentation.services.objects import usual_area

ONE, TWO, EDGE, ALONE = [(column + 0.5, row + 0.5) for row, column in DISCS]
SQUARE = [(5.0, 45.0), (25.0, 45.0), (25.0, 60.0), (5.0, 60.0)]
ACTS = {
    "delete": {"places": [EDGE]},
    "merge": {"places": [ONE, TWO]},
    "split": {"points": [(80.5, 35.0), (80.5, 63.0)]},
    "border": {"points": SQUARE},
    "number": {"places": [ALONE], "number": 41},
    "number all": {"order": "rows"},
}


def first(batch: PredictionBatch) -> PredictedImage:
    return batch.images.select_related("batch__segmenter", "file").order_by("name")[0]


def count(row: PredictedImage) -> int:
    return PredictedImage.objects.get(pk=row.pk).shares["1"]["count"]


def post(client, row: PredictedImage, name: str, sent: dict):
    url = f"{row.get_absolute_url()}corrections/{name}/"
    return client.post(url, json.dumps(sent), content_type="application/json")


def stored_is_measured(row: PredictedImage) -> None:
    """Measuring only the changed objects gives the same table as measuring all objects."""
    row.refresh_from_db()
    active = [one.edit for one in row.corrections.filter(undone=False)]
    table, shares, problems = measure_stored(row, object_options(row), active)
    assert problems == [one.problem for one in row.corrections.filter(undone=False)]
    assert shares == row.shares
    with np.load(io.BytesIO(table)) as whole, np.load(store.get(row.objects_path)) as kept:
        for name in whole.files:
            np.testing.assert_allclose(kept[name], whole[name], rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("kind", ACTS)
def test_each_act_changes_counts_and_undo_gives_the_same_labels(bob, discs, kind) -> None:
    row = first(discs)
    before = object_numbers(row)
    correction_add(user=bob, row=row, kind=kind, **ACTS[kind])
    expected = {"delete": 3, "merge": 3, "split": 5, "border": 5}.get(kind, 4)
    assert count(row) == expected
    assert not np.array_equal(object_numbers(first(discs)), before) or kind == "number all"
    stored_is_measured(row)
    correction_undo(user=bob, row=first(discs))
    assert count(row) == 4
    assert np.array_equal(object_numbers(first(discs)), before)
    stored_is_measured(row)
    correction_undo(user=bob, row=first(discs), redo=True)
    assert count(row) == expected
    stored_is_measured(row)


def test_acts_after_each_other_are_measured_as_a_whole(bob, discs) -> None:
    row = first(discs)
    for kind in ("merge", "split", "border", "number", "delete"):
        correction_add(user=bob, row=row, kind=kind, **ACTS[kind])
    stored_is_measured(row)
    for _ in range(5):
        correction_undo(user=bob, row=row)
        stored_is_measured(row)
    with pytest.raises(SegmentationError, match="no correction of yours"):
        correction_undo(user=bob, row=row)
    assert AuditLine.objects.filter(verb="corrected objects of").count() == 5
    assert AuditLine.objects.filter(verb="undid a correction of").count() == 5


def test_only_the_file_of_the_last_act_stays(
    bob, discs, django_capture_on_commit_callbacks
) -> None:
    row = first(discs)
    folder = row.objects_path.parent
    before = set(folder.iterdir())
    with django_capture_on_commit_callbacks(execute=True):
        correction_add(user=bob, row=row, kind="delete", places=[EDGE])
        correction_add(user=bob, row=row, kind="merge", places=[ONE, TWO])
    assert set(folder.iterdir()) - before == {first(discs).objects_path}


def test_corrected_objects_are_in_tables_files_and_reports(client_of, bob, discs) -> None:
    client, row = client_of(bob), first(discs)
    answer = post(client, row, "add", {"kind": "delete", "places": [EDGE]})
    assert answer.status_code == 201, answer.content
    state = answer.json()
    assert state["count"] == 3
    assert state["canUndo"]
    assert not state["canRedo"]
    assert [one["sentence"] for one in state["history"]] == ["Deleted 1 object"]
    assert state["history"][0]["who"] == "bob"
    assert post(client, row, "add", {"kind": "border", "points": SQUARE}).json()["count"] == 4
    url = row.get_absolute_url()
    numbers = tifffile.imread(io.BytesIO(client.get(f"{url}objects.tif").getvalue()))
    table = client.get(f"{url}objects.csv").getvalue().decode("utf-8-sig")
    lines = list(csv.DictReader(io.StringIO(table)))
    assert sorted(int(line["object"]) for line in lines) == sorted(set(np.unique(numbers)) - {0})
    for line in lines:
        assert float(line["area_px2"]) == (numbers == int(line["object"])).sum()
    assert (numbers[45:60, 5:25] == numbers[50, 10]).all()
    coco = json.loads(client.get(f"{url}coco.json").getvalue())
    assert len(coco["annotations"]) == 4
    assert len(json.loads(client.get(f"{url}objects.geojson").getvalue())["features"]) == 4
    report = Page(client.get(f"/predictions/{discs.pk}/objects/"))
    assert report.says("corrected by hand")
    page = Page(client.get(f"{url}count/"))
    assert page.says("2 corrections")


def test_several_people_undo_their_own_acts(client_of, bob, carol, discs) -> None:
    row = first(discs)
    correction_add(user=bob, row=row, kind="delete", places=[EDGE])
    correction_add(user=carol, row=row, kind="merge", places=[ONE, TWO])
    undone, lost = correction_undo(user=bob, row=first(discs))
    assert undone.kind == "delete"
    assert lost == []
    assert count(row) == 3
    state = client_of(bob).get(f"{row.get_absolute_url()}corrections/").json()
    assert not state["canUndo"]
    assert state["canRedo"]
    merged = row.corrections.get(kind="merge")
    assert post(client_of(bob), row, "undo", {"id": str(merged.pk)}).status_code == 200
    assert count(row) == 4


def test_acts_that_need_an_undone_one_are_named(client_of, bob, carol, discs) -> None:
    row = first(discs)
    joined = correction_add(user=bob, row=row, kind="merge", places=[ONE, TWO])
    correction_add(
        user=carol,
        row=row,
        kind="border",
        places=[ONE],
        points=[(15, 15), (70, 15), (70, 46), (15, 46)],
    )
    answer = post(client_of(bob), row, "undo", {"id": str(joined.pk)}).json()
    assert "Drew the border of 1 object: The object that was corrected" in answer["lost"][0]
    assert answer["problems"] == 1
    assert answer["count"] == 4
    stored_is_measured(row)
    answer = post(client_of(bob), row, "undo", {"redo": True}).json()
    assert answer["problems"] == 0


def test_two_people_at_once_lose_no_act(bob, carol, discs, monkeypatch) -> None:
    """While an act writes its file, others act; it is applied to what they left."""
    row = first(discs)
    others = [("number", {"places": [ALONE], "number": 7}), ("merge", {"places": [ONE, TWO]})]
    keep_bytes = object_corrections.keep_bytes

    def keep_while_others_act(path: Path, content: bytes) -> None:
        keep_bytes(path, content)
        if others:
            kind, options = others.pop()
            correction_add(user=carol, row=first(discs), kind=kind, **options)

    monkeypatch.setattr(object_corrections, "keep_bytes", keep_while_others_act)
    correction_add(user=bob, row=row, kind="delete", places=[EDGE])
    assert list(row.corrections.values_list("kind", flat=True)) == ["number", "merge", "delete"]
    assert count(row) == 2
    stored_is_measured(row)


def test_an_act_sent_twice_is_stored_once(client_of, bob, discs) -> None:
    client, row = client_of(bob), first(discs)
    sent = {"id": "0b0e7a4e-8f7e-4d6c-9b2b-6c2f1a3d4e5f", "kind": "delete", "places": [EDGE]}
    for _ in range(2):
        assert post(client, row, "add", sent).status_code == 201
    assert ObjectCorrection.objects.count() == 1
    other = discs.images.order_by("name")[1]
    assert post(client, other, "add", sent).status_code == 422


@pytest.mark.parametrize(
    "sent",
    [
        [],
        {},
        {"kind": "paint"},
        {"kind": 3},
        {"kind": "delete", "places": [[1e300, 2]]},
        {"kind": "delete", "places": [[True, 2]]},
        {"kind": "delete", "places": "here"},
        {"kind": "delete", "places": [[2.0, 60.0]]},
        {"kind": "delete", "places": [[1, 2, 3]]},
        {"kind": "border", "points": [[1, 1]] * 5000},
        {"kind": "border", "points": SQUARE, "value": 9},
        {"kind": "number", "places": [ALONE], "number": 10**9},
        {"kind": "number", "places": [ALONE], "number": True},
        {"kind": "delete", "places": [EDGE], "id": "mine"},
    ],
)
def test_senseless_acts_are_refused_and_change_nothing(client_of, bob, discs, sent) -> None:
    row = first(discs)
    answer = post(client_of(bob), row, "add", sent)
    assert answer.status_code == 422
    assert answer.json()["sentence"]
    assert not row.corrections.exists()
    assert count(row) == 4


def test_viewers_see_corrections_and_make_none(client_of, alice, bob, discs) -> None:
    row = first(discs)
    correction_add(user=bob, row=row, kind="delete", places=[EDGE])
    client = client_of(alice)
    state = client.get(f"{row.get_absolute_url()}corrections/").json()
    assert state["corrections"] == 1
    same = client.get(f"{row.get_absolute_url()}corrections/?key={state['key']}").json()
    assert same == {"key": state["key"]}
    assert post(client, row, "add", {"kind": "delete", "places": [ONE]}).status_code == 403
    assert post(client, row, "undo", {}).status_code == 403


def test_corrections_survive_other_options_or_say_why_not(bob, discs) -> None:
    row = first(discs)
    correction_add(user=bob, row=row, kind="delete", places=[EDGE])
    correction_add(user=bob, row=row, kind="delete", places=[TWO])
    discs.object_options = ObjectOptions(splits=-1.0).as_json()
    discs.save()
    row = first(discs)
    lost = objects_write(row, object_options(row))
    assert lost == ["The object that was corrected is another one here."]
    assert count(row) == 2  # the pair that is one object now, and the one alone
    stored_is_measured(row)
    discs.object_options = ObjectOptions().as_json()
    discs.save()
    row = first(discs)
    assert objects_write(row, object_options(row)) == []
    assert count(row) == 2
    assert not row.corrections.exclude(problem="").exists()


def test_a_new_prediction_takes_the_corrections_over(bob, discs, monkeypatch) -> None:
    row = first(discs)
    for kind in ("delete", "border"):
        correction_add(user=bob, row=row, kind=kind, **ACTS[kind])
    correction_add(user=bob, row=row, kind="delete", places=[ALONE])
    correction_undo(user=bob, row=row)
    batch = make_batch(bob, make_segmenter(bob, "Better", seed=3), discs.image_set)
    again = first(batch)
    copies = list(again.corrections.all())
    assert [one.kind for one in copies] == ["delete", "border"]
    assert all(one.source == "Leaves by Leaf model" for one in copies)
    assert all(one.created_by == bob for one in copies)
    put_discs(batch, [(31, 30), (30, 48), (1, 80), (49, 81)])
    assert not first(batch).corrections.exclude(problem="").exists()
    assert count(again) == 4
    stored_is_measured(first(batch))
    assert count(row) == 4  # the earlier prediction stays as it was
    assert not batch.images.order_by("name")[1].corrections.exists()


def test_corrected_objects_give_the_usual_size(bob, discs) -> None:
    row = first(discs)
    assert corrected_area(discs.image_set) is None
    for left in (2, 14, 26):
        box = [(left, 50.0), (left + 10, 50.0), (left + 10, 60.0), (left, 60.0)]
        correction_add(user=bob, row=row, kind="border", points=box)
    assert corrected_area(discs.image_set) is None
    correction_add(user=bob, row=row, kind="split", **ACTS["split"])
    assert "split" in MAKES_OBJECTS
    usual, number = corrected_area(discs.image_set)
    assert number == 5
    assert usual == 100.0
    assert usual_area(discs, 7.0) == 100.0
    correction_undo(user=bob, row=row)
    assert usual_area(discs, 7.0) == 7.0


def test_tables_of_earlier_versions_can_be_corrected(bob, discs) -> None:
    discs.object_options = {}
    discs.save()
    row = first(discs)
    with np.load(store.get(row.objects_path)) as kept:
        old = {name: kept[name][:3] for name in list(kept.files)[:8]}
    np.savez(store.get(row.objects_path), **old)
    assert stored_objects(row) is None
    correction_add(user=bob, row=row, kind="delete", places=[EDGE])
    assert count(row) == 2
    stored_is_measured(row)


def test_removing_a_prediction_removes_its_corrections_and_files(bob, discs) -> None:
    from webapp.segmentation.services.predictions import prediction_delete

    row = first(discs)
    correction_add(user=bob, row=row, kind="delete", places=[EDGE])
    path = first(discs).objects_path
    assert path.exists()
    prediction_delete(user=bob, batch=discs)
    assert not path.exists()
    assert not ObjectCorrection.objects.exists()
