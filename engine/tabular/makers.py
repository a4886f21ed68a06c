"""Survey programs, recognised by the header rows and the own columns of their files.

Qualtrics: a row of short names, a row of wordings, a row of {"ImportId": ...}; older and trimmed
exports have one or two of them. Google Forms: a timestamp, then wordings. Microsoft Forms: ID,
start, completion, e-mail, name, then wordings. SurveyMonkey: wordings, then the options below.
LimeSurvey: codes, wordings, or both ("seed. Seed"). REDCap: names of variables, its own among them,
or labels ("Record ID", "Complete?").
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.tabular.source import Line
from engine.tabular.text import fold_title

QUALTRICS = "Qualtrics"
GOOGLE = "Google Forms"
MICROSOFT = "Microsoft Forms"
SURVEYMONKEY = "SurveyMonkey"
LIMESURVEY = "LimeSurvey"
REDCAP = "REDCap"
SOME_PROGRAM = "the survey program"  # in sentences about a program that no rule knows
_SEARCHED = 15  # rows; a program's header is at the top, under a short cover at most
_IMPORT_ID = re.compile(r'\{\s*"+ImportId"+')


class Own(StrEnum):
    """Content of a column that the survey program adds by itself."""

    RESPONSE_ID = "response id"
    TIME = "time"
    E_MAIL = "e-mail"
    PERSON = "person"  # an id that the university gave to the program
    TICKET = "ticket"  # a code that the program gave to the person
    NAME = "name"
    STATUS = "status"
    FINISHED = "finished"
    EVENT = "event"  # the event or form of a person that a row belongs to
    OTHER = "other"


_QUALTRICS_OWN = {
    "startdate": Own.TIME, "enddate": Own.TIME, "recordeddate": Own.TIME,
    "status": Own.STATUS, "responsetype": Own.STATUS, "responseset": Own.OTHER,
    "ipaddress": Own.OTHER, "progress": Own.OTHER, "durationinseconds": Own.OTHER,
    "finished": Own.FINISHED, "responseid": Own.RESPONSE_ID,
    "recipientlastname": Own.NAME, "recipientfirstname": Own.NAME, "name": Own.NAME,
    "recipientemail": Own.E_MAIL, "emailaddress": Own.E_MAIL,
    "externalreference": Own.PERSON, "externaldatareference": Own.PERSON,
    "locationlatitude": Own.OTHER, "locationlongitude": Own.OTHER,
    "locationaccuracy": Own.OTHER,
    "distributionchannel": Own.OTHER, "userlanguage": Own.OTHER,
}  # fmt: skip
# The columns that only Qualtrics has; "Status" and "Name" alone prove nothing.
_QUALTRICS_MARKS = {
    "startdate", "enddate", "recordeddate", "ipaddress", "durationinseconds", "finished",
    "responseid", "recipientlastname", "recipientemail", "externalreference",
    "externaldatareference", "distributionchannel", "userlanguage", "responseset",
}  # fmt: skip
# "Q3_First Click" (timing), "Q5_DO_2" (order of display), Q_RelevantIDScore and the like.
_QUALTRICS_TECHNICAL = re.compile(
    r"^Q_\w+|_(?:First Click|Last Click|Page Submit|Click Count)$|_DO(?:_\w+)?$"
)
_TIMESTAMPS = {
    "timestamp", "zeitstempel", "marcatemporal", "horodateur", "carimbodedatahora",
    "informazionicronologiche", "tijdstempel", "tidsstampel", "tidsstempel", "aikaleima",
    "sygnaturaczasowa", "casovarazitko", "отметкавремени",
    "タイムスタンプ", "时间戳记",
}  # fmt: skip
_E_MAILS = {
    "email", "emailaddress", "username", "mail", "emailadresse", "correoelectronico",
    "direcciondecorreoelectronico", "nombredeusuario", "adresseemail", "adresseemailcourrier",
    "enderecodeemail", "indirizzoemail", "emailadres", "nutzername", "adressemail",
    "universityemail", "studentemail", "schoolemail", "campusemail", "eposta", "epost",
}  # fmt: skip
_MICROSOFT_TIMES = (
    {"starttime", "startzeit", "horadeinicio", "heurededebut", "oradiinizio", "begintijd",
     "horadeinicio1"},
    {"completiontime", "fertigstellungszeit", "horadefinalizacion", "heuredefin",
     "oradicompletamento", "voltooiingstijd", "horadeconclusao"},
)  # fmt: skip
_MICROSOFT_OWN = {
    "id": Own.RESPONSE_ID, "name": Own.NAME, "nombre": Own.NAME, "nom": Own.NAME, "nome": Own.NAME,
    "naam": Own.NAME,
    "lastmodifiedtime": Own.OTHER, "language": Own.OTHER, "sprache": Own.OTHER,
    "uhrzeitderletztenanderung": Own.OTHER, "horadelaultimamodificacion": Own.OTHER,
    "totalpoints": Own.OTHER, "quizfeedback": Own.OTHER,
}  # fmt: skip
_SURVEYMONKEY_OWN = {
    "respondentid": Own.RESPONSE_ID, "collectorid": Own.OTHER, "startdate": Own.TIME,
    "datecreated": Own.TIME, "datemodified": Own.TIME,
    "enddate": Own.TIME, "ipaddress": Own.OTHER, "emailaddress": Own.E_MAIL,
    "firstname": Own.NAME, "lastname": Own.NAME, "customdata1": Own.OTHER,
}  # fmt: skip
# A column is called by its code, its wording, or both: "submitdate. Date submitted".
_LIMESURVEY_OWN = {
    "id": Own.RESPONSE_ID, "responseid": Own.RESPONSE_ID, "token": Own.TICKET,
    "accesscode": Own.TICKET, "submitdate": Own.TIME, "datesubmitted": Own.TIME,
    "startdate": Own.TIME, "datestarted": Own.TIME, "datestamp": Own.TIME,
    "datelastaction": Own.TIME, "lastpage": Own.OTHER, "startlanguage": Own.OTHER,
    "seed": Own.OTHER, "ipaddr": Own.OTHER, "ipaddress": Own.OTHER, "refurl": Own.OTHER,
    "referrerurl": Own.OTHER, "firstname": Own.NAME, "lastname": Own.NAME, "email": Own.E_MAIL,
    "emailaddress": Own.E_MAIL,
}  # fmt: skip
_LIMESURVEY_MARKS = {"submitdate", "datesubmitted", "lastpage", "startlanguage", "seed"}
_REDCAP_OWN = {
    "record_id": Own.RESPONSE_ID, "redcap_survey_identifier": Own.PERSON,
    "redcap_event_name": Own.EVENT, "redcap_data_access_group": Own.OTHER,
    "redcap_repeat_instrument": Own.EVENT, "redcap_repeat_instance": Own.OTHER,
}  # fmt: skip
# The same with labels in place of names of variables.
_REDCAP_LABELS = {
    "Record ID": Own.RESPONSE_ID, "Survey Identifier": Own.PERSON, "Event Name": Own.EVENT,
    "Data Access Group": Own.OTHER, "Repeat Instrument": Own.EVENT, "Repeat Instance": Own.OTHER,
    "Survey Timestamp": Own.TIME,
}  # fmt: skip
_REDCAP_COMPLETE = re.compile(r"Complete\?(?: \(\d+\))?$")


@dataclass(frozen=True, slots=True)
class Found:
    """A survey program and the row numbers of its header rows; 0 for none."""

    maker: str
    header_row: int
    wording_row: int = 0
    extra_rows: tuple[int, ...] = ()


def is_import_id(cell: str) -> bool:
    """Return True if a cell belongs to Qualtrics' third header row: {"ImportId": ...}."""
    return _IMPORT_ID.match(cell) is not None


def recognise(lines: Sequence[Line]) -> Found | None:
    """Return the survey program of a sheet by its first rows; None if unknown."""
    top = lines[:_SEARCHED]
    for position, line in enumerate(top):
        found = _by_import_ids(top, position) or _by_header(line, lines[position + 1 :][:1])
        if found is not None:
            return found
    return None


def _by_import_ids(top: Sequence[Line], position: int) -> Found | None:
    """Recognise Qualtrics by its third header row; the two rows above are names and wordings."""
    line = top[position]
    marked = sum(map(is_import_id, line.cells))
    if position + 2 < len(top):  # look ahead, so that the first row is not judged alone
        later = top[position + 2]
        ahead = sum(map(is_import_id, later.cells))
        if ahead and 2 * ahead >= later.n_filled:
            return Found(QUALTRICS, line.number, top[position + 1].number, (later.number,))
    if position and marked and 2 * marked >= line.n_filled:
        return Found(QUALTRICS, top[position - 1].number, 0, (line.number,))
    return None


def _by_header(line: Line, below: Sequence[Line]) -> Found | None:
    names = [fold_title(cell) for cell in line.cells]
    following = [fold_title(cell) for cell in below[0].cells] if below else []
    if "respondentid" in names and {"collectorid", "startdate"} & set(names):
        options = below[0].number if below and not any(following[:2]) else 0
        return Found(SURVEYMONKEY, line.number, options)
    if len(_QUALTRICS_MARKS.intersection(names)) >= 3:
        return Found(QUALTRICS, line.number, _qualtrics_wordings(names, following, below))
    if names and names[0] in _TIMESTAMPS and line.n_filled >= 3:
        return Found(GOOGLE, line.number)
    if names[:1] == ["id"] and any(
        start in _MICROSOFT_TIMES[0] and end in _MICROSOFT_TIMES[1]
        for start, end in itertools.pairwise(names)
    ):
        return Found(MICROSOFT, line.number)
    if len(_LIMESURVEY_MARKS.intersection(map(_limesurvey_key, line.cells))) >= 2:
        return Found(LIMESURVEY, line.number)
    is_redcap = any(cell.startswith("redcap_") or cell == "record_id" for cell in line.cells)
    if is_redcap and any(cell.endswith("_complete") for cell in line.cells):
        return Found(REDCAP, line.number)
    labels = _REDCAP_LABELS.keys() & set(line.cells)
    is_complete = any(map(_REDCAP_COMPLETE.match, line.cells))
    if len(labels) + is_complete >= 2 and (is_complete or "Event Name" in labels):
        return Found(REDCAP, line.number)
    return None


def _limesurvey_key(name: str) -> str:
    return fold_title(name.partition(". ")[0])


def _qualtrics_wordings(names: list[str], following: list[str], below: Sequence[Line]) -> int:
    """Return the row of wordings if only the row of ImportIds was removed; 0 otherwise."""
    pairs = [
        (name, said)
        for name, said in zip(names, following, strict=False)
        if name in _QUALTRICS_OWN and said
    ]
    same = sum(said in _QUALTRICS_OWN for _, said in pairs)
    return below[0].number if below and pairs and 2 * same > len(pairs) else 0


def own_column(maker: str, name: str, position: int) -> Own | None:
    """Return the content of a survey program's own column; None for a question of the survey."""
    if maker == LIMESURVEY:
        return _LIMESURVEY_OWN.get(_limesurvey_key(name))
    key = fold_title(name)
    if maker == QUALTRICS:
        if _QUALTRICS_TECHNICAL.search(name):
            return Own.OTHER
        return _QUALTRICS_OWN.get(key)
    if maker == GOOGLE:
        if position == 0:
            return Own.TIME
        return Own.E_MAIL if key in _E_MAILS else Own.OTHER if key == "score" else None
    if maker == MICROSOFT:
        if any(key in times for times in _MICROSOFT_TIMES):
            return Own.TIME
        if re.match(r"(?:Points|Feedback) - ", name):
            return Own.OTHER
        if position < 6 and key in _E_MAILS:
            return Own.E_MAIL
        return _MICROSOFT_OWN.get(key) if position < 8 or key != "name" else None
    if maker == REDCAP:
        if name.endswith(("_complete", "_timestamp")):
            return Own.TIME if name.endswith("_timestamp") else Own.FINISHED
        if _REDCAP_COMPLETE.match(name):
            return Own.FINISHED
        plain = re.sub(r" \(\d+\)$", "", name)  # one for every form of the file
        return _REDCAP_OWN.get(name) or _REDCAP_LABELS.get(plain)
    return _SURVEYMONKEY_OWN.get(key) if maker == SURVEYMONKEY else None


def is_e_mail_name(name: str) -> bool:
    """Return True if the name of a column means e-mail, in one of several languages."""
    return fold_title(name) in _E_MAILS or "email" in fold_title(name)
