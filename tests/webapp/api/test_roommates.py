"""Cohorts, models of choices and proposals through the interface."""

import csv
import io

import pytest

from tests.webapp.factories.images import upload
from webapp.cohorts.models import Cohort, Draft
from webapp.housing.models import BuildingList, Placement
from webapp.jobs.models import Job
from webapp.jobs.runner import run_job
from webapp.matching.models import LearnedModel

BEDTIMES = ["Before 10 pm", "10-11 pm", "11 pm-12", "After 12"]


def survey_csv(count: int, first: int = 1) -> bytes:
    """A small survey: people who go to bed at one time have one attitude to smoking."""
    rows = ["id,Bedtime,Smoking,Guests"]
    for k in range(count):
        kind = k % 4
        smoking = "Yes" if kind in (1, 2) else "No"
        rows.append(f"u{first + k},{BEDTIMES[kind]},{smoking},{'Often' if k % 3 else 'Never'}")
    return "\n".join(rows).encode()


def pairs_csv(count: int) -> bytes:
    """Pairs of equal bedtimes: u1+u5, u2+u6, ..."""
    rows = ["a,b"]
    for start in range(0, count, 8):
        rows += [f"u{start + k + 1},u{start + k + 5}" for k in range(4)]
    return "\n".join(rows).encode()


@pytest.fixture
def cohort(program_of, bob) -> dict:
    """Forty students and whom they chose."""
    program = program_of(bob)
    made = program.post("/cohorts", file=upload("2025.csv", survey_csv(40)), name="2025")
    assert made.status_code == 201, made.data
    pairs = program.post(f"/cohorts/{made.data['id']}/pairs", file=upload("p.csv", pairs_csv(40)))
    assert pairs.status_code == 200, pairs.data
    return pairs.data


def test_a_cohort_and_its_pairs_are_imported(cohort) -> None:
    assert (cohort["students"], cohort["pairs"]) == (40, 20)
    assert {question["name"] for question in cohort["questions"]} == {
        "Bedtime",
        "Smoking",
        "Guests",
    }


def test_weights_are_set_by_hand(program_of, alice, bob, cohort) -> None:
    body = {"cohort": cohort["id"], "name": "Ours", "importance": {"Bedtime": 2.0, "Guests": 0.0}}
    made = program_of(bob).post("/roommate-models/set", body)
    assert (made.status_code, made.data["is_set_by_hand"]) == (201, True)
    assert program_of(alice).post("/roommate-models/set", body).status_code == 403
    bad = program_of(bob).post("/roommate-models/set", {**body, "importance": {"Mood": 1.0}})
    assert (bad.status_code, bad.data["detail"]) == (422, "Mood is not a question of 2025.")


def test_a_bad_survey_is_refused_whole_with_its_problems(program_of, bob) -> None:
    content = survey_csv(40) + b"\nu1,10-11 pm,No,Often"
    answer = program_of(bob).post("/cohorts", file=upload("2025.csv", content), name="2025")
    assert answer.status_code == 422
    assert answer.data["detail"].endswith("Nothing was imported.")
    assert answer.data["problems"]
    assert not Cohort.objects.exists()
    assert not Draft.objects.exists()


def test_a_file_of_another_kind_is_refused(program_of, bob) -> None:
    answer = program_of(bob).post("/cohorts", file=upload("a.csv", b"%PDF-1.7 x"), name="x")
    assert answer.status_code == 422
    assert "PDF" in answer.data["detail"]
    assert program_of(bob).post("/cohorts", name="x").status_code == 400


def test_a_taken_name_leaves_no_draft_behind(program_of, bob, cohort) -> None:
    answer = program_of(bob).post("/cohorts", file=upload("b.csv", survey_csv(8)), name="2025")
    assert answer.status_code == 422
    assert not Draft.objects.exists()


def test_pairs_of_strangers_are_refused(program_of, bob, cohort) -> None:
    answer = program_of(bob).post(
        f"/cohorts/{cohort['id']}/pairs", file=upload("p.csv", b"a,b\nnobody,someone")
    )
    assert answer.status_code == 422
    assert not Draft.objects.exists()


def change_pairs(program, key: str) -> None:
    """Swap two students of open pairs, see it once, undo it, and change a rule."""
    at = f"/proposals/{key}"
    free = program.get(f"{at}/pairs?state=open").data["items"]
    one, other = free[0]["first"], free[1]["first"]
    partners = program.get(f"{at}/students/{one}/partners").data["items"]
    assert one not in {found["student"] for found in partners}
    assert all(found["partner_now"] != one for found in partners)
    offer = program.get(f"{at}/students/{one}/swap?partner={other}").data
    assert {frozenset((p["first"], p["second"])) for p in offer["pairs"]} == {
        frozenset((one, other)),
        frozenset((free[0]["second"], free[1]["second"])),
    }
    sent = {"student": one, "partner": other, "now": offer["now"]}
    done = program.post(f"{at}/swaps", sent)
    assert done.status_code == 200, done.data
    assert program.post(f"{at}/swaps", sent).status_code in (409, 422)
    assert program.get(f"{at}/pairs?state=swapped").data["total"] == 2
    undone = program.post(f"{at}/events/{done.data['id']}/undo")
    assert undone.status_code == 200, undone.data
    assert program.get(f"{at}/events").data["items"][0]["is_undone"]
    never = {"action": "never", "first": one, "second": other}
    assert program.post(f"{at}/rules", never).status_code == 200
    refused = program.get(f"{at}/students/{one}/swap?partner={other}")
    assert refused.status_code == 422
    assert one in refused.data["detail"]
    assert program.post(f"{at}/rules", {"action": "marry"}).status_code == 422
    wrong = program.post(f"{at}/rules", never | {"first": "nobody"})
    assert (wrong.status_code, wrong.data["detail"][:8]) == (422, "“nobody”")


def test_viewers_see_swaps_and_staff_make_them(program_of, alice, bob, cohort) -> None:
    model = LearnedModel.objects.create(organisation=bob.organisation, name="M")
    proposal = Placement.objects.create(
        organisation=bob.organisation, name="P", cohort_id=cohort["id"], model=model, is_pairs=True,
        buildings=BuildingList.everything.create(
            organisation=bob.organisation, name="Pairs", is_private=True
        ),
    )  # fmt: skip
    at, viewer = f"/proposals/{proposal.pk}", program_of(alice)
    assert viewer.get(f"{at}/events").data["total"] == 0
    for path, body in (
        (f"{at}/rules", {"action": "single", "first": "S-1001"}),
        (f"{at}/swaps", {"student": "S-1001", "partner": "S-1002", "now": []}),
        (f"{at}/events/1/undo", None),
        (f"/roommate-models/{model.pk}/check", {"cohort": cohort["id"]}),
    ):
        assert viewer.post(path, body).status_code == 403, path
    early = program_of(bob).post(f"/roommate-models/{model.pk}/check", {"cohort": cohort["id"]})
    assert (early.status_code, early.data["detail"]) == (422, "The model is not learned yet.")


@pytest.mark.slow
def test_learn_propose_decide_export(program_of, bob, cohort) -> None:
    program = program_of(bob)
    model = program.post("/roommate-models", {"cohorts": [cohort["id"]], "name": "By program"})
    assert model.status_code == 202, model.data
    run_job(model.data["job"], watched=False)
    learned = program.get(f"/roommate-models/{model.data['id']}").data
    assert learned["is_learned"], program.get(f"/jobs/{model.data['job']}").data
    assert len(learned["weights"]) == 3

    incoming = program.post("/cohorts", file=upload("n.csv", survey_csv(12, 100)), name="2026").data
    proposal = program.post("/proposals", {"cohort": incoming["id"], "model": learned["id"]})
    assert proposal.status_code == 202, proposal.data
    run_job(proposal.data["job"], watched=False)
    key = proposal.data["id"]
    assert program.get(f"/proposals/{key}").data["is_computed"]

    pairs = program.get(f"/proposals/{key}/pairs").data
    assert pairs["total"] == 6
    pair = pairs["items"][0]
    assert pair["first"].startswith("S-")
    url = f"/proposals/{key}/pairs/{pair['id']}/decision"
    accepted = program.post(url, {"decision": "accept", "version": pair["version"]})
    assert accepted.status_code == 200, accepted.data
    late = program.post(url, {"decision": "reject", "version": pair["version"]})
    assert late.status_code == 409
    assert program.post(url, {"decision": "marry", "version": 1}).status_code == 422
    assert program.get(f"/proposals/{key}/pairs?state=accepted").data["total"] == 1

    change_pairs(program, key)
    checked = program.post(f"/roommate-models/{learned['id']}/check", {"cohort": cohort["id"]})
    assert (checked.status_code, learned["checked_on"]) == (422, "")

    odd = program.post("/cohorts", file=upload("o.csv", survey_csv(5, 300)), name="Odd").data
    blocked = program.post("/proposals", {"cohort": odd["id"], "model": learned["id"]}).data
    assert blocked["job"] is None
    assert "5 students" in blocked["conflicts"][0]
    assert program.post(f"/proposals/{blocked['id']}/propose").status_code == 409

    export = program.get(f"/proposals/{key}/export/csv")
    rows = list(csv.reader(io.StringIO(export.content.decode("utf-8-sig"))))
    assert len(rows) == 7
    assert rows[1][0].startswith("u1")


def test_a_cohort_without_pairs_cannot_be_learned_from(program_of, bob) -> None:
    program = program_of(bob)
    made = program.post("/cohorts", file=upload("c.csv", survey_csv(8)), name="No pairs").data
    answer = program.post("/roommate-models", {"cohorts": [made["id"]]})
    assert answer.status_code == 422
    assert "at least 2 are needed" in answer.data["detail"]


def test_an_unlearned_model_proposes_nothing(program_of, bob, cohort) -> None:
    program = program_of(bob)
    model = program.post("/roommate-models", {"cohorts": [cohort["id"]]}).data
    answer = program.post("/proposals", {"cohort": cohort["id"], "model": model["id"]})
    assert answer.status_code == 422
    assert "not learned yet" in answer.data["detail"]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("seed", -1, "seed: expected 0 to 2147483647."),
        ("seed", 2**70, "seed: expected 0 to 2147483647."),
        ("ridge", 10**400, "ridge: the number is too large."),
    ],
    ids=["negative seed", "huge seed", "huge ridge"],
)
def test_numbers_that_no_job_takes_are_refused(
    program_of, bob, cohort, field: str, value: int, words: str
) -> None:
    body = {"cohorts": [cohort["id"]], field: value}
    answer = program_of(bob).post("/roommate-models", body)
    assert (answer.status_code, answer.data["detail"]) == (422, words)
    assert not Job.objects.exists()


def test_an_offset_past_every_object_finds_none(program_of, bob, cohort) -> None:
    answer = program_of(bob).get(f"/cohorts?offset={'9' * 30}")
    assert (answer.status_code, answer.data["items"], answer.data["total"]) == (200, [], 1)


def test_a_cohort_named_twice_is_learned_from_once(program_of, bob, cohort) -> None:
    """Its job used to fail, saying that a cohort had been removed."""
    body = {"cohorts": [cohort["id"], cohort["id"]]}
    answer = program_of(bob).post("/roommate-models", body)
    assert answer.status_code == 202, answer.data
    (source,) = LearnedModel.objects.get().sources
    assert source["cohort"] == cohort["id"]
