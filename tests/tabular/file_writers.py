"""Write one invented survey as its makers would: the same people in three hundred files.

``PEOPLE`` is the truth; every writer returns the bytes of a file that says it, byte for byte in the
shape of Qualtrics, Google Forms, Microsoft Forms, SurveyMonkey, Excel or a student system.
"""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from openpyxl import Workbook

BEDTIMES = ("Before 10 pm", "10–11 pm", "11 pm–12", "12–1 am", "After 1 am")
ACTIVITIES = ("Music", "Sport", "Cooking", "Films, series", "Gaming")
GENDERS = ("Woman", "Man", "Non-binary")
WORDINGS = {
    "bedtime": "What time do you usually go to bed on a weekday?",
    "smokes": "Do you smoke or vape?",
    "tidy": "How much do you agree with each of these? - I keep my room tidy.",
    "gender": "What is your gender?",
    "sleep": "About how many hours do you sleep?",
    "free": "What do you do in the evening? Select all that apply.",
    "comments": "Anything else that we should know?",
}
START = datetime(2026, 5, 1, 8, 0)


@dataclass(frozen=True)
class Person:
    """What somebody answered the last time."""

    number: str
    bedtime: str
    smokes: str
    tidy: str
    gender: str
    sleep: float
    free: tuple[str, ...]
    comments: str
    at: datetime = field(default=START)

    @property
    def mail(self) -> str:
        return f"{self.number.lower()}@northfield.example"


def people(count: int = 44) -> list[Person]:
    """Return the truth; texts hold quotes, commas, line ends and letters beyond ASCII."""
    found = []
    for k in range(count):
        free = tuple(a for j, a in enumerate(ACTIVITIES) if (k * k + 7 * k * (j + 1) + j) % 11 < 5)
        found.append(
            Person(
                f"N{k:05d}",
                BEDTIMES[(k * 7) % 5],
                "Yes" if k % 3 == 0 else "No",
                str(1 + (k * 11) % 5),
                GENDERS[0 if k % 2 else 1 if k % 10 else 2],
                5 + (k * 13 % 17) / 4,
                free or ("Music",),
                f'I said "quiet, please" and\nmeant it: Zoë no. {k}' if k % 4 == 0 else "",
                START + timedelta(hours=5 * k),
            )
        )
    return found


PEOPLE = people()
REPEATED = (3, 8, 21)  # who answered twice, first something else


def answers(people: Sequence[Person], *, twice: bool) -> list[Person]:
    """Return the rows in the order in which they came, the earlier answers of some before."""
    rows = list(people)
    if twice:
        for k in REPEATED:
            late = people[k]
            early = Person(
                late.number, BEDTIMES[0], "No", "3", late.gender, 9.0, ("Gaming",), "", START
            )
            rows.insert(0, early)
    return rows


def as_csv(
    rows: Sequence[Sequence[str]],
    *,
    delimiter: str = ",",
    encoding: str = "utf-8",
    newline: str = "\r\n",
    quote_all: bool = False,
) -> bytes:
    buffer = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    csv.writer(buffer, delimiter=delimiter, lineterminator=newline, quoting=quoting).writerows(rows)
    return buffer.getvalue().encode(encoding)


def as_xlsx(sheets: dict[str, Sequence[Sequence[object]]]) -> bytes:
    workbook = Workbook()
    workbook.remove(workbook.active)
    for name, rows in sheets.items():
        sheet = workbook.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def _decimal(value: float, mark: str) -> str:
    return f"{value:g}".replace(".", mark)


# -- Qualtrics ----------------------------------------------------------------------------------

_QUALTRICS = (
    ("StartDate", "Start Date", "startDate"),
    ("EndDate", "End Date", "endDate"),
    ("Status", "Response Type", "status"),
    ("IPAddress", "IP Address", "ipAddress"),
    ("Progress", "Progress", "progress"),
    ("Duration (in seconds)", "Duration (in seconds)", "duration"),
    ("Finished", "Finished", "finished"),
    ("RecordedDate", "Recorded Date", "recordedDate"),
    ("ResponseId", "Response ID", "_recordId"),
    ("RecipientLastName", "Recipient Last Name", "recipientLastName"),
    ("RecipientFirstName", "Recipient First Name", "recipientFirstName"),
    ("RecipientEmail", "Recipient Email", "recipientEmail"),
    ("ExternalReference", "External Data Reference", "externalDataReference"),
    ("LocationLatitude", "Location Latitude", "locationLatitude"),
    ("LocationLongitude", "Location Longitude", "locationLongitude"),
    ("DistributionChannel", "Distribution Channel", "distributionChannel"),
    ("UserLanguage", "User Language", "userLanguage"),
)


def qualtrics_rows(rows: Sequence[Person], *, headers: int, person: str) -> list[list[str]]:
    """Return the cells of a Qualtrics export; ``person`` is "question", "mail" or "reference"."""
    columns = ["Q1", "Q2", "Q4", "Q5_1", "Q6", "Q9", "Q10", "Q14"]
    said = [
        "Student number",
        *(WORDINGS[k] for k in ("gender", "bedtime", "tidy", "smokes", "free", "sleep")),
        WORDINGS["comments"],
    ]
    imports = [f"QID{k}_TEXT" for k in range(1, 9)]
    skip = 0 if person == "question" else 1
    columns = said if headers == 1 else columns  # that export has the wordings only
    top = [
        [name for name, _, _ in _QUALTRICS] + columns[skip:],
        [wording for _, wording, _ in _QUALTRICS] + said[skip:],
        [json.dumps({"ImportId": x}) for x in [i for _, _, i in _QUALTRICS] + imports[skip:]],
    ]
    table = top[:headers]
    for k, one in enumerate(rows):
        end = one.at + timedelta(minutes=6)
        table.append(
            [
                f"{one.at:%Y-%m-%d %H:%M:%S}", f"{end:%Y-%m-%d %H:%M:%S}", "IP Address",
                f"192.0.2.{k % 250}", "100", str(200 + k), "True", f"{end:%Y-%m-%d %H:%M:%S}",
                f"R_{k * 7919:015x}", "", "", one.mail if person == "mail" else "",
                one.number if person == "reference" else "", "48.1", "11.5", "anonymous", "EN",
                *([one.number] if person == "question" else []),
                one.gender, one.bedtime, one.tidy, one.smokes, ",".join(one.free),
                _decimal(one.sleep, "."), one.comments,
            ]
        )  # fmt: skip
    return table


# -- the forms ----------------------------------------------------------------------------------

_GOOGLE = {
    "en": ("Timestamp", "Email Address", "%Y/%m/%d %I:%M:%S %p GMT+2"),
    "de": ("Zeitstempel", "E-Mail-Adresse", "%d.%m.%Y %H:%M:%S"),
    "es": ("Marca temporal", "Dirección de correo electrónico", "%d/%m/%Y %H:%M:%S"),
}


def google_rows(rows: Sequence[Person], locale: str) -> list[list[str]]:
    """Return the cells of a sheet of Google Forms."""
    stamp, mail, form = _GOOGLE[locale]
    mark = "." if locale == "en" else ","
    grid = "How much do you agree? [I keep my room tidy.]"
    header = [stamp, mail, WORDINGS["gender"], WORDINGS["bedtime"], grid, WORDINGS["smokes"]]
    header += [WORDINGS["free"], WORDINGS["sleep"], WORDINGS["comments"]]
    table = [header]
    for one in rows:
        table.append(
            [
                one.at.strftime(form), one.mail, one.gender, one.bedtime, one.tidy, one.smokes,
                ", ".join(one.free), _decimal(one.sleep, mark), one.comments,
            ]
        )  # fmt: skip
    return table


_MICROSOFT = {
    "en": ("ID", "Start time", "Completion time", "Email", "Name"),
    "de": ("ID", "Startzeit", "Fertigstellungszeit", "E-Mail", "Name"),
    "es": ("Id", "Hora de inicio", "Hora de finalización", "Correo electrónico", "Nombre"),
}


def microsoft_rows(rows: Sequence[Person], locale: str) -> list[list[object]]:
    """Return the cells of a workbook of Microsoft Forms, with its odd spaces and semicolons."""
    header = [*_MICROSOFT[locale], "Last modified time"]
    header += [
        WORDINGS[k].replace("? ", "?\u00a0")
        for k in ("gender", "bedtime", "tidy", "smokes", "free", "sleep", "comments")
    ]
    table: list[list[object]] = [list(header)]
    for k, one in enumerate(rows, start=1):
        table.append(
            [
                k, one.at, one.at + timedelta(minutes=5), one.mail, f"Person {one.number}", None,
                one.gender, one.bedtime, int(one.tidy), one.smokes, ";".join(one.free) + ";",
                one.sleep, one.comments or None,
            ]
        )  # fmt: skip
    return table


def surveymonkey_rows(rows: Sequence[Person]) -> list[list[str]]:
    """Return the cells of a SurveyMonkey export: questions, then the options below them."""
    own = ["Respondent ID", "Collector ID", "Start Date", "End Date", "IP Address"]
    own += ["Email Address", "First Name", "Last Name", "Custom Data 1"]
    names = ("gender", "bedtime", "tidy", "smokes", "sleep", "comments")
    table = [own + [WORDINGS[k] for k in names]]
    table.append([""] * 9 + ["Response"] * 4 + ["Open-Ended Response"] * 2)
    for k, one in enumerate(rows):
        table.append(
            [
                str(118000000000 + k), "430000", f"{one.at:%m/%d/%Y %H:%M:%S}",
                f"{one.at + timedelta(minutes=4):%m/%d/%Y %H:%M:%S}", "192.0.2.1", one.mail, "",
                "", "", one.gender, one.bedtime, one.tidy, one.smokes, _decimal(one.sleep, "."),
                one.comments,
            ]
        )  # fmt: skip
    return table


# -- by hand ------------------------------------------------------------------------------------


def plain_rows(rows: Sequence[Person], *, mark: str = ".", unit: str = "") -> list[list[str]]:
    """Return the cells of a tidy table of a student system."""
    table = [
        ["Student ID", "Bedtime", "Smoking", "Tidiness", "Gender", "Hours of sleep", "Free time"]
    ]
    for one in rows:
        table.append(
            [
                one.number, one.bedtime, one.smokes, one.tidy, one.gender,
                _decimal(one.sleep, mark) + unit, "; ".join(one.free),
            ]
        )  # fmt: skip
    return table


COVER = [
    ["Housing survey 2026"],
    ["Residential Life, Northfield University"],
    [None],
    ["Confidential"],
]
CODES = [["Code", "Meaning"], ["1", "not at all"], ["5", "very much"], ["n/a", "not asked"]]
