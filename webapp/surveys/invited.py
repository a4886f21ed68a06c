"""Reading the people to invite from pasted text: e-mails with names and student numbers.

One line may hold one person in any order ("Anna Berg <anna@x.example>, N00101"), or several people
("a@x.example; b@x.example"). A word with a digit is the student number, other words are the name.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.utils.translation import gettext, ngettext

from engine.tabular.id_column import is_id_title
from engine.tabular.text import fold_title
from webapp.surveys.content import QuestionnaireError

MAX_PEOPLE = 20_000
MAX_NUMBER = MAX_NAME = 200
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))
_SEPARATORS = (re.compile(r"[;|\t]+"), re.compile(r",+"), re.compile(r"\s+"))
_JOINTS = (" , ", " , ", " ")
_QUOTES = "<>()[]\"'“”„«» "
_HEADINGS = re.compile(r"e-?mail|address|name|number|student|\bid\b|correo|nombre|número", re.I)
_SHOWN = 5
_TITLE = re.compile(r"e-?mail|correo|courriel", re.I)
_OWN_MAIL = {
    "email", "emailaddress", "recipientemail", "studentemail", "universityemail", "schoolemail",
    "campusemail", "correoelectronico", "correo", "emailadresse", "adresseemail",
}  # fmt: skip
_NUMBER_TITLE = re.compile(
    r"student.{0,12}\b(?:id|no|nr|number)\b|student_?id|matri|external.?(?:data.?)?reference|"
    r"n[uú]mero de (?:estudiante|alumno)|numéro étudiant|^number$|^número$",
    re.I,
)
_NAME_TITLE = re.compile(
    r"^(?:(?:first|last|full|family|given|preferred|recipient|student|sur|vor|nach)[ _-]?)*name"
    r"(?: \(.*\))?$|^recipient(?:first|last)name$|^nombre|^apellido|^(?:pré)?nom$",
    re.I,
)
_RESPONSE = re.compile(r"response|respondent|submission|entry|record", re.I)


@dataclass(frozen=True, slots=True)
class Invited:
    """A person to be invited, with the line that names the person."""

    email: str
    number: str
    name: str
    line: int


def read_people(text: str) -> list[Invited]:
    """Return all people in the lines, each e-mail once.

    Raises QuestionnaireError in one sentence that names the lines; then nobody must be added.
    """
    found: dict[str, Invited] = {}
    wrong: list[int] = []
    by_number: dict[str, Invited] = {}
    is_first = True
    for place, line in enumerate(text.translate(_INVISIBLE).splitlines(), start=1):
        if not line.strip():
            continue
        people = list(_people_of(_spaced(line), place))
        if not people and is_first and _HEADINGS.search(line):
            is_first = False
            continue
        is_first = False
        if not people or not all(_is_address(one.email) for one in people):
            wrong.append(place)
            continue
        for one in people:
            known = found.get(one.email)
            found[one.email] = one = one if known is None else _merged(known, one)
            other = by_number.setdefault(one.number.casefold(), one) if one.number else one
            if other.email != one.email:
                raise QuestionnaireError(
                    gettext(
                        "Lines %(first)s and %(second)s give the number %(number)s to two e-mails, "
                        "%(email)s and %(other)s. Nobody was added."
                    )
                    % {
                        "first": other.line,
                        "second": one.line,
                        "number": one.number,
                        "email": other.email,
                        "other": one.email,
                    },
                    "people",
                )
    if wrong:
        raise QuestionnaireError(_no_email(wrong), "people")
    if not found:
        raise QuestionnaireError(gettext("Give one e-mail a line."), "people")
    if len(found) > MAX_PEOPLE:
        raise QuestionnaireError(
            gettext("At most %(most)s people are invited at once.") % {"most": f"{MAX_PEOPLE:,}"},
            "people",
        )
    return list(found.values())


def lines_of_table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield one line for each row of a table: the e-mail, the number and the name of a person.

    Columns are chosen by their titles. Of a survey or an address book, answers and telephone
    numbers are left out; only the words of a table without titles all count.
    """
    if not rows or any("@" in cell for cell in rows[0]) or not any(map(_TITLE.search, rows[0])):
        yield from map("\t".join, rows)
        return
    head, *below = rows
    columns = range(len(head))
    mails = [k for k in columns if any(k < len(row) and "@" in row[k] for row in below)]
    if len(mails) > 1:
        mails = [k for k in mails if fold_title(head[k]) in _OWN_MAIL]
        if len(mails) != 1:
            raise QuestionnaireError(
                gettext(
                    "Several columns of the file hold e-mails. Keep only the one to write to. "
                    "Nobody was added."
                ),
                "people",
            )
    rest = [k for k in columns if k not in mails]
    titled = [k for k in rest if _NUMBER_TITLE.search(head[k])]
    ids = titled or [k for k in rest if is_id_title(head[k]) and not _RESPONSE.match(head[k])]
    names = [k for k in rest if k not in ids[:1] and _NAME_TITLE.search(head[k])]
    yield ""
    for row in below:
        cells = [row[k] if k < len(row) else "" for k in (*mails, *ids[:1], *names)]
        yield "\t".join(cell for cell in cells if cell)


def _no_email(places: list[int]) -> str:
    """Return the refusal that names the lines without an e-mail."""
    if len(places) == 1:
        words = gettext("Line %(line)s holds no e-mail. Nobody was added.")
        return words % {"line": places[0]}
    shown = [str(place) for place in places[:_SHOWN]]
    if len(places) > _SHOWN:
        count = len(places) - _SHOWN
        words = ngettext(
            "Lines %(lines)s and %(count)s more hold no e-mail. Nobody was added.",
            "Lines %(lines)s and %(count)s more hold no e-mail. Nobody was added.",
            count,
        )
        return words % {"lines": ", ".join(shown), "count": f"{count:,}"}
    words = gettext("Lines %(lines)s and %(last)s hold no e-mail. Nobody was added.")
    return words % {"lines": ", ".join(shown[:-1]), "last": shown[-1]}


def _spaced(line: str) -> str:
    return line.replace("\u00a0", " ").replace("<", " <").replace(">", "> ")


def _people_of(line: str, place: int) -> Iterator[Invited]:
    """Yield the people of one line."""
    quoted = re.sub(r'"[^"]*"', lambda found: found[0].replace(",", " "), line)
    for chunk in _chunks(quoted, 0):
        words = re.sub(r"[,;|]", " ", chunk).split()
        email = next((word for word in words if "@" in word), "")
        if email:
            yield _person(_bare(email), (word for word in words if word != email), place)


def _chunks(text: str, level: int) -> Iterator[str]:
    """Yield the parts of a text with one e-mail each.

    A part without an e-mail belongs to the e-mail before it, or to the next one where the text
    begins with such a part.
    """
    if text.count("@") <= 1 or level == len(_SEPARATORS):
        yield text
        return
    parts = [part for part in _SEPARATORS[level].split(text) if part.strip()]
    is_forward = bool(parts) and "@" not in parts[0]
    groups: list[list[str]] = []
    waiting: list[str] = []
    for part in parts:
        if "@" in part:
            groups.append([*waiting, part])
            waiting = []
        elif is_forward:
            waiting.append(part)
        else:
            groups[-1].append(part)
    if waiting and groups:
        groups[-1] += waiting
    for group in groups:
        if len(groups) == 1 and len(group) == len(parts):
            yield from _chunks(text, level + 1)
        else:
            yield from _chunks(_JOINTS[level].join(group), level + 1)


def _bare(word: str) -> str:
    word = word.strip(_QUOTES).rstrip(".:").lower()
    return word.removeprefix("mailto:")


def _person(email: str, words: Iterable[str], place: int) -> Invited:
    plain = [word for word in (word.strip(_QUOTES) for word in words) if word]
    numbers = [word for word in plain if any(sign.isdigit() for sign in word)]
    names = [word for word in plain if word not in numbers and any(map(str.isalpha, word))]
    return Invited(email, " ".join(numbers)[:MAX_NUMBER], " ".join(names)[:MAX_NAME], place)


def _is_address(text: str) -> bool:
    try:
        validate_email(text)
    except ValidationError:
        return False
    return True


def _merged(known: Invited, again: Invited) -> Invited:
    if known.number and again.number and known.number.casefold() != again.number.casefold():
        raise QuestionnaireError(
            gettext(
                "Lines %(first)s and %(second)s give %(email)s two student numbers, %(number)s and "
                "%(other)s. Nobody was added."
            )
            % {
                "first": known.line,
                "second": again.line,
                "email": known.email,
                "number": known.number,
                "other": again.number,
            },
            "people",
        )
    return replace(known, number=known.number or again.number, name=known.name or again.name)
