"""Files that survey programs and offices write and that nobody would think of.

Each function returns bytes that say the same few people; what must come out is in ``PEOPLE``.
"""

import datetime
import io
import json
import zipfile
from collections.abc import Callable, Sequence

from openpyxl import Workbook

from tests.tabular.file_writers import as_csv, as_xlsx

BEDTIMES = ("Before 10 pm", "10-11 pm", "11 pm-12", "After midnight")
HOBBIES = ("Music", "Sport", "Cooking")
COUNT = 40


def _person(k: int) -> dict[str, str]:
    chosen = [hobby for j, hobby in enumerate(HOBBIES) if (k + 1) >> j & 1]
    return {
        "id": f"N{k:05d}",
        "mail": f"n{k:05d}@northfield.example",
        "gender": ("Woman", "Man")[(k // 2) % 2],
        "bedtime": BEDTIMES[(k * 7 + k // 5) % 4],
        "smokes": ("No", "Yes")[k % 3 == 0],
        "tidy": str(1 + (k * 11) % 5),
        "hobbies": ";".join(chosen or ["Music"]),
    }


PEOPLE = [_person(k) for k in range(COUNT)]
ASKED = {
    "gender": "What is your gender?",
    "bedtime": "When do you usually go to bed?",
    "smokes": "Do you smoke or vape?",
    "tidy": "I keep my room tidy.",
}
START = datetime.datetime(2026, 5, 1, 8, 0)


def plain(people: Sequence[dict[str, str]] = PEOPLE) -> list[list[str]]:
    """A tidy table: id, then the four questions."""
    return [
        ["Student ID", *ASKED.values()],
        *([one["id"], *(one[name] for name in ASKED)] for one in people),
    ]


def _stamp(k: int, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return (START + datetime.timedelta(minutes=37 * k)).strftime(form)


def qualtrics_broken_headers() -> bytes:
    """Duration first, line breaks and markup inside the wordings, three header rows."""
    own = ["Duration (in seconds)", "StartDate", "EndDate", "Finished", "ResponseId",
           "ExternalReference"]  # fmt: skip
    said = ["Duration (in seconds)", "Start Date", "End Date", "Finished", "Response ID",
            "External Data Reference"]  # fmt: skip
    asked = [f"<b>Please answer:</b>\n\n{text}\r\n(choose one)" for text in ASKED.values()]
    rows = [
        own + ["Q1", "Q2", "Q3", "Q4_1"],
        said + asked,
        [json.dumps({"ImportId": f"QID{k}"}) for k in range(10)],
    ]
    for k, one in enumerate(PEOPLE):
        start = [str(100 + k), _stamp(k), _stamp(k + 1), "True", f"R_{k:015x}", one["id"]]
        rows.append(start + [one[name] for name in ASKED])
    return as_csv(rows, quote_all=True)


def google_other_stamps() -> bytes:
    """Timestamps of two locales in one column, as a form has whose sheet changed its country."""
    rows = [["Timestamp", "Email Address", *ASKED.values()]]
    for k, one in enumerate(PEOPLE):
        form = "%d/%m/%Y %H:%M:%S" if k % 2 else "%m/%d/%Y %I:%M:%S %p"
        rows.append([_stamp(900 * k, form), one["mail"], *(one[name] for name in ASKED)])
    return as_csv(rows)


def dates_as_numbers() -> bytes:
    """A workbook whose dates lost their format: serial numbers of days."""
    rows: list[list[object]] = [["Student ID", "Date of answer", *ASKED.values()]]
    for k, one in enumerate(PEOPLE):
        cells: list[object] = [one[name] for name in ASKED]
        cells[-1] = int(one["tidy"])
        rows.append([one["id"], 46143.3333 + k / 7, *cells])
    return as_xlsx({"Sheet1": rows})


def xls_as_web_page() -> bytes:
    """What web applications call XLS: a web page with a table."""
    lines = ["".join(f"<td>{cell}</td>" for cell in row) for row in plain()]
    page = "<html><body><table><tr>" + "</tr><tr>".join(lines) + "</tr></table></body></html>"
    return page.encode()


def old_excel() -> bytes:
    """The first bytes of every .xls, and of every workbook with a password."""
    return bytes.fromhex("d0cf11e0a1b11ae1") + bytes(2_040)


def open_document() -> bytes:
    """A spreadsheet of LibreOffice (.ods)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", "<office:document-content/>")
    return buffer.getvalue()


def xls_as_bare_table() -> bytes:
    """The same without html around it, and with a style sheet first."""
    return b"\r\n<style>td {}</style>\r\n<table>" + xls_as_web_page()[20:]


def xls_as_spreadsheet_xml() -> bytes:
    """Excel 2003's XML."""
    return b'<?xml version="1.0"?><?mso-application progid="Excel.Sheet"?><Workbook></Workbook>'


def tabs_utf16_without_mark() -> bytes:
    return as_csv(plain(), delimiter="\t", encoding="utf-16-le")


def tabs_utf16_without_mark_far_letters() -> bytes:
    """The same, of people whose ids begin with letters that are not Latin."""
    people = [one | {"id": f"王小明佐藤陽葵{k:03d}"} for k, one in enumerate(PEOPLE)]
    table = plain(people)
    table[0] = [
        "学生番号",
        "性別は何ですか",
        "就寝時刻はいつですか",
        "喫煙しますか",
        "片付けますか",
    ]
    return as_csv(table, delimiter="\t", encoding="utf-16-le")


def semicolons_and_decimal_commas() -> bytes:
    rows = [["Student ID", *ASKED.values(), "Hours of sleep"]]
    for k, one in enumerate(PEOPLE):
        hours = f"{5 + k % 7 * 0.75:g}".replace(".", ",")
        rows.append([one["id"], *(one[name] for name in ASKED), hours])
    return b"sep=;\r\n" + as_csv(rows, delimiter=";")


def header_in_row_four() -> bytes:
    cover = [["Housing survey 2026", "", "", "", ""], ["", "", "", "", ""],
             ["Printed on", "2026-05-31", "", "", ""]]  # fmt: skip
    return as_csv([*cover, *plain()])


def hidden_sheet() -> bytes:
    """The answers are shown; a hidden sheet holds more rows of last year."""
    book = Workbook()
    book.active.title = "2026"
    for row in plain():
        book.active.append(row)
    old = book.create_sheet("2025")
    for row in plain([one | {"id": "OLD" + one["id"]} for one in PEOPLE] * 3):
        old.append(row)
    old.sheet_state = "hidden"
    return _saved(book)


def _saved(book: Workbook) -> bytes:
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def formulas() -> bytes:
    table = plain()
    table[3][4] = "=1+1"
    return as_xlsx({"Sheet1": table})


def emoji_everywhere() -> bytes:
    faces = ("🙂 yes", "🙁 no")
    rows = [["Student ID", "Name 🧑\u200d🎓", *ASKED.values(), "Mornings? 🌅"]]
    for k, one in enumerate(PEOPLE):
        mine = [one[name] for name in ASKED]
        rows.append([one["id"], f"👩🏽\u200d🦱 Zoë {k}", *mine, faces[k % 2]])
    return as_csv(rows, encoding="utf-8-sig")


def wide() -> bytes:
    """150 columns of answers."""
    rows = [["Student ID", *(f"Item {j}" for j in range(149))]]
    rows += [[one["id"], *(str(1 + (k * j + k + j) % 5) for j in range(149))]
             for k, one in enumerate(PEOPLE)]  # fmt: skip
    return as_csv(rows)


def same_header_twice() -> bytes:
    table = plain()
    table[0][2] = table[0][1]
    return as_csv(table)


def blank_columns_at_the_end() -> bytes:
    return as_csv([[*row, " ", "\u00a0", "", "   "] for row in plain()])


def microsoft_forms() -> bytes:
    own = ["ID", "Start time", "Completion time", "Email", "Name"]
    rows: list[list[object]] = [[*own, *ASKED.values(), "Which do you like?"]]
    for k, one in enumerate(PEOPLE):
        at = START + datetime.timedelta(hours=k)
        rows.append([k + 1, at, at, one["mail"], f"Person {k}",
                     *(one[name] for name in ASKED), one["hobbies"] + ";"])  # fmt: skip
    return as_xlsx({"Sheet1": rows})


def surveymonkey_options() -> bytes:
    """Two header rows; a question of several answers has a column for each."""
    own = ["Respondent ID", "Collector ID", "Start Date", "Email Address"]
    asked = [*ASKED.values(), "Which do you like?", "", ""]
    rows = [own + asked, [""] * 4 + ["Response"] * 4 + list(HOBBIES)]
    for k, one in enumerate(PEOPLE):
        liked = [hobby if hobby in one["hobbies"] else "" for hobby in HOBBIES]
        start = [str(118000000000 + k), "430", _stamp(k, "%m/%d/%Y %H:%M:%S"), one["mail"]]
        rows.append([*start, *(one[name] for name in ASKED), *liked])
    return as_csv(rows)


def limesurvey() -> bytes:
    """Codes and full answers, "[...]" for parts of a question, own columns first."""
    own = ["id. Response ID", "submitdate. Date submitted", "lastpage. Last page",
           "startlanguage. Start language", "seed. Seed", "token. Access code"]  # fmt: skip
    asked = [f"G1Q{j:05d}. {text}" for j, text in enumerate(ASKED.values())]
    asked += [f"G1Q00009[SQ{j:03d}]. Which do you like? [{x}]" for j, x in enumerate(HOBBIES)]
    rows = [own + asked]
    for k, one in enumerate(PEOPLE):
        liked = ["Yes" if hobby in one["hobbies"] else "No" for hobby in HOBBIES]
        start = [str(k + 5), _stamp(k), "3", "en", str(10**9 + 7919 * k), one["id"]]
        rows.append([*start, *(one[name] for name in ASKED), *liked])
    return as_csv(rows, quote_all=True)


def redcap() -> bytes:
    """Raw codes; checkboxes as question___1 with 0 and 1; a completeness column."""
    rows = [["record_id", "redcap_survey_identifier", "housing_timestamp", "gender", "bedtime",
             "tidy", "hobbies___1", "hobbies___2", "hobbies___3", "housing_complete"]]  # fmt: skip
    for k, one in enumerate(PEOPLE):
        liked = [str(int(hobby in one["hobbies"])) for hobby in HOBBIES]
        codes = [
            str(1 + (one["gender"] == "Man")),
            str(BEDTIMES.index(one["bedtime"])),
            one["tidy"],
        ]
        rows.append([str(k + 1), "", _stamp(k), *codes, *liked, str(k % 3)])
    return as_csv(rows)


def jotform() -> bytes:
    """Submission date first, line breaks between several answers, its own id last."""
    rows = [["Submission Date", "Student number", *ASKED.values(), "Which do you like?",
             "Submission IP", "Submission ID"]]  # fmt: skip
    for k, one in enumerate(PEOPLE):
        mine = [one[name] for name in ASKED]
        liked = one["hobbies"].replace(";", "\n")
        own = [f"192.0.2.{k % 7}", str(6 * 10**18 + k)]
        rows.append([_stamp(k, "%b %d, %Y"), one["id"], *mine, liked, *own])
    return as_csv(rows, quote_all=True)


RIGHT: tuple[Callable[[], bytes], ...] = (
    qualtrics_broken_headers, google_other_stamps, dates_as_numbers, tabs_utf16_without_mark,
    tabs_utf16_without_mark_far_letters, semicolons_and_decimal_commas, header_in_row_four,
    hidden_sheet, emoji_everywhere, blank_columns_at_the_end, microsoft_forms,
    surveymonkey_options, limesurvey, redcap, jotform,
)  # fmt: skip
REFUSED: dict[Callable[[], bytes], str] = {
    xls_as_web_page: "Open it in Excel and save it as XLSX.",
    xls_as_bare_table: "Open it in Excel and save it as XLSX.",
    xls_as_spreadsheet_xml: "Open it in Excel and save it as XLSX.",
    old_excel: "Save it as XLSX without a password",
    open_document: "Open it and save it as XLSX or CSV.",
    formulas: "Row 4, I keep my room tidy.: the cell holds a formula (=1+1).",
    same_header_twice: "Columns 2 and 3 are both called “What is your gender?”.",
}
