"""Buildings, requests, placements and letters through the interface for programs."""

import csv
import io
from typing import Any

import numpy as np
import pytest
from django.core import mail

from tests.webapp.factories.images import upload
from tests.webapp.factories.placed import placed_cohort, publish
from webapp.audit.models import AuditLine
from webapp.housing.models import BuildingList, Place, Placement, ProposedChange, Room
from webapp.housing.services.versions import computed_version, version_store
from webapp.jobs.models import Job
from webapp.letters.models import Letter
from webapp.letters.services.letters import letters_send
from webapp.matching.models import LearnedModel


def half(_: object, rooms: list[list[int]]) -> dict[int, float]:
    return {number: 0.5 for members in rooms for number in members}


@pytest.fixture(autouse=True)
def scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model was learned here; what a room scores is tested elsewhere."""
    monkeypatch.setattr("webapp.housing.scores.Scores.of_rooms", half)


@pytest.fixture
def placement(bob) -> Placement:
    return placed_cohort(bob)


def test_buildings_are_imported_changed_and_removed(program_of, bob, carol) -> None:
    program = program_of(bob)
    rooms = upload("rooms.csv", b"Hall,Room,Beds\nElm,1,2\nElm,2,3\nOak,1,1\n")
    made = program.post("/buildings", name="Campus", file=rooms)
    assert (made.status_code, made.data["rooms"], made.data["beds"]) == (201, 3, 6)
    at = f"/buildings/{made.data['id']}"
    assert program.get(f"{at}/rooms?hall=Elm").data["total"] == 2
    new = {"hall": "Oak", "name": "2", "beds": 4, "meets": ["Accessible"]}
    room = program.post(f"{at}/rooms", new).data
    assert (room["beds"], room["meets"], room["state"]) == (4, ["Accessible"], "open")
    changed = program.call("PUT", f"{at}/rooms/{room['id']}", {**new, "state": "offline"})
    assert changed.data["state"] == "offline"
    assert changed.data["suite"] == ""
    own = {**new, "suite": " 2  B "}
    assert program.call("PUT", f"{at}/rooms/{room['id']}", own).data["suite"] == "2 B"
    assert program.call("PUT", f"{at}/rooms/{room['id']}", new).data["suite"] == "2 B"
    assert program.delete(f"{at}/rooms/{room['id']}").status_code == 204
    assert program.post(f"{at}/rename", {"name": "West"}).data["name"] == "West"
    assert program.delete(at).status_code == 403
    assert program_of(carol).delete(at).status_code == 204
    assert not BuildingList.objects.exists()
    empty = program.post("/buildings", name="By hand").data
    assert (empty["rooms"], empty["beds"]) == (0, 0)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "hall is missing."),
        ({"hall": "Elm", "name": "9", "beds": "two"}, "beds: expected a whole number."),
        ({"hall": "Elm", "name": "9", "beds": 2.5}, "beds: expected a whole number."),
        ({"hall": "Elm", "name": "9", "beds": True}, "beds: expected a whole number."),
        ({"hall": "Elm", "name": "9", "beds": 99}, "A room has 1 to 8 beds."),
        (
            {"hall": "Elm", "name": "9", "beds": 2, "state": "lost"},
            "state: expected one of open, kept, offline.",
        ),
        ({"hall": "E" * 81, "name": "9", "beds": 2}, "hall: at most 80 characters."),
        ({"hall": "Elm", "name": "9", "beds": 2, "meets": [1]}, "meets[0]: expected text."),
        ({"hall": None, "name": "9", "beds": 2}, "hall is missing."),
        ({"hall": "Alder", "name": "101", "beds": 2}, "Alder already has a room 101."),
    ],
)
def test_a_bad_room_gets_one_sentence(program_of, bob, placement, body, sentence) -> None:
    answer = program_of(bob).post(f"/buildings/{placement.buildings_id}/rooms", body)
    assert (answer.status_code, answer.data["detail"]) == (422, sentence)
    assert Room.objects.count() == 4


def test_a_file_of_rooms_with_problems_imports_nothing(program_of, bob) -> None:
    rooms = upload("rooms.csv", b"Hall,Room,Beds\nElm,1,many\n")
    answer = program_of(bob).post("/buildings", name="Campus", file=rooms)
    assert answer.status_code == 422
    assert "Nothing was imported." in answer.data["detail"]
    assert not BuildingList.objects.exists()


def test_requests_are_imported_and_settled_by_staff_only(program_of, alice, bob, placement) -> None:
    program, at = program_of(bob), f"/cohorts/{placement.cohort_id}/requests"
    file = upload("r.csv", b"student,wants\n+470,+471\n+471,+470\n+472,Dan\n")
    assert program.post(at, file=file).status_code == 200
    assert program_of(alice).get(at).status_code == 403
    found = program.get(at).data["items"]
    assert [(one["student"], one["wants"]) for one in found] == [
        ("S-1001", "S-1002"), ("S-1002", "S-1001"), ("S-1003", None)
    ]  # fmt: skip
    settle = f"{at}/{found[2]['id']}/settle"
    assert program.post(settle, {"student": "S-1004"}).data["sentence"] == "Means S-1004."
    cut = program.post(f"{at}/cut", {"pairs": [["S-1001", "S-1002"]]})
    assert cut.data["sentence"] == "2 requests left out."
    bad = program.post(f"{at}/cut", {"pairs": [["S-1001", "S-1001"]]})
    assert bad.data["detail"] == "pairs: two different students each."
    assert program.post(f"{at}/match").data["detail"].startswith("No unknown name")
    choices = upload("p.csv", b"id,first\n+470,Alder\n")
    path = f"/cohorts/{placement.cohort_id}/preferences"
    assert program.post(path, file=choices).data["sentence"] == "1 choice imported."
    assert program.delete(at).data["sentence"] == "3 requests removed."


def test_unclear_requests_are_listed_asked_about_and_counted_again(
    program_of, alice, bob, placement
) -> None:
    program, at = program_of(bob), f"/cohorts/{placement.cohort_id}/requests"
    file = upload("r.csv", b"student,wants\n+470,Ben Brich\n+471,+470\n+472,camp\n")
    program.post(at, file=file)
    assert program_of(alice).get(f"{at}/unknown").status_code == 403
    first, camp = program.get(f"{at}/unknown").data["requests"]
    assert (first["can_mean"], first["why"], camp["can_mean"]) == (
        ["S-1002"], "one letter differs", []
    )  # fmt: skip
    asked = program.post(f"{at}/ask", {"requests": [camp["id"]]})
    assert (asked.status_code, asked.data["sentence"]) == (202, "1 student is asked by e-mail.")
    again = program.post(f"{at}/ask", {"requests": [camp["id"]]})
    assert again.data["detail"] == "They were asked already. Nobody was asked twice."
    wrong = {"requests": [camp["id"]], "text": "Your room is [hall]"}
    assert "[hall] is no field" in program.post(f"{at}/ask", wrong).data["detail"]
    assert program.get(f"{at}/unknown").data["requests"][-1]["times_asked"] == 1
    left = program.post(f"{at}/leave-out")
    assert left.data["sentence"] == "1 request left out."
    assert program.post(f"{at}/keep", {"requests": [first["id"]]}).status_code == 422
    assert program.post(f"{at}/keep", {}).data["sentence"] == "1 request counted again."
    assert "No such group" in program.post(f"{at}/split", {"student": "S-1001"}).data["detail"]
    assert "fits into a room" in program.post(f"{at}/impossible").data["detail"]


def test_a_placement_is_started_watched_and_cancelled(
    program_of, bob, placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = program_of(bob)
    LearnedModel.objects.update(learned_at=placement.created_at)
    body = {
        "cohort": str(placement.cohort_id),
        "buildings": str(placement.buildings_id),
        "model": str(placement.model_id),
        "name": "By program",
        "rules": {"same": ["Share my e-mail"], "mutual": "wish", "wish": 0.5},
    }
    monkeypatch.setattr("webapp.housing.services.placements.cohort_survey", lambda *_: None)
    monkeypatch.setattr("webapp.housing.services.placements.questionnaire_of", lambda *_: None)
    made = program.post("/placements", body)
    assert made.status_code == 202, made.data
    assert (made.data["rules"]["wish"], made.data["is_computed"]) == (0.5, False)
    job = program.get(f"/jobs/{made.data['job']}").data
    assert (job["kind"], job["state"]) == ("housing.place", "queued")
    at = f"/placements/{made.data['id']}"
    cancelled = program.post(f"{at}/cancel").data
    assert program.get(f"/jobs/{cancelled['job']}").data["state"] == "cancelled"
    again = program.call("PUT", f"{at}/rules", {"mutual": "no"})
    assert (again.status_code, again.data["rules"]["mutual"]) == (202, "no")
    program.post(f"{at}/cancel")
    copy = program.post(f"{at}/copy", {"one_sided": "must"}).data
    assert copy["name"] == "By program (2)"
    assert program.get("/placements").data["total"] == 3
    assert Job.objects.filter(kind="housing.place").count() == 3


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ({"wish": "much"}, "rules.wish: expected a number."),
        ({"wish": 10**400}, "rules.wish: the number is too large."),
        ({"mutual": "maybe"}, "rules.mutual: expected one of must, wish, no."),
        ({"wishes": 1}, "rules.wishes: there is no such field."),
        ({"same": ["Gender"]}, "Gender is not a rule column of First-years."),
        ({"wish": -1.0}, "A wish counts from 0 to 100."),
        ([], "rules: expected an object."),
    ],
)
def test_bad_rules_get_one_sentence(program_of, bob, placement, rules: Any, sentence: str) -> None:
    LearnedModel.objects.update(learned_at=placement.created_at)
    body = {
        "cohort": str(placement.cohort_id),
        "buildings": str(placement.buildings_id),
        "model": str(placement.model_id),
        "rules": rules,
    }
    answer = program_of(bob).post("/placements", body)
    assert (answer.status_code, answer.data["detail"]) == (422, sentence)
    assert Placement.objects.count() == 1


def test_rooms_are_decided_and_undone(program_of, bob, placement) -> None:
    program, at = program_of(bob), f"/placements/{placement.pk}"
    found = program.get(at).data
    assert (found["students"], found["placed"], found["version"]) == (6, 5, 1)
    free = program.get(f"{at}/students?without_room=yes").data["items"]
    assert [one["student"] for one in free] == ["S-1006"]
    room = placement.buildings.rooms.get(name="104")
    move = {"act": "move", "students": ["S-1006"], "room": room.pk, "version": 1}
    done = program.post(f"{at}/decisions", move)
    assert (done.status_code, done.data["version"]) == (200, 2)
    assert program.get(at).data["placed"] == 6
    assert program.get(f"{at}/students?room={room.pk}").data["items"][0]["student"] == "S-1006"
    late = program.post(f"{at}/decisions", move)
    assert late.status_code == 409
    swap = {"act": "swap", "students": ["S-1001", "S-1003"], "version": 2}
    swapped = program.post(f"{at}/decisions", swap).data
    assert swapped["sentence"] == "S-1001 and S-1003 swapped rooms."
    events = program.get(f"{at}/events").data
    assert (events["total"], events["items"][0]["by"]) == (2, "bob")
    undone = program.post(f"{at}/events/{swapped['event']}/undo", {}).data
    assert undone["sentence"] == "Undone: S-1001 and S-1003 swapped rooms."
    undo, swap = program.get(f"{at}/events").data["items"][:2]
    assert (undo["is_undone"], swap["is_undone"]) == (False, True)
    for act in ("lock", "release", "withdraw"):
        assert program.get(at).data["students"] == 6
        version = program.get(at).data["version"]
        body = {"act": act, "students": ["S-1006"], "version": version}
        assert program.post(f"{at}/decisions", body).status_code == 200, act
    found = program.get(at).data
    assert (found["students"], found["placed"]) == (5, 5)
    version = found["version"]
    back = {"act": "return", "students": ["S-1006"], "version": version}
    assert program.post(f"{at}/decisions", back).data["sentence"] == "S-1006 came back."
    found = program.get("/placements").data["items"][0]
    assert (found["students"], found["placed"]) == (6, 5)


def test_whole_rooms_are_accepted_and_kept_back(program_of, bob, placement) -> None:
    program, at = program_of(bob), f"/placements/{placement.pk}"
    lived_in = placement.places.filter(room__isnull=False).first().room
    accept = {"act": "accept", "rooms": [lived_in.pk], "version": 1}
    done = program.post(f"{at}/rooms", accept)
    assert (done.status_code, done.data["version"]) == (200, 2)
    assert program.post(f"{at}/rooms", accept).status_code == 409
    keep = {"act": "keep", "rooms": [lived_in.pk], "version": 2}
    done = program.post(f"{at}/rooms", keep).data
    assert done["sentence"] == "Alder 101 was held back. 2 people need another room here."
    assert program.post(f"{at}/events/{done['event']}/undo", {}).status_code == 200
    publish(placement)
    keep["version"] = program.get(at).data["version"]
    refused = program.post(f"{at}/rooms", keep)
    assert refused.status_code == 422
    assert "2 students have beds in Alder 101" in refused.data["detail"]


def test_a_published_bed_changes_only_by_a_confirmed_draft(program_of, bob, placement) -> None:
    publish(placement)
    program, at = program_of(bob), f"/placements/{placement.pk}"
    before = list(placement.places.values_list("number", "room", "bed"))
    empty = {"act": "empty", "students": ["S-1001", "S-1003"], "version": 1}
    done = program.post(f"{at}/decisions", empty).data
    assert (done["event"], done["version"]) == (None, 1)
    assert list(placement.places.values_list("number", "room", "bed")) == before
    (draft,) = program.get(f"{at}/drafts").data["items"]
    assert (draft["id"], draft["owner"], draft["people"]) == (done["draft"], "bob", 2)
    assert [(one["student"], one["kind"]) for one in draft["students"]] == [
        ("S-1001", "lose"), ("S-1003", "lose")
    ]  # fmt: skip
    path = f"{at}/drafts/{draft['id']}"
    wrong = program.post(f"{path}/confirm", {"people": 1, "version": 1})
    assert wrong.status_code == 409
    kept = program.post(f"{path}/confirm", {"people": 2, "version": draft["version"]}).data
    assert kept["sentence"] == "Late changes confirmed: 2 people lose their bed."
    undo = f"{at}/events/{kept['event']}/undo"
    refused = program.post(undo, {})
    assert (refused.status_code, "changes the beds of 2" in refused.data["detail"]) == (409, True)
    assert program.post(undo, {"confirmed": 2}).status_code == 200
    assert list(placement.places.values_list("number", "room", "bed")) == before
    again = {"act": "withdraw", "students": ["S-1001"], "version": program.get(at).data["version"]}
    made = program.post(f"{at}/decisions", again).data
    assert program.delete(f"{at}/drafts/{made['draft']}").status_code == 204
    assert program.get(f"{at}/drafts").data["total"] == 0


def test_versions_are_compared_used_and_discarded(program_of, alice, bob, placement) -> None:
    program, at = program_of(bob), f"/placements/{placement.pk}"
    keys = dict(placement.places.values_list("number", "student_id"))
    rooms = dict(placement.places.values_list("student_id", "room_id"))
    rooms[keys[1001]], rooms[keys[1003]] = rooms[keys[1003]], rooms[keys[1001]]
    for _ in range(2):
        version_store(computed_version(
            placement=placement, job=None, user=bob, rules=placement.rules, rooms=rooms,
            doubts={}, figures={}, outcomes={"placed": 5},
        ))  # fmt: skip
    assert program.get(at).data["waiting_version"] == 2
    listed = program.get(f"{at}/versions").data["items"]
    assert [(one["number"], one["is_waiting"]) for one in listed] == [(2, True), (1, True)]
    seen = program.get(f"{at}/versions/2").data
    assert [move["student"] for move in seen["moves"]] == ["S-1001", "S-1003"]
    assert program_of(alice).get(f"{at}/versions/2").status_code == 403
    wrong = program.post(f"{at}/versions/2/use", {"digest": "old"})
    assert wrong.status_code == 409
    used = program.post(f"{at}/versions/2/use", {"digest": seen["digest"]}).data
    assert used["sentence"] == "Version 2 taken into force: 5 students have a bed."
    assert program.get(at).data["current_version"] == 2
    again = program.post(f"{at}/versions/2/discard")
    assert again.data["detail"] == "Version 2 was decided about already."
    assert program.post(f"{at}/versions/1/discard").status_code == 200
    assert program.get(f"{at}/versions/9").status_code == 404
    assert program.post(f"{at}/compute", {"seconds": 10**6}).status_code == 422


def test_latecomers_come_by_file(program_of, bob, placement) -> None:
    program, cohort = program_of(bob), placement.cohort
    late = upload("late.csv", b"id,Gender\nL1,F\nL2,F\n")
    added = program.post(f"/cohorts/{cohort.pk}/latecomers", file=late)
    assert (added.status_code, added.data["students"]) == (200, cohort.n_students + 2)
    again = upload("late.csv", b"id,Gender\nL2,F\n")
    refused = program.post(f"/cohorts/{cohort.pk}/latecomers", file=again)
    assert refused.status_code == 422
    assert "Leave it out" in refused.data["detail"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"act": "marry", "students": ["S-1001"]}, "act: expected one of lock, release"),
        ({"act": "lock", "students": []}, "students: at least 1 entries."),
        ({"act": "lock", "students": ["Anna"]}, "“Anna” is not an id on screen"),
        ({"act": "move", "students": ["S-1001"]}, "room is missing."),
        ({"act": "move", "students": ["S-1001"], "room": 10**9}, "There is no such room"),
        ({"act": "swap", "students": ["S-1001"]}, "A swap takes two students"),
        ({"act": "empty", "students": ["S-9999"]}, "S-9999 is not in this placement."),
        ({"act": "lock", "students": ["S-1001"] * 1001}, "students: at most 1000 entries."),
    ],
)
def test_bad_decisions_change_nothing(program_of, bob, placement, body, sentence) -> None:
    before = list(Place.objects.values())
    answer = program_of(bob).post(f"/placements/{placement.pk}/decisions", {**body, "version": 1})
    assert answer.status_code == 422
    assert answer.data["detail"].startswith(sentence)
    assert list(Place.objects.values()) == before


def test_the_waiting_list_is_reordered(program_of, bob, placement) -> None:
    program, at = program_of(bob), f"/placements/{placement.pk}/waiting"
    first = program.post(at, {"student": "S-1006", "is_first": True})
    assert first.data["sentence"] == "S-1006 is first on the waiting list."
    housed = program.post(at, {"student": "S-1001", "is_first": True})
    assert housed.data["detail"] == "S-1001 does not wait for a bed."


def test_late_changes_are_proposed_and_discarded(program_of, bob, placement) -> None:
    program, at = program_of(bob), f"/placements/{placement.pk}/late-changes"
    assert program.get(at).status_code == 404
    made = program.post(at, {"price": 0.5, "pinned": ["S-1001"]})
    assert made.status_code == 202
    assert (made.data["pinned"], made.data["is_ready"]) == (["S-1001"], False)
    keep = program.post(f"{at}/{made.data['id']}/keep")
    assert keep.status_code == 422
    assert program.post(at, {"price": -1}).status_code == 422
    program.post(f"/jobs/{made.data['job']}/cancel")
    assert program.delete(at).status_code == 204


def test_administrators_publish_what_they_saw(program_of, bob, carol, placement) -> None:
    at = f"/placements/{placement.pk}"
    assert program_of(bob).post(f"{at}/publish", {"version": 1}).status_code == 403
    program = program_of(carol)
    assert program.post(f"{at}/publish", {"version": 7}).status_code == 409
    assert program.post(f"{at}/publish", {"version": 1}).data["is_published"]
    assert program.delete(at).status_code == 422  # published beds are not removed
    refused = program.post(f"{at}/unpublish", {"people": 6})
    assert (refused.status_code, "5 students have a published bed" in refused.data["detail"]) == (
        409, True
    )  # fmt: skip
    assert not program.post(f"{at}/unpublish", {"people": 5}).data["is_published"]
    assert program.delete(at).status_code == 204
    assert not Placement.objects.exists()


def test_rosters_leave_with_their_ids_and_an_audit_line(program_of, bob, placement) -> None:
    program, at = program_of(bob), f"/placements/{placement.pk}/roster"
    answer = program.get(f"{at}/csv?columns=id,room,bed")
    rows = list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert rows[:2] == [["Student ID", "Room", "Bed"], ["'+470", "101", "1"]]
    placement.buildings.rooms.filter(name="101").update(name="-1.A")
    exact = program.get(f"{at}/csv?ids=exact&columns=id,room").content.decode("utf-8-sig")
    assert exact.splitlines()[1] == "'+470,-1.A", "a student may have typed the id"
    assert program.get(f"{at}/csv?ids=exactly").status_code == 422
    assert program.get(f"{at}/xlsx?by=room").status_code == 200
    assert program.get(f"{at}/csv?shape=oracle").status_code == 422
    assert program.get(f"{at}/csv?columns=secrets").status_code == 422
    assert program.get(f"{at}/pdf").status_code == 404
    assert AuditLine.objects.filter(verb="exported").count() == 3


def test_rooms_the_waiting_list_and_the_history_of_a_bed_are_told(
    program_of, bob, placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "webapp.housing.scores.Scores.between", lambda _, a, b: np.full((len(a), len(b)), 0.5)
    )
    program, at = program_of(bob), f"/placements/{placement.pk}"
    rooms = program.get(f"{at}/rooms?look=free").data["items"]
    assert [(room["name"], room["free"]) for room in rooms] == [("104", 2)]
    waiting = program.get(f"{at}/waiting").data["items"]
    assert [(one["student"], [bed["name"] for bed in one["beds"]]) for one in waiting] == [
        ("S-1006", ["Alder 104"])
    ]
    choices = program.get(f"{at}/students/S-1001/choices").data
    assert [choice["name"] for choice in choices["rooms"]] == ["Alder 104"]
    assert {swap["student"] for swap in choices["swaps"]} <= {"S-1003", "S-1004", "S-1005"}
    assert choices["swaps"]
    named = program.get(f"{at}/students/S-1001/choices?q=103").data
    assert named["refused"][0]["refused"] == "Alder 103 has 1 bed, fewer than 2 people."
    assert program.get(f"{at}/students/S-9999/choices").status_code == 422
    room = choices["rooms"][0]["room"]
    move = {"act": "move", "students": ["S-1001"], "room": room, "version": 1}
    program.post(f"{at}/decisions", move)
    (change,) = program.get(f"{at}/rooms/{room}/history").data["items"]
    assert (change["came"], change["left"], change["by"]) == (["S-1001"], [], "bob")


def test_scenarios_are_compared(program_of, alice, placement) -> None:
    (found,) = program_of(alice).get(f"/cohorts/{placement.cohort_id}/scenarios").data["items"]
    assert (found["name"], found["outcome"]["placed"]) == (placement.name, 5)
    assert (found["moved"], found["outcome"]["beds_free"]) == (None, 2)


def test_checks_and_the_report_by_hall(program_of, alice, bob, placement) -> None:
    at = f"/placements/{placement.pk}"
    assert not program_of(alice).get(f"{at}/checks").data["is_ready"]
    assert program_of(alice).post(f"{at}/checks").status_code == 403
    started = program_of(bob).post(f"{at}/checks")
    job = program_of(bob).get(f"/jobs/{started.data['job']}").data
    assert (started.status_code, job["kind"]) == (202, "reports.check")
    (hall,) = program_of(alice).get(f"{at}/report").data["halls"]
    assert (hall["hall"], hall["taken"], hall["free"]) == ("Alder", 5, 2)
    file = program_of(bob).get(f"{at}/report/xlsx")
    assert file.content.startswith(b"PK")
    assert AuditLine.objects.filter(verb="exported").count() == 1


def test_rosters_are_kept_taken_and_forgotten(program_of, bob, placement) -> None:
    program = program_of(bob)
    columns = [{"column": "room", "heading": "Space"}, {"column": "id"}]
    kept = program.post("/rosters", {"name": "Ours", "columns": columns})
    assert (kept.status_code, kept.data["columns"][1]["heading"]) == (201, "Student ID")
    taken = program.get(f"/placements/{placement.pk}/rosters/{kept.data['id']}/csv")
    assert taken.content.decode("utf-8-sig").splitlines()[:2] == ["Space,Student ID", "101,'+470"]
    bad = program.post("/rosters", {"name": "B", "columns": [{"column": "secrets"}]})
    assert bad.data["detail"].startswith("columns[0].column: expected one of id, on_screen")
    assert program.delete(f"/rosters/{kept.data['id']}").status_code == 204
    assert program.get("/rosters").data["total"] == 0


def test_late_changes_are_told_with_reasons_and_as_a_file(program_of, bob, placement) -> None:
    program, at = program_of(bob), f"/placements/{placement.pk}/late-changes"
    room = placement.buildings.rooms.get(name="104")
    student = placement.cohort.students.get(number=1006)
    made = program.post(at, {"price": 0.5, "chosen": [{"student": "S-1006", "room": room.pk}]}).data
    assert made["chosen"] == [{"student": "S-1006", "room": room.pk}]
    change = ProposedChange.objects.get(pk=made["id"])
    change.rows, change.rooms = [[student.pk, None, room.pk]], {str(student.pk): room.pk}
    change.is_ready, change.curve = True, [[0.5, 1, -3.0, 0]]
    change.save()
    told = program.get(at).data
    assert told["moves"] == [
        {"student": "S-1006", "before": None, "after": room.pk, "why": "A room of their own.",
         "gain": None}
    ]  # fmt: skip
    assert told["curve"] == [{"price": 0.5, "moves": 1, "score": -3.0, "without_room": 0}]
    lines = program.get(f"{at}/moves/csv").content.decode("utf-8-sig").splitlines()
    assert lines[1] == "'+475,S-1006,,Alder 104,A room of their own.,,Finn Fir"
    unknown = program.post(at, {"price": 0.5, "chosen": [{"student": "S-1006", "room": 10**9}]})
    assert unknown.data["detail"].startswith("There is no such room in")


def test_letters_from_the_first_word_to_the_last_bounce(program_of, bob, carol, placement) -> None:
    publish(placement)
    program, head = program_of(bob), program_of(carol)
    new = {"name": "Rooms", "subject": "Room of [name]", "text": "[hall] [room]"}
    letter = program.post("/letters", new)
    assert letter.status_code == 201
    bad = program.post("/letters", {**new, "name": "B", "text": "[hal]"})
    assert bad.data["detail"] == "[hal] is no field. Did you mean [hall]?"
    key = letter.data["id"]
    changed = program.call("PUT", f"/letters/{key}", {**new, "text": "[hall] [room] [bed]"})
    assert changed.data["text"] == "[hall] [room] [bed]"
    at = f"/placements/{placement.pk}/letters/{key}"
    preview = program.get(f"{at}/preview?student=S-1003").data
    assert (preview["subject"], preview["text"]) == ("Room of Cleo Cedar", "Alder 102 1")
    test = program.post(f"{at}/test", {"student": "S-1001", "address": "bob@uni.example"})
    assert test.status_code == 200
    standing = program.get(at).data
    assert (standing["due"], standing["problems"][0]["students"]) == (5, ["S-1006"])
    assert program.post(f"{at}/send", {"version": 1}).status_code == 403
    assert head.post(f"{at}/send", {"version": 9}).status_code == 409
    sent = head.post(f"{at}/send", {"version": 1})
    assert (sent.status_code, sent.data["sentence"]) == (202, "5 letters are on their way.")
    assert letters_send() == 5
    assert len(mail.outbox) == 6
    assert program.get(f"{at}/sent").data["items"][0]["state"] == "sent"
    bounced = program.post(f"{at}/bounces", {"addresses": ["anna@uni.example"]})
    assert bounced.data["sentence"] == "1 letter is marked as come back."
    assert head.post(f"{at}/retry").data["sentence"] == "1 letter is on its way."
    assert program.post(f"{at}/stop").data["sentence"] == "1 letter stopped."
    for shape in ("csv", "xlsx", "word"):
        assert program.get(f"{at}/file/{shape}").status_code == 200
    assert program.delete(f"/letters/{key}").status_code == 422
    assert Letter.objects.count() == 5
    file = upload("a.csv", b"id,email\n+470,ann@uni.example\n")
    found = program.post(f"/cohorts/{placement.cohort_id}/addresses", file=file)
    assert found.data["sentence"] == "1 student found."
