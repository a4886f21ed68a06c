"""Personal columns, which name the person or others: never questions, whatever their answers."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from engine.tabular.facts import ColumnFacts
from engine.tabular.scales import declines_to_answer
from engine.tabular.text import fold_answer, title_words

_TITLE = re.compile(
    r"(?:(?:what is|what's|please (?:enter|type|give|state))? ?(?:your |the )?)?"
    r"(?:(?:full|first|last|family|given|middle|preferred|pref|legal|official|student(?:'s)?|stu|"
    r"stdnt|spriden|your|chosen|birth|maiden|display|user|f|l|parent(?:'s)?|guardian(?:'s)?|"
    r"emergency contact|contact|resident|person|applicant)[ _-]?)*"
    r"(?:sur|fore|nick|user|first|last|full|f|l)?[ _-]?(?:names?|nm)"
    r"(?: ?\(.*\)| and (?:sur|last |family )?name| ?, ?first(?: name)?| of (?:the )?(?:student|"
    r"applicant|resident)| 1| 2)?"
    r"|(?:(?:student|stu|entry|legal|person) )?name,? "
    r"(?:first|last|given|family|full|preferred|pref|legal)"
    r"|(?:(?:ihr|dein)e? )?(?:vor|nach|familien|ruf|spitz)name[n]?|vor- und (?:nach|zu)name|"
    r"name, vorname"
    r"|(?:tu |su )?nombres?(?: completo| y apellidos?| de pila| preferido| social| legal)?"
    r"(?: ?\(.*\))?|(?:primer |"
    r"segundo )?apellidos?(?: y nombres?)?"
    r"|(?:votre )?(?:nom|prénoms?|prenom)(?: complet| de famille| et prénom| d'usage| préféré)?"
    r"(?: ?\(.*\))?|"
    r"prénom et nom"
    r"|nome(?: completo| e cognome)?|cognome|sobrenome|imię|nazwisko|imię i nazwisko|naam|"
    r"achternaam|voornaam|"
    r"namn|förnamn|efternamn|navn|fornavn|etternavn|nimi|etunimi|sukunimi|nume|prenume|név|"
    r"vezetéknév|keresztnév|jméno|příjmení|ime|prezime|ad|adı|soyad|soyadı|ad soyad|isim|"
    r"имя|фамилия|отчество|фио|ім'я|прізвище|όνομα|επώνυμο|ονοματεπώνυμο|שם|שם מלא|الاسم|اسم|"
    r"姓名|名字|姓|名|氏名|お?名前|이름|성명|성함|initials"
    r"|goes by|(?:how|what) (?:should|may|can) we call you|wie (?:heißt|heisst) (?:du|ihr|sie)|"
    r"¿?c[oó]mo te llamas|comment t'appelles-tu|comment vous appelez-vous|come ti chiami"
    r"|(?:what )?(?:first |nick)?names? (?:do |that |would )?you (?:like to |want to )?"
    r"(?:go by|be called|use|prefer|like|want)(?: to be called)?(?: ?\(.*\))?"
    r"|what should we call you|preferred name.{0,40}|emergency contact(?: name)?",
    re.IGNORECASE,
)
_NAME_TITLE_OF_WORDS = re.compile(
    r"(?:(?:student|stu|legal|official|pref|preferred) )?(?:first|last|given|family)|preferred|"
    r"who(?: are you)?|student|resident|applicant|participant|person",
    re.IGNORECASE,
)
_PRONOUN_TITLE = re.compile(
    r"(?:(?:what are |please (?:give|enter|state) )?(?:your |the )?)?"
    r"(?:personal |preferred |gender |student(?:'s)? )*pronouns?(?: ?\(.*\))?"
    r"|(?:which|what) pronouns do you (?:use|go by|prefer)|pronomen|pronombres?|pronoms?",
    re.IGNORECASE,
)
_PRONOUN_WORD = (
    r"(?:she|he|they|xe|ze|zie|it|her|hers|him|his|them|theirs|xem|hir|zir|sie|er|elle|él|ella|il)"
)
_PRONOUN_CELL = re.compile(rf"{_PRONOUN_WORD}(?: ?(?:/|,|and|or) ?{_PRONOUN_WORD})+", re.IGNORECASE)
_OWNER = (
    r"(?:(?:your|student(?:'s)?|parent(?:'s)?|guardian(?:'s)?|emergency contact(?:'s)?|contact|"
    r"university|school|college|campus|personal|preferred|primary|home|local|work) )*"
)
_E_MAIL_TITLE = re.compile(
    rf"(?:what is )?{_OWNER}e-?mails?(?: ?(?:address|addresses|adresse|id))?(?: ?\(.*\))?"
    r"|correo(?: electr[oó]nico)?|courriel|adresse (?:e-?)?mail",
    re.IGNORECASE,
)
_PHONE_TITLE = re.compile(
    rf"(?:what is )?{_OWNER}(?:(?:cell|mobile|tele|home) ?)*(?:phone|mobile|cell|telephone|"
    r"telefon|handy|tel|tel[eé]fono|t[eé]l[eé]phone|portable)(?: ?(?:number|nummer|no|nr|#))?\.?"
    r"(?: ?\(.*\))?|(?:telefon|handy)nummer",
    re.IGNORECASE,
)
_SAYS_NUMBER = re.compile(r"number|nummer|\bno\b|\bnr\b|#", re.IGNORECASE)
_PHONE_CELL = re.compile(r"\+?[\d(][\d\s().\-/]{2,24}\d")
_PRIVATE_TITLE = re.compile(
    rf"(?:what is )?{_OWNER}(?:date of birth|birth ?date|birth ?day|dob|geburtsdatum|"
    r"(?:(?:mailing|permanent|street|postal|billing) )*address|anschrift|dirección|"
    r"post ?code|zip(?: ?code)?|home ?town|social security(?: number)?|ssn|passport(?: number)?|"
    r"adresse|wohnadresse|domicilio|indirizzo|endereço|morada|adres|postleitzahl|plz|"
    r"fecha de nacimiento|date de naissance|data di nascita|"
    r"(?:(?:im|social media|twitter|instagram|discord) )?handle|discord tag|"
    r"instagram|snapchat|tiktok|linkedin|discord|whats ?app|telegram|wechat)(?: ?\(.*\))?",
    re.IGNORECASE,
)
NUMBER_TITLE = re.compile(
    r"\b(?:student|university|uni|campus|banner|person|peoplesoft|emplid|employee)\b.{0,12}"
    r"\b(?:id|no|nr|number|code|#)\b|\b(?:uin|netid|net id|sid|puid|unid|emplid|matric\w*)\b|"
    r"\bmatr\.? ?-? ?n(?:r|o|um)|学号|学籍番号|학번|\bcarn[eé]t\b|\blegajo\b|"
    r"n[°º] ?(?:étudiant|alumno)|"
    r"matrikel|matrícula|matricula|kennung|n[uú]mero de (?:estudiante|alumno)|numéro étudiant|"
    r"^student(?:[ _-]?(?:id|no|nr|number))?$|student_?id|studentid",
    re.I,
)
# Words beside a name that mean no person: a place of living, a subject, an origin.
_THING = re.compile(
    r"\b(?:hall|building|room|house|dorm\w*|residence|campus|school|college|university|course|program\w*|"
    r"team|club|band|brand|pet|street|city|country|department|file|organi[sz]ation|company)\b", re.I
)  # fmt: skip
_OTHERS = re.compile(
    r"room ?mate|mitbewohner|zimmerpartner|compañer[oa]|coloc|live with|sha(?:re|ring) (?:a |"
    r"my |the )?room|"
    r"request(?:ed)?\b|wunschpartner|solicit|friend.{0,20}(?:name|e-?mail|id)\b", re.I
)  # fmt: skip
# Titles that ask with whom somebody must not live, as title_words writes them.
_APART = re.compile(
    r"(?:\b(?:not|never)|n['’]t) (?:to |ever |want |wish |like |prefer |be |willing |as |an? )*"
    r"(?:live|room|place|pair|share|house|assign|match|put|with\b|together|compatible)"
    r"|\bwh(?:o|om) (?:do|would) you (?:not|never) want|\brather not\b"
    r"|\bavoid|\bkeep .{0,20}\b(?:apart|away)|\bseparat\w+ (?:from|request)|\bno[- ]contact\b"
    r"|\bconflicts? with\b|\bincompatible\b|\bunwanted\b|\bexclu(?:de|sion)"
    r"|\bnicht (?:mit|zusammen)|\bno (?:quier|dese|me gustar)\w*|\bne \w+ .{0,20}\bpas\b",
    re.I,
)
_NOBODY = frozenset({
    "no", "none", "nobody", "no one", "no preference", "anyone", "anybody", "random", "nein",
    "niemand", "keine", "egal", "nadie", "ninguno", "da igual", "personne", "aucun", "peu importe",
})  # fmt: skip
_HANDLE = re.compile(r"@[\w.]{2,40}")
_E_MAIL = re.compile(r"[^\s@,;]+@[^\s@,;]+\.[^\s@,;]+")
_PART = r"[^\W\d_](?:[^\W\d_]|['’.\-])*"
_CAPITALS = re.compile(r"[A-ZÀ-ÖØ-Þ][\w'’.\-]+(?:,? [A-ZÀ-ÖØ-Þ][\w'’.\-]+)+")
_FULL_NAME = re.compile(rf"{_PART},? {_PART}(?: {_PART}){{0,4}}|{_PART}, {_PART}")
_SMALL_WORD = re.compile(r"\b(?:the|a|an|and|or|of|to|in|is|are|my|i|you|not|no|very|with)\b", re.I)
_MIN_DIFFERENT = 0.5
_SHARE = 0.8
_LONGEST_TITLE = 30  # letters; a longer one that names a number is a question
_SMALL_FILE = 5  # rows; with fewer, full names that all differ are no answers


class Personal(NamedTuple):
    """Reason why a column is personal."""

    reason: str


NAMES = Personal("It holds names of people.")
E_MAILS = Personal("It holds e-mails.")
HANDLES = Personal("It holds names of accounts.")
OTHERS = Personal("It names other people.")
PRONOUNS = Personal("It holds pronouns of people.")
PHONES = Personal("It holds telephone numbers.")
NUMBERS = Personal("It holds numbers of people.")
PRIVATE = Personal("It may identify people.")


def personal_kinds(facts: Sequence[ColumnFacts], person: int | None) -> dict[int, Personal | None]:
    """Return {column: the reason why it is personal, or None} of a survey.

    Columns of the survey program and the column of ids, ``person``, are left out. Its people may
    name each other by their ids and e-mails.
    """
    people: set[str] = set()
    if person is not None:
        known = (one for one in facts if one.index == person or are_e_mails(one.answers))
        people.update(*(one.answers for one in known))
    return {
        one.index: personal_kind(one.name, one.wording, one.answers, people)
        for one in facts
        if one.own is None and one.index != person
    }


def personal_kind(
    title: str, wording: str, answers: Mapping[str, int], people: Container[str] = ()
) -> Personal | None:
    """Return the reason why a column is personal; None for all others.

    Parameters
    ----------
    title, wording : the column's title, and the full text of its question.
    answers : {cell: rows}, blanks not counted.
    people : ids and e-mails of the file, which a column of requested roommates names.
    """
    by_number = NUMBERS if is_number_title(title) else None
    if not answers:
        return by_number
    rows, different = sum(answers.values()), len(answers)
    enough = _SHARE * different
    named = f"{title} {wording}"
    if names_others(named):
        named_people = [cell for cell in answers if not is_nobody(cell)]
        hits = sum(cell in people or names_a_person(cell) for cell in named_people)
        if hits and hits >= 0.5 * len(named_people):
            return OTHERS
    if are_e_mails(answers):
        return E_MAILS
    if sum(_HANDLE.fullmatch(cell) is not None for cell in answers) >= enough and (
        different >= _MIN_DIFFERENT * rows
    ):
        return HANDLES
    by_title = _kind_by_title([text.strip(" .:?*") for text in (title, wording) if text], answers)
    if by_title is not None and (by_title != NAMES or not _THING.search(named)):
        return by_title
    if sum(_PRONOUN_CELL.fullmatch(cell) is not None for cell in answers) >= enough:
        return PRONOUNS
    is_varied = different >= (max(5, 0.7 * rows) if rows >= _SMALL_FILE else max(2, rows))
    full = sum(_is_full_name(cell) for cell in answers)
    if is_varied and full >= enough and not _THING.search(named):
        return NAMES
    return by_number


def is_number_title(title: str) -> bool:
    """Return True if a title names the number of a person."""
    return len(title) <= _LONGEST_TITLE and "?" not in title and bool(NUMBER_TITLE.search(title))


def _kind_by_title(titles: Iterable[str], answers: Mapping[str, int]) -> Personal | None:
    """Return the reason that the titles alone give, or with a glance at the cells; else None."""
    for title in titles:
        if _is_name_title(title):
            return NAMES
        if _PRONOUN_TITLE.fullmatch(title):
            return PRONOUNS
        if _E_MAIL_TITLE.fullmatch(title):
            return E_MAILS
        if _PHONE_TITLE.fullmatch(title) and _are_phones(title, answers):
            return PHONES
        if _PRIVATE_TITLE.fullmatch(title):
            return PRIVATE
        if _NAME_TITLE_OF_WORDS.fullmatch(title_words(title)) and _are_capitalised(answers):
            return NAMES
    return None


def _is_name_title(title: str) -> bool:
    """Return True if a title, or each of its parts such as "Family name / surname", is of names."""
    title = title.replace("’", "'")
    return any(
        all(_TITLE.fullmatch(part.strip(" .:?*¿")) for part in re.split(r"[/|]", text))
        for text in (title, title_words(title))
    )


def _are_phones(title: str, answers: Mapping[str, int]) -> bool:
    """Return True unless a title such as "Phone" heads answers in words or a short scale."""
    if _SAYS_NUMBER.search(title):
        return True
    return 2 * sum(_PHONE_CELL.fullmatch(cell) is not None for cell in answers) >= len(answers)


def _are_capitalised(answers: Mapping[str, int]) -> bool:
    """Return True if the cells are one to five capitalised words without small words between."""
    return all(
        re.fullmatch(rf"{_PART}(?:,? {_PART}){{0,4}}", cell) is not None
        and not cell[0].islower()
        and not _SMALL_WORD.search(cell)
        and not _THING.search(cell)
        for cell in answers
    )


def are_e_mails(answers: Mapping[str, int]) -> bool:
    """Return True if most of the different cells of a column are e-mails."""
    return bool(answers) and sum(map(is_e_mail, answers)) >= _SHARE * len(answers)


def is_e_mail(cell: str) -> bool:
    """Return True if a cell is one e-mail."""
    return _E_MAIL.fullmatch(cell) is not None


def looks_like_person(cell: str) -> bool:
    """Return True if a cell is an e-mail or a full name."""
    return is_e_mail(cell) or _is_full_name(cell)


def names_a_person(cell: str) -> bool:
    """Return True if a text has an e-mail or a full name in it: "Ben Lee from Elm, please"."""
    return (
        looks_like_person(cell)
        or _E_MAIL.search(cell) is not None
        or any(_is_full_name(found) for found in _CAPITALS.findall(cell))
    )


def is_nobody(text: str) -> bool:
    """Return True if an answer names no roommate: "no", "nobody", "no preference"."""
    plain = fold_answer(text).strip(" .!-")
    return not plain or plain in _NOBODY or declines_to_answer(text)


def names_others(said: str) -> bool:
    """Return True if a title or wording asks for another person: a roommate, a friend."""
    return _OTHERS.search(said) is not None or says_apart(said)


def names_a_thing(title: str) -> bool:
    """Return True if a title names no person: "Hall name", "Pet name"."""
    return _THING.search(title) is not None


def says_apart(said: str) -> bool:
    """Return True if a title asks with whom somebody must not live: "Do_not_place_with"."""
    return _APART.search(title_words(said)) is not None


def _is_full_name(cell: str) -> bool:
    """Return True if a cell is two to six words that each begin with a capital, as names do."""
    if len(cell) > 60 or not _FULL_NAME.fullmatch(cell) or _SMALL_WORD.search(cell):
        return False
    words = re.findall(r"[^\W\d_]{2,}", cell)
    capital = sum(not word[0].islower() for word in words)
    return len(words) >= 2 and capital >= 2 and capital >= len(words) - 3
