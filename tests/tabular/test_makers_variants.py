"""Exports with labels or codes, in titles and cells, say the same people in every variant."""

import itertools
import json
from collections.abc import Sequence

import pytest

from engine.tabular.choices import Role
from engine.tabular.review import Review
from tests.tabular.file_writers import as_csv
from tests.tabular.odd_files import ASKED, BEDTIMES, HOBBIES, PEOPLE
from tests.tabular.reviews import cells_of, settled

MAKERS = ("REDCap", "Qualtrics", "LimeSurvey")
SEVERAL = "Which do you like?"


def when(k: int) -> str:
    return f"2026-05-{1 + k % 28:02d} 08:{k:02d}:00"


def yes(is_yes: object, words: Sequence[str]) -> str:
    return words[0] if is_yes else words[1]


def redcap(*, titles: bool, labels: bool, event: bool = False) -> bytes:
    """Titles are variables or labels of fields; cells are raw codes or labels, each by itself."""
    if titles:
        own = ["Record ID", *["Event Name"] * event, "Survey Identifier", "Survey Timestamp"]
        asked = [ASKED["bedtime"], ASKED["smokes"]]
        several = [f"{SEVERAL} (choice={hobby})" for hobby in HOBBIES]
        last = "Complete?"
    else:
        own = ["record_id", *["redcap_event_name"] * event, "redcap_survey_identifier",
               "housing_timestamp"]  # fmt: skip
        asked, several = ["bedtime", "smokes"], [f"hobbies___{j}" for j in (1, 2, 3)]
        last = "housing_complete"
    rows = [[*own, *asked, *several, last]]
    for k, one in enumerate(PEOPLE):
        bedtime = one["bedtime"] if labels else str(1 + BEDTIMES.index(one["bedtime"]))
        smokes = one["smokes"] if labels else yes(one["smokes"] == "Yes", "10")
        marks = ("Checked", "Unchecked") if labels else "10"
        liked = [yes(hobby in one["hobbies"], marks) for hobby in HOBBIES]
        arm = ["Housing (Arm 1: Arm 1)" if labels else "housing_arm_1"] * event
        done = "Complete" if labels else "2"
        rows.append([str(k + 1), *arm, one["id"], when(k), bedtime, smokes, *liked, done])
    return as_csv(rows)


def qualtrics(*, labels: bool, split: bool, headers: int = 3, unseen: bool = False) -> bytes:
    """Choice texts or values; several answers in a cell or in a column an option.

    With ``unseen``, questions that were seen and not answered hold -99.
    """
    own = ["StartDate", "EndDate", "Status", "Finished", "ResponseId", "ExternalReference"]
    said = ["Start Date", "End Date", "Response Type", "Finished", "Response ID",
            "External Data Reference"]  # fmt: skip
    codes = [f"Q3_{j}" for j in (1, 2, 3)] if split else ["Q3"]
    options = [f"{SEVERAL} - Selected Choice - {x}" for x in HOBBIES] if split else [SEVERAL]
    rows = [
        [*own, "Q1", "Q2", *codes],
        [*said, ASKED["bedtime"], ASKED["smokes"], *options],
        [json.dumps({"ImportId": x}) for x in (*own, "QID1", "QID2", *codes)],
    ][:headers]
    people = [(k, one, False) for k, one in enumerate(PEOPLE)]
    people.insert(3, (0, {**PEOPLE[0], "id": "N99999"}, True))  # a preview by staff
    for k, one, is_preview in people:
        bedtime = one["bedtime"] if labels else str(1 + BEDTIMES.index(one["bedtime"]))
        smokes = one["smokes"] if labels else yes(one["smokes"] == "Yes", "12")
        if split:
            liked = [
                (hobby if labels else "1") if hobby in one["hobbies"] else "-99" * unseen
                for hobby in HOBBIES
            ]
        else:
            chosen = [hobby for hobby in HOBBIES if hobby in one["hobbies"]]
            liked = [",".join(x if labels else str(1 + HOBBIES.index(x)) for x in chosen)]
        status = ("Survey Preview" if is_preview else "IP Address") if labels else str(+is_preview)
        finished = "True" if labels else "1"
        rows.append([when(k), when(k), status, finished, f"R_{k:015d}", one["id"],
                     bedtime, smokes, *liked])  # fmt: skip
    return as_csv(rows)


def limesurvey(*, titles: str, labels: bool, marks: tuple[str, str] = ("Y", "")) -> bytes:
    """Titles are codes, wordings or both; answers are codes or full; Y and N may be 1 and 2."""
    own = {"id": "Response ID", "submitdate": "Date submitted", "lastpage": "Last page",
           "startlanguage": "Start language", "seed": "Seed", "token": "Access code"}  # fmt: skip
    asked = {"G1Q1": ASKED["bedtime"], "G1Q2": ASKED["smokes"]}
    asked |= {f"G1Q3[SQ{j:03d}]": f"{SEVERAL} [{x}]" for j, x in enumerate(HOBBIES, 1)}
    known = own | asked
    head = {
        "code": list(known),
        "text": list(known.values()),
        "both": [f"{code}. {words}" for code, words in known.items()],
    }[titles]
    rows = [head]
    for k, one in enumerate(PEOPLE):
        bedtime = one["bedtime"] if labels else f"A{1 + BEDTIMES.index(one['bedtime'])}"
        smokes = one["smokes"]
        if not labels:
            smokes = yes(smokes == "Yes", ("1", "2") if marks[0] == "1" else ("Y", "N"))
        liked = [yes(hobby in one["hobbies"], marks) for hobby in HOBBIES]
        rows.append([str(k + 5), when(k), "3", "en", str(10**9 + 7919 * k), one["id"],
                     bedtime, smokes, *liked])  # fmt: skip
    return as_csv(rows, quote_all=True)


FILES = {
    **{
        f"REDCap, {'labels' if titles else 'variables'}, {'labels' if labels else 'codes'}"
        f"{', events' * event}": redcap(titles=titles, labels=labels, event=event)
        for titles, labels, event in itertools.product((False, True), repeat=3)
    },
    **{
        f"Qualtrics, {'texts' if labels else 'values'}, {'split' if split else 'one cell'}"
        f", {headers} header rows": qualtrics(labels=labels, split=split, headers=headers)
        for labels, split in itertools.product((False, True), repeat=2)
        for headers in (2, 3)
    },
    "Qualtrics, texts, split, -99": qualtrics(labels=True, split=True, unseen=True),
    "Qualtrics, values, split, -99": qualtrics(labels=False, split=True, unseen=True),
    **{
        f"LimeSurvey, {titles}, codes, {marks}": limesurvey(
            titles=titles, labels=False, marks=marks
        )
        for titles in ("code", "text", "both")
        for marks in (("Y", ""), ("1", ""), ("1", "2"), ("Y", "N"))
    },
    **{
        f"LimeSurvey, {titles}, full, {marks}": limesurvey(titles=titles, labels=True, marks=marks)
        for titles in ("code", "text", "both")
        for marks in (("Yes", ""), ("Yes", "No"))
    },
}


def truths() -> dict[str, list[str]]:
    found = {name: [one[name] for one in PEOPLE] for name in ("bedtime", "smokes")}
    return found | {x: [yes(x in one["hobbies"], ("Yes", "No")) for one in PEOPLE] for x in HOBBIES}


def same_parts(cells: Sequence[str], truth: Sequence[str]) -> bool:
    """Return True if cells differ exactly where the truth differs."""
    pairs = set(zip(cells, truth, strict=True))
    return len(pairs) == len(set(cells)) == len(set(truth))


def people_of(found: Review) -> list[int]:
    (person,) = found.preview.columns_as(Role.ID)
    return [int(x.removeprefix("N")) for x in cells_of(found, person.header)]


@pytest.mark.parametrize("name", FILES)
def test_every_variant_says_the_same_people(name: str) -> None:
    found = settled(FILES[name])
    preview = found.preview
    assert preview.table.layout.maker == name.partition(",")[0]
    assert preview.can_import, [cause.title for cause in found.causes if cause.is_error]
    numbers = people_of(found)
    assert sorted(numbers) == list(range(len(PEOPLE)))
    wanted = {key: [cells[k] for k in numbers] for key, cells in truths().items()}
    used = preview.columns_as(Role.QUESTION)
    for key, truth in wanted.items():
        matching = [c for c in used if same_parts(cells_of(found, c.name), truth)]
        assert len(matching) == 1, (key, [c.name for c in used])
        cells, levels = cells_of(found, matching[0].name), matching[0].choice.levels
        if key == "bedtime":
            order = [cells[truth.index(bedtime)] for bedtime in BEDTIMES]
            assert list(levels) == order
        if key in HOBBIES:
            assert cells[truth.index("Yes")] in ("Yes", "1", "Y", "Checked", key)
    assert len(used) == len(wanted), [c.name for c in used]
