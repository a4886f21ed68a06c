"""Painting classes: strokes are kept, checked and taken back; the warm process answers."""

import gzip
import json
import os
import subprocess
import sys
import threading
import uuid

import numpy as np
import pytest
from django.test import Client

from engine.datasets.annotations.raster import paint_strokes
from tests.patience import wait_for
from tests.webapp.factories.painting import INSIDE, OUTSIDE, stroke
from tests.webapp.roles import Page
from webapp.audit.models import AuditLine
from webapp.instance import BASE_DIR
from webapp.segmentation.errors import PaintingBusyError
from webapp.segmentation.models import ImageFile, ImageSet, Segmenter, Stroke
from webapp.segmentation.painting import client as warm_client
from webapp.segmentation.painting.process import NO_PLACE
from webapp.segmentation.painting.raster import live_size
from webapp.segmentation.painting.warm import Warm
from webapp.segmentation.services import painting


def url(file: ImageFile, name: str) -> str:
    return f"/image-sets/{file.image_set_id}/paint/{file.pk}/{name}"


def post(client: Client, address: str, content: object):
    return client.post(address, json.dumps(content), content_type="application/json")


def post_strokes(client: Client, file: ImageFile, *strokes: dict):
    return post(client, url(file, "strokes/"), {"strokes": strokes})


class TestStrokes:
    def test_they_are_kept_at_once_and_the_page_brings_them_back(self, client_of, bob, file):
        client = client_of(bob)
        answer = post_strokes(client, file, INSIDE)
        assert answer.status_code == 201
        assert answer.json()["strokes"][0]["pixels"] > 30
        page = Page(client.get(url(file, "")))
        assert str(file.strokes.get().pk) in page.source  # for the script that draws them
        assert ImageSet.objects.get(pk=file.image_set_id).classes[0]["name"] == "Cell"

    def test_undo_and_redo_and_a_new_stroke_ends_what_could_be_redone(self, client_of, bob, file):
        client = client_of(bob)
        post_strokes(client, file, INSIDE, OUTSIDE)
        undone = client.post(url(file, "undo/")).json()
        assert [s["value"] for s in undone["strokes"]] == [1]
        assert undone["canRedo"]
        assert len(client.post(url(file, "undo/") + "?redo=1").json()["strokes"]) == 2
        client.post(url(file, "undo/"))
        post_strokes(client, file, stroke(1, 5, 5))
        assert list(file.strokes.values_list("value", flat=True)) == [1, 1]
        assert not client.post(url(file, "undo/") + "?redo=1").json()["canRedo"]

    @pytest.mark.parametrize(
        "nonsense",
        [
            {},
            stroke(9, 3, 3),
            stroke(True, 3, 3),
            stroke(1),
            stroke(1, 3),
            stroke(1, 3, "x"),
            stroke(1, 3, float("nan")),
            stroke(1, 1e9, 3),
            stroke(1, 3, 3, radius=-1),
            stroke(1, 3, 3, radius=1e7),
            stroke(1, 3, 3, tool="spray"),
            stroke(1, 3, 3, 4, 4, tool="polygon"),
            stroke(1, *[1.0] * 70_000),
            {**INSIDE, "points": None},
            {**INSIDE, "radius": None},
            {**INSIDE, "id": "17"},
            {**INSIDE, "id": 17},
        ],
    )
    def test_nonsense_gets_a_sentence_and_keeps_nothing(self, client_of, bob, file, nonsense):
        answer = post_strokes(client_of(bob), file, nonsense)
        assert answer.status_code == 200
        assert answer.json()["strokes"][0]["sentence"].endswith(".")
        assert not Stroke.objects.exists()

    @pytest.mark.parametrize(
        "nonsense", [{}, [], "stroke", INSIDE, {"strokes": [1]}, {"strokes": [{}] * 201}]
    )
    def test_what_is_no_list_of_strokes_is_refused(self, client_of, bob, file, nonsense):
        answer = post(client_of(bob), url(file, "strokes/"), nonsense)
        assert answer.status_code == 422
        assert answer.json()["sentence"].endswith(".")

    def test_a_stroke_that_arrives_twice_is_kept_once_and_the_order_stays(
        self, client_of, bob, file
    ):
        """A page that goes away sends anew what was not confirmed, and may be overtaken by it."""
        client = client_of(bob)
        first, second, third = ({**stroke(k, 5, 5), "id": str(uuid.uuid4())} for k in (1, 2, 1))
        post_strokes(client, file, first, second, third)
        again = post_strokes(client, file, first, second)
        assert [one["number"] for one in again.json()["strokes"]] == [1, 2]
        kept = [str(key) for key in file.strokes.values_list("pk", flat=True)]
        assert kept == [first["id"], second["id"], third["id"]]

    def test_one_refused_stroke_keeps_none_of_the_others_away(self, client_of, bob, file):
        answer = post_strokes(client_of(bob), file, INSIDE, {**stroke(9, 3, 3), "id": "x"}, OUTSIDE)
        assert answer.status_code == 201
        assert ["sentence" in one for one in answer.json()["strokes"]] == [False, True, False]
        assert answer.json()["strokes"][1]["id"] == "x"
        assert file.strokes.count() == 2

    def test_a_key_of_a_stroke_on_another_picture_is_refused(self, client_of, bob, plain_set, file):
        other = plain_set.files.get(name="well_1.png")
        taken = {**INSIDE, "id": str(uuid.uuid4())}
        post_strokes(client_of(bob), other, taken)
        answer = post_strokes(client_of(bob), file, taken)
        assert "another picture" in answer.json()["strokes"][0]["sentence"]
        assert not file.strokes.exists()

    def test_viewers_and_strangers_paint_nothing(self, client_of, alice, mallory, file):
        for user, status in ((alice, 403), (mallory, 404)):
            client = client_of(user)
            assert post_strokes(client, file, INSIDE).status_code == status
            assert client.get(url(file, "")).status_code == status
            assert client.post(url(file, "undo/")).status_code == status
            assert client.post(url(file, "answer/")).status_code == status
        assert not Stroke.objects.exists()


class TestSeveralPeople:
    def test_each_takes_back_the_own_strokes_and_sees_those_of_others(
        self, client_of, bob, carol, file
    ):
        own, other = client_of(bob), client_of(carol)
        post_strokes(own, file, INSIDE)
        post_strokes(other, file, OUTSIDE)
        undone = own.post(url(file, "undo/")).json()
        assert [s["value"] for s in undone["strokes"]] == [2]
        assert (undone["canUndo"], undone["canRedo"]) == (False, True)
        seen = other.get(url(file, "painted/")).json()
        assert [s["value"] for s in seen["strokes"]] == [2]
        assert seen["canUndo"]
        same = other.get(url(file, "painted/") + f"?mark={seen['mark']}").json()
        assert same == {"mark": seen["mark"]}
        post_strokes(other, file, stroke(2, 5, 5))  # leaves what bob can redo
        again = own.post(url(file, "undo/") + "?redo=1").json()
        assert [s["value"] for s in again["strokes"]] == [1, 2, 2]

    def test_clearing_a_picture_can_be_taken_back(self, client_of, bob, carol, file):
        client = client_of(bob)
        post_strokes(client, file, INSIDE)
        post_strokes(client_of(carol), file, OUTSIDE)
        cleared = post(client, url(file, "clear/"), {}).json()
        assert cleared["strokes"] == []
        assert AuditLine.objects.filter(verb="cleared", details__strokes=2).count() == 1
        back = post(client, url(file, "clear/"), {"restore": cleared["keys"]}).json()
        assert [s["value"] for s in back["strokes"]] == [1, 2]
        for nonsense in ({"restore": 7}, {"restore": ["x"]}):
            assert post(client, url(file, "clear/"), nonsense).status_code == 422
        assert file.strokes.filter(undone=False).count() == 2


class TestClasses:
    def change(self, client: Client, image_set: ImageSet, classes: object):
        return post(client, f"/image-sets/{image_set.pk}/paint/classes/", classes)

    def test_names_and_colours_are_kept(self, client_of, bob, plain_set):
        classes = [
            {"value": 1, "name": "Nucleus", "colour": "#3B82F6"},
            {"value": 3, "name": "Body", "colour": "#f28c1a"},
        ]
        assert self.change(client_of(bob), plain_set, classes).status_code == 200
        plain_set.refresh_from_db()
        assert [one["name"] for one in plain_set.classes] == ["Nucleus", "Body"]
        assert plain_set.classes[0]["colour"] == "#3b82f6"

    def test_a_class_with_strokes_stays(self, client_of, bob, file):
        client = client_of(bob)
        post_strokes(client, file, OUTSIDE)
        left = painting.classes_of(file.image_set)[:1]
        answer = self.change(client, file.image_set, left)
        assert answer.status_code == 409
        assert "Background has 1 stroke on 1 image." in answer.json()["sentence"]
        assert answer.json()["hasStrokes"]
        assert file.strokes.count() == 1

    def test_a_class_goes_with_its_strokes_on_request(self, client_of, bob, file):
        client = client_of(bob)
        post_strokes(client, file, INSIDE, OUTSIDE)
        left = painting.classes_of(file.image_set)[:1]
        answer = self.change(client, file.image_set, {"classes": left, "withStrokes": True})
        assert [one["value"] for one in answer.json()["classes"]] == [1]
        assert list(file.strokes.values_list("value", flat=True)) == [1]
        line = AuditLine.objects.get(verb="changed the classes of")
        assert (line.details["removed"], line.details["strokes"]) == (["Background"], 1)

    @pytest.mark.parametrize(
        "classes",
        [
            [],
            {},
            [1],
            [{"value": 1, "name": "", "colour": "#000000"}],
            [{"value": 1, "name": "a", "colour": "red"}],
            [{"value": 0, "name": "a", "colour": "#000000"}],
            [{"value": 33, "name": "a", "colour": "#000000"}],
            [{"value": k, "name": n, "colour": "#000000"} for k, n in ((1, "A"), (2, "a"))],
            [{"value": 1, "name": n, "colour": "#000000"} for n in "ab"],
            [{"value": k, "name": str(k), "colour": "#000000"} for k in range(1, 40)],
        ],
    )
    def test_nonsense_changes_nothing(self, client_of, bob, plain_set, classes):
        assert self.change(client_of(bob), plain_set, classes).status_code == 422
        plain_set.refresh_from_db()
        assert plain_set.classes == []


class TestRaster:
    def test_what_was_painted_last_counts_and_the_eraser_takes_away(self):
        strokes = [
            stroke(1, 5, 5, 25, 5),
            stroke(2, 15, 5),
            stroke(0, 24, 5, radius=2),
            stroke(3, 2, 12, 12, 12, 12, 18, 2, 18, tool="polygon"),
            {**stroke(1, 25, 3, 9), "tool": "fill"},
        ]
        labels = paint_strokes(strokes, (32, 30), 1)
        assert labels[5, 6] == 1
        assert labels[5, 15] == 2
        assert labels[5, 24] == 0
        assert labels[15, 6] == 3
        assert labels[25, 3:10].tolist() == [1] * 7

    def test_a_pen_that_presses_paints_wider(self):
        light = {**stroke(1, 5, 10, 25, 10), "radii": [1.0, 1.0]}
        firm = {**light, "radii": [1.0, 6.0]}
        counts = [int((paint_strokes([one], (32, 20), 1) > 0).sum()) for one in (light, firm)]
        assert counts[1] > 2 * counts[0]

    def test_large_pictures_are_answered_smaller(self):
        assert live_size(1000, 1000) == (1000, 1000)
        assert live_size(4000, 3000) == (1000, 750)


class TestWarm:
    """The process without its socket."""

    @pytest.fixture
    def question(self, bob, file) -> dict:
        for one in (INSIDE, OUTSIDE):
            painting.stroke_add(user=bob, file=file, stroke=one)
        return {
            "do": "answer",
            "classes": [1, 2],
            "picture": painting.picture_of(file, painting._strokes(file)),
            "others": [],
        }

    def test_two_strokes_are_enough_to_find_the_block(self, question):
        header, body = Warm().answer(question)
        planes = np.frombuffer(gzip.decompress(body), np.uint8).reshape(3, 64, 96)
        assert (header["width"], header["height"], header["planes"]) == (96, 64, 2)
        assert header["present"] == [1, 2]
        assert (planes[0][18:30, 26:46] == 0).mean() > 0.9
        assert (planes[0][40:] == 1).mean() > 0.9
        assert sum(header["shares"]) == pytest.approx(1)

    def test_one_class_is_not_enough(self, question):
        question["picture"]["strokes"] = question["picture"]["strokes"][:1]
        header, body = Warm().answer(question)
        assert body == b""
        assert header["present"] == [1]

    def test_a_process_that_was_killed_is_replaced_by_one_that_answers_alike(self, question):
        assert Warm().answer(question)[1] == Warm().answer(question)[1]

    def test_how_right_a_stroke_was_is_measured_before_it_is_learned_from(
        self, bob, file, question
    ):
        warm = Warm()
        warm.answer(question)
        new = painting.stroke_add(user=bob, file=file, stroke=stroke(1, 34, 22))
        wrong = painting.stroke_add(user=bob, file=file, stroke=stroke(1, 60, 58))
        question["picture"]["strokes"] = painting._strokes(file)
        right = warm.answer(question)[0]["right"]
        assert right[str(new.pk)] > 0.9
        assert right[str(wrong.pk)] < 0.1

    def test_objects_of_the_answer_are_measured(self, question):
        warm = Warm()
        warm.answer(question)
        rows = warm.answer({**question, "do": "objects", "value": 1, "min_pixels": 20})[0]["rows"]
        assert rows[0]["area"] == pytest.approx(24 * 16, rel=0.2)


def test_the_process_is_started_asked_and_ended(bob, file, settings, monkeypatch, tmp_path) -> None:
    """A real process on a real socket: two asked together share it, and it can be ended."""
    folder = tmp_path / ("deep" * 30)
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(warm_client, "painting_folder", lambda: folder)
    picture_now = painting.picture_of(file, [])
    question = {"do": "open", "classes": [1, 2], "picture": picture_now}
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(warm_client.ask("a" * 32, question)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    try:
        assert [header["ready"] for header, _ in answers] == [True, True]
        assert os.stat(folder).st_mode & 0o077 == 0
    finally:
        warm_client.end("a" * 32)


def test_the_process_ends_when_its_web_server_was_killed(tmp_path) -> None:
    code = "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(600)"
    own = [sys.executable, "-m", "webapp.segmentation.painting.process", str(tmp_path), "a"]
    command = [sys.executable, "-c", code, *own]
    server = subprocess.Popen(command, cwd=BASE_DIR, start_new_session=True)
    try:
        wait_for((tmp_path / "a.sock").exists)
    finally:
        server.kill()
        server.wait()
    wait_for(lambda: not (tmp_path / "a.sock").exists())


class TestLine:
    @pytest.fixture(autouse=True)
    def all_places_taken(self, monkeypatch, tmp_path):
        """Every process finds its places taken by sets that are being painted."""

        class Ended:
            def poll(self) -> int:
                return NO_PLACE

        monkeypatch.setattr(warm_client, "painting_folder", lambda: tmp_path)
        monkeypatch.setattr(warm_client, "_launch", lambda folder, name: Ended())
        monkeypatch.setattr(warm_client, "_end_quietest", lambda folder: False)

    def place(self, name: str) -> int:
        with pytest.raises(PaintingBusyError) as refused:
            warm_client.ask(name, {"do": "answer"})
        assert f"number {refused.value.place} in line" in str(refused.value)
        return refused.value.place

    def test_who_comes_later_waits_behind(self, tmp_path):
        assert [self.place(name) for name in ("one", "two", "three")] == [1, 2, 3]
        assert [self.place(name) for name in ("three", "one", "two")] == [3, 1, 2]
        entry = tmp_path / "one.line"
        long_ago = entry.stat().st_mtime - warm_client.LINE_SECONDS - 1
        os.utime(entry, (long_ago, long_ago))  # somebody left the page
        assert [self.place(name) for name in ("two", "three")] == [1, 2]

    def test_the_page_gets_the_place(self, client_of, bob, file):
        self.place("other")
        answer = client_of(bob).post(url(file, "answer/"))
        assert answer.status_code == 503
        assert answer.json()["place"] == 2


def test_a_model_needs_two_painted_classes(client_of, bob, file) -> None:
    painting.stroke_add(user=bob, file=file, stroke=INSIDE)
    answer = client_of(bob).post(f"/image-sets/{file.image_set_id}/paint/learn/")
    assert answer.status_code == 302
    assert not Segmenter.objects.exists()


def test_a_model_of_strokes_learns_as_long_as_was_chosen(client_of, bob, file) -> None:
    for drawn in (INSIDE, OUTSIDE):
        painting.stroke_add(user=bob, file=file, stroke=drawn)
    client, address = client_of(bob), f"/image-sets/{file.image_set_id}/paint/learn/"
    assert client.post(address, {"max_seconds": "31"}).status_code == 302
    assert not Segmenter.objects.exists()
    for chosen, kept in (({}, 300), ({"max_seconds": "1800", "predict": "1"}, 1800)):
        client.post(address, chosen)
        segmenter = Segmenter.objects.latest("created_at")
        assert segmenter.max_seconds == kept
        assert segmenter.job.parameters["predict"] is ("predict" in chosen)
