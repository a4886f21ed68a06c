"""A hunt for surveys that are read wrong: mutated by the habits of Excel, of makers and of people.

    python -m benchmarks hunts surveys [--minutes 10] [--first-seed 0]

Every round invents people with their answers, writes them as one of several programs does, and
mutates the file: encodings, delimiters, hidden rows, merged cells, ranges made dates, invisible and
full-width letters, repeated headers, totals, people twice, N/A for ids. The file is read as the
import page reads it, with one press of "Use all fixes", and by the command line. A finding is a
file whose answers differ from what the people said, through either door; a file that is refused is
right where its mutations allow no other answer, else a finding too. Ends with 1 if there is any.
"""

import argparse
import csv
import datetime
import io
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell

from benchmarks.common.reporting import print_machine
from engine.core.errors import InvalidProblemError
from engine.datasets.survey_csv import infer_questionnaire, read_survey_csv
from engine.tabular.answers import TableAnswers, read_answers
from engine.tabular.choices import Choices
from engine.tabular.guesses import guess_choices
from engine.tabular.preview import build_preview
from engine.tabular.reading import read_table
from engine.tabular.review import Review, review, use_all
from engine.tabular.table import Table

BEDTIMES = ("Before 10 pm", "10-11 pm", "11 pm-12", "After midnight")
SIBLINGS = ("0", "1-2", "3-5", "6-10", "10+")
NUMBERS = ("1", "2", "3", "4", "5")
SCALES: tuple[tuple[str, ...], ...] = (
    ("Strongly disagree", "Disagree", "Neither agree nor disagree", "Agree", "Strongly agree"),
    ("Never", "Sometimes", "About half the time", "Most of the time", "Always"),
    ("Not at all important", "Slightly important", "Moderately important", "Very important"),
    ("Extremely unlikely", "Somewhat unlikely", "Somewhat likely", "Extremely likely"),
    ("Terrible", "Poor", "Average", "Good", "Excellent"),
    ("Cold", "Cool", "Mild", "Warm", "Hot"),
    ("None at all", "A little", "A moderate amount", "A lot", "A great deal"),
    ("Stimme überhaupt nicht zu", "Stimme nicht zu", "Weder noch", "Stimme zu"),
    ("Sehr unzufrieden", "Unzufrieden", "Zufrieden", "Sehr zufrieden"),
    ("Nie", "Selten", "Manchmal", "Oft", "Immer"),
    ("Muy en desacuerdo", "En desacuerdo", "De acuerdo", "Muy de acuerdo"),
    ("Nada importante", "Poco importante", "Muy importante"),
    ("Jamais", "Rarement", "Parfois", "Souvent", "Toujours"),
    ("Pas du tout d'accord", "Pas d'accord", "D'accord", "Tout à fait d'accord"),
)
OPT_OUTS = ("Prefer not to say", "No answer", "keine Angabe", "Prefiero no responder", "N/A")
QUESTIONS = ("Bedtime", "Smoke", "Tidy", "Siblings", "Opinion")


@dataclass
class Case:
    """One file: what its people said, its rows, and how they are written."""

    rng: random.Random
    truth: dict[str, dict[str, str]]  # {id: {question: answer, "" for none}}
    levels: dict[str, tuple[str, ...]]
    header: list[str]
    rows: list[list[Any]]
    ids: str = "Student ID"
    above: list[list[str]] = field(default_factory=list)
    hidden: set[int] = field(default_factory=set)  # positions of rows, the header is 0
    merged: bool = False
    formats: dict[str, str] = field(default_factory=dict)  # {column: number format}
    encoding: str = "utf-8"
    delimiter: str = ","
    newline: str = "\r\n"
    trailing: int = 0
    separator_line: bool = False
    is_xlsx: bool = False
    done: list[str] = field(default_factory=list)
    keys: dict[int, str] = field(default_factory=dict)  # {identity of a row: the id of its person}

    def key_of(self, row: list[Any]) -> str:
        """Return the id of the person of a row; empty for other rows, and who is out already."""
        key = self.keys.get(id(row), "")
        return key if key in self.truth else ""

    def column(self, name: str) -> int:
        """Return the place of a column."""
        return self.header.index(name)


def invent(seed: int) -> Case:
    """Return people with answers, written as a plain table."""
    rng = random.Random(seed)
    scale = rng.choice(SCALES)
    levels = dict(zip(QUESTIONS, (BEDTIMES, ("No", "Yes"), NUMBERS, SIBLINGS, scale), strict=True))
    truth: dict[str, dict[str, str]] = {}
    for k in range(rng.randint(40, 90)):
        said = {
            name: answers[(k * (j + 2) + k // 7) % len(answers)] if k < 20 else rng.choice(answers)
            for j, (name, answers) in enumerate(levels.items())
        }
        truth[f"{10_000 + 37 * k:07d}"] = said
    rows: list[list[Any]] = [[key, *said.values()] for key, said in truth.items()]
    keys = {id(row): row[0] for row in rows}
    header = ["Student ID", *QUESTIONS]
    return Case(rng, truth, levels, header, rows, is_xlsx=rng.random() < 0.4, keys=keys)


# -- mutations ------------------------------------------------------------------------------------


def blanks(case: Case) -> None:
    """Leave some answers out."""
    for row in case.rows:
        for k in range(1, len(row)):
            if case.rng.random() < 0.04:
                case.truth[case.key_of(row)][case.header[k]] = ""
                row[k] = case.rng.choice(["", " ", "N/A"])


def opt_outs(case: Case) -> None:
    """Let some decline to answer."""
    word, k = case.rng.choice(OPT_OUTS), case.column("Opinion")
    for row in case.rng.sample(case.rows, 5):
        row[k] = word
        case.truth[case.key_of(row)]["Opinion"] = ""


def invisible(case: Case) -> None:
    """Put characters that nobody sees into cells."""
    for row in case.rows:
        k = case.rng.randrange(len(row))
        mark = case.rng.choice("\u200b\u200e\u202a\ufeff\u2060\u00ad")
        place = case.rng.randint(0, len(str(row[k])))
        row[k] = str(row[k])[:place] + mark + str(row[k])[place:]


def odd_spaces(case: Case) -> None:
    """Put other spaces in place of plain ones."""
    for row in case.rows:
        for k in range(1, len(row)):
            if case.rng.random() < 0.2:
                row[k] = str(row[k]).replace(" ", case.rng.choice("\u00a0\u202f\u2009"))


def full_width(case: Case) -> None:
    """Type some numbers with the keyboard of East Asia."""
    k = case.column("Tidy")
    for row in case.rows:
        if case.rng.random() < 0.3 and str(row[k]).isdecimal():
            row[k] = chr(0xFF10 + int(row[k]))


def other_quotes(case: Case) -> None:
    """Write apostrophes and dashes as a word processor does."""
    for row in case.rows:
        for k in range(1, len(row)):
            if case.rng.random() < 0.25:
                row[k] = str(row[k]).replace("'", "’").replace("-", "–")


def capitals(case: Case) -> None:
    """Write some answers in capitals."""
    k = case.column("Smoke")
    for row in case.rows:
        if case.rng.random() < 0.3:
            row[k] = str(row[k]).upper()


def languages(case: Case) -> None:
    """Answer yes and no in several languages."""
    k = case.column("Smoke")
    for row in case.rows:
        if row[k] in ("Yes", "No") and case.rng.random() < 0.4:
            row[k] = case.rng.choice({"Yes": ("Ja", "Oui"), "No": ("Nein", "Non")}[row[k]])


def made_dates(case: Case) -> None:
    """Let Excel make dates of ranges, as it shows them in one of several languages."""
    months = case.rng.choice([
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct"),
        ("Jan", "Feb", "Mrz", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt"),
        ("ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sep", "oct"),
        ("janv", "févr", "mars", "avr", "mai", "juin", "juil", "août", "sept", "oct"),
    ])  # fmt: skip
    form = case.rng.choice(["{day}-{name}", "{day:02d}. {name}", "{day:02d}-{name}", "iso"])
    k = case.column("Siblings")
    for row in case.rows:
        low, dash, high = str(row[k]).partition("-")
        if not dash:
            continue
        month, day = int(low), int(high)
        if form == "iso":
            row[k] = f"2026-{month:02d}-{day:02d}"
            if case.is_xlsx:
                row[k] = datetime.datetime(2026, month, day)
        else:
            row[k] = form.format(day=day, name=months[month - 1])


def repeated_header(case: Case) -> None:
    """Paste two files together."""
    case.rows.insert(case.rng.randint(5, len(case.rows) - 5), list(case.header))


def totals(case: Case) -> None:
    """End with a line of totals."""
    case.rows.append([f"Total: {len(case.rows)}", *[""] * (len(case.header) - 1)])


def cover(case: Case) -> None:
    """Begin with a title and a date."""
    case.above = [["Housing survey 2026"], ["Exported 2026-05-31"]]


def numbers_with_zeros(case: Case) -> None:
    """Keep ids as numbers that a format shows with zeros."""
    if case.is_xlsx:
        case.formats["Student ID"] = "0000000"
        for row in case.rows:
            if str(row[0]).isdecimal():
                row[0] = int(row[0])


def quoted_ids(case: Case) -> None:
    """Keep zeros as student systems do in CSV."""
    if not case.is_xlsx:
        for row in case.rows:
            row[0] = f'="{row[0]}"' if str(row[0]).isdecimal() else row[0]


def number_cells(case: Case) -> None:
    """Keep numbers as numbers."""
    if case.is_xlsx:
        k = case.column("Tidy")
        for row in case.rows:
            row[k] = int(row[k]) if str(row[k]).isdecimal() and str(row[k]).isascii() else row[k]


def escaped_ends(case: Case) -> None:
    """End some cells in _x000D_, as converters of line ends leave it."""
    if case.is_xlsx:
        for row in case.rows:
            k = case.rng.randrange(1, len(row))
            if isinstance(row[k], str) and row[k]:
                row[k] += "_x000D_"


def hidden_rows(case: Case) -> None:
    """Hide some rows by a filter: nobody sees these people."""
    if case.is_xlsx:
        places = [k for k, row in enumerate(case.rows) if case.key_of(row)]
        for place in case.rng.sample(places, 4):
            case.hidden.add(place)
            del case.truth[case.key_of(case.rows[place])]


def merged_header(case: Case) -> None:
    """Put a second header above, merged across the questions."""
    case.merged = case.is_xlsx and not case.above


def no_ids(case: Case) -> None:
    """Let some type that they have no id: nobody can tell who they are."""
    for row in case.rng.sample(case.rows, 3):
        if case.key_of(row):
            del case.truth[case.key_of(row)]
            row[0] = case.rng.choice(["N/A", "NA", "none", "don't know"])


def names_and_handles(case: Case) -> None:
    """Add columns that say who somebody is."""
    first, last = ("Ann", "Nan", "Li", "Zoë", "Infinity"), ("Kim", "Na", "Poe", "Ray")
    case.header += ["First name", "Instagram", "Full name"]
    for k, row in enumerate(case.rows):
        name = case.rng.choice(first)
        row += [name, f"@student{k}", f"{name} {case.rng.choice(last)}"]


def repeats(case: Case) -> None:
    """Let some answer twice; their last row counts."""
    for row in case.rng.sample(case.rows, 3):
        if case.key_of(row):
            early = list(row)
            k = case.column("Smoke")
            early[k] = case.rng.choice(["Yes", "No"])
            case.rows.insert(0, early)


def google_times(case: Case) -> None:
    """Add the stamp of Google Forms, the rows out of order, across the end of summer time."""
    case.header.insert(0, "Timestamp")
    start = datetime.datetime(2026, 10, 24, 20, 0)
    for k, row in enumerate(case.rows):
        moment = start + datetime.timedelta(minutes=11 * k)  # in universal time
        hours = 2 if moment < datetime.datetime(2026, 10, 25, 1, 0) else 1
        local = moment + datetime.timedelta(hours=hours)
        row.insert(0, f"{local:%Y/%m/%d} {local.hour % 12 or 12}:{local:%M:%S %p} GMT+{hours}")
    case.rng.shuffle(case.rows)


def garbled(case: Case) -> None:
    """Read UTF-8 as Western letters, and save that."""
    if not case.rows or case.encoding != "utf-8":
        return
    for row in case.rows:
        for k, cell in enumerate(row):
            if isinstance(cell, str) and not cell.isascii():
                try:
                    row[k] = cell.encode("utf-8").decode("cp1252")
                except UnicodeDecodeError:
                    continue


MUTATIONS: tuple[Callable[[Case], None], ...] = (
    blanks, opt_outs, repeats, no_ids, made_dates, capitals, languages, full_width, other_quotes,
    odd_spaces, names_and_handles, garbled, invisible, numbers_with_zeros, quoted_ids, number_cells,
    escaped_ends, hidden_rows, google_times, repeated_header, totals, cover, merged_header,
)  # fmt: skip
# What cannot be told apart again once both were done, or changes what the other one relies on.
CONFLICTS = (
    {languages, capitals}, {garbled, invisible}, {garbled, other_quotes}, {garbled, odd_spaces},
    {garbled, full_width}, {google_times, hidden_rows}, {google_times, repeated_header},
    {google_times, totals}, {google_times, cover}, {google_times, merged_header},
    {cover, merged_header}, {hidden_rows, repeated_header}, {google_times, quoted_ids},
    {invisible, numbers_with_zeros}, {invisible, quoted_ids}, {made_dates, other_quotes},
    {repeats, hidden_rows}, {google_times, numbers_with_zeros}, {made_dates, invisible},
    {repeats, no_ids}, {google_times, repeats},
)  # fmt: skip


def mutate(case: Case) -> None:
    """Apply two to six habits that go together, in their order."""
    wanted = case.rng.sample(MUTATIONS, case.rng.randint(2, 6))
    chosen: list[Callable[[Case], None]] = []
    for one in MUTATIONS:
        if one in wanted and not any({one, other} in CONFLICTS for other in chosen):
            chosen.append(one)
    for one in chosen:
        one(case)
        case.done.append(one.__name__)
    if not case.is_xlsx:
        case.encoding = case.rng.choice(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
        if all(str(c).isascii() for row in case.rows for c in row):
            case.encoding = case.rng.choice([case.encoding, "cp1252"])
        case.delimiter = case.rng.choice([",", ";", "\t", "|"])
        case.newline = case.rng.choice(["\r\n", "\n", "\r"])
        case.trailing = case.rng.choice([0, 0, 3, 600])
        case.separator_line = case.rng.random() < 0.2


# -- writers --------------------------------------------------------------------------------------


def written(case: Case) -> bytes:
    """Return the bytes of the file."""
    return _as_xlsx(case) if case.is_xlsx else _as_csv(case)


def _as_csv(case: Case) -> bytes:
    buffer = io.StringIO(newline="")
    if case.separator_line:
        buffer.write(f"sep={case.delimiter}{case.newline}")
    writer = csv.writer(buffer, delimiter=case.delimiter, lineterminator=case.newline)
    more = [""] * case.trailing
    writer.writerows([[*row, *more] for row in [*case.above, case.header, *case.rows]])
    return buffer.getvalue().encode(case.encoding)


def _as_xlsx(case: Case) -> bytes:
    workbook = Workbook()
    sheet = workbook.active
    if case.merged:
        sheet.append([case.header[0], "About you", *[None] * (len(case.header) - 2)])
        sheet.append([None, *case.header[1:]])
        sheet.merge_cells(start_row=1, end_row=2, start_column=1, end_column=1)
        sheet.merge_cells(start_row=1, end_row=1, start_column=2, end_column=len(case.header))
    else:
        for row in [*case.above, case.header]:
            sheet.append(row)
    first = sheet.max_row + 1
    for row in case.rows:
        cells = []
        for name, value in zip(case.header, row, strict=False):
            cell = WriteOnlyCell(sheet, value=value if value != "" else None)
            if name in case.formats and isinstance(value, int):
                cell.number_format = case.formats[name]
            cells.append(cell)
        sheet.append(cells)
    for place in case.hidden:
        sheet.row_dimensions[first + place].hidden = True
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


# -- readers and judgement ------------------------------------------------------------------------


def read_by_page(data: bytes) -> TableAnswers:
    """Return what the import page would import after one press of "Use all fixes"."""
    table: Table = read_table(data)

    def again(choices: Choices) -> Review:
        return review(build_preview(table, choices))

    found = again(use_all(again(guess_choices(table)), again))
    if not found.preview.can_import:
        raise InvalidProblemError(found.preview.errors[0].sentence)
    return read_answers(found.preview)


def said_by(answers: TableAnswers) -> dict[str, dict[str, str]]:
    """Return {id: {question: answer}} of what was read."""
    found: dict[str, dict[str, str]] = {}
    for k, key in enumerate(answers.ids):
        found[key] = {
            question.name: question.levels[codes[k]] if codes[k] >= 0 else ""
            for question, codes in zip(answers.questions, answers.codes, strict=True)
        }
    return found


def judge(case: Case, answers: TableAnswers) -> str:
    """Return what was read wrong; empty where everything is right."""
    found = said_by(answers)
    if set(found) != set(case.truth):
        extra, missing = set(found) - set(case.truth), set(case.truth) - set(found)
        return f"people: {sorted(extra)[:3]} too many, {sorted(missing)[:3]} missing"
    names = {question.name: question for question in answers.questions}
    for name in case.levels:
        if name not in names:
            return f"{name} is no question"
    if set(names) - set(case.levels):
        return f"questions that nobody asked: {sorted(set(names) - set(case.levels))}"
    for key, said in case.truth.items():
        for name, answer in said.items():
            if _plain(found[key][name]) != _plain(answer):
                return f"{key}, {name}: read {found[key][name]!r}, said {answer!r}"
    for name, levels in case.levels.items():
        order = [_plain(level) for level in names[name].levels]
        wanted = [_plain(level) for level in levels if _plain(level) in order]
        if order not in (wanted, wanted[::-1]):
            return f"{name}: order {order}"
    return ""


def _plain(text: str) -> str:
    """Return an answer without what the mutations may change of its writing."""
    folded = text.casefold().replace("–", "-").replace("’", "'")
    words = {"ja": "yes", "oui": "yes", "nein": "no", "non": "no"}
    return words.get(folded, folded)


def try_seed(seed: int, folder: Path) -> tuple[Case, str]:
    """Return the file of a seed, and what is wrong with how it is read."""
    case = invent(seed)
    mutate(case)
    data = written(case)
    try:
        page = read_by_page(data)
    except InvalidProblemError as error:
        return case, f"page refused: {error}"
    wrong = judge(case, page)
    if wrong:
        return case, f"page: {wrong}"
    path = folder / f"survey.{'xlsx' if case.is_xlsx else 'csv'}"
    path.write_bytes(data)
    try:
        questionnaire = infer_questionnaire([path], fixes="all")
        survey = read_survey_csv(path, questionnaire, fixes="all")
    except InvalidProblemError as error:
        return case, f"command line refused: {error}"
    if survey.ids != page.ids:
        return case, "command line: other people than the page"
    codes = {one.name: codes for one, codes in zip(page.questions, page.codes, strict=True)}
    for number, question in enumerate(questionnaire.questions):
        if tuple(survey.answers[:, number].tolist()) != codes.get(question.name):
            return case, f"command line: other answers to {question.name} than the page"
    return case, ""


def hunt(minutes: float, first_seed: int) -> int:
    """Try seeds until the time is up; print findings and return how many there are."""
    ends = time.monotonic() + 60 * minutes
    seed, findings, habits = first_seed, 0, Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < ends:
            case, wrong = try_seed(seed, Path(folder))
            habits.update(case.done)
            if wrong:
                findings += 1
                kind = "XLSX" if case.is_xlsx else f"CSV {case.encoding} {case.delimiter!r}"
                print(f"seed {seed}, {kind}, {', '.join(case.done)}: {wrong}", flush=True)
            seed += 1
    print(f"\n{seed - first_seed:,} surveys, {findings} read wrong")
    print(", ".join(f"{name} {times:,}" for name, times in habits.most_common()))
    return findings


def main() -> None:
    """Hunt for the time given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    print_machine()
    sys.exit(1 if hunt(options.minutes, options.first_seed) else 0)


if __name__ == "__main__":
    main()
