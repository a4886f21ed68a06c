"""Columns that say who the student of a row is: name, preferred name, pronouns and e-mail.

They are no questions and are never scored. Staff see them to find a student. Columns about other
people, such as a parent or an emergency contact, are not among them.
"""

import re
from collections.abc import Mapping, Sequence

from engine.tabular.choices import Role
from engine.tabular.facts import ColumnFacts
from engine.tabular.personal import E_MAILS, NAMES, PRONOUNS, Personal
from engine.tabular.text import fold_title, title_words

IDENTITY = (Role.NAME, Role.PREFERRED, Role.PRONOUNS, Role.EMAIL)
FAMILY = 2  # the place of a family name, after given and full names
KEPT = "It says who the student is. It is never scored."
_OF_ANOTHER = re.compile(
    r"parent|guardian|mother|father|emergency|contact|advis[eo]r|user ?name|display|initials|"
    r"maiden|middle",
    re.I,
)
_MAIL_OF_ANOTHER = re.compile(
    r"parent|guardian|\bmo(?:m|ther)|\bmum|\bdad\b|father|emergency|advis[eo]r|sponsor|billing|"
    r"spouse|next of kin|counsel|coach|eltern|mutter|vater|padre|madre|tutor|parents?\b",
    re.I,
)
_USUAL_MAIL = re.compile(
    r"university|\buni\b|school|campus|college|institution|official|primary|current|student", re.I
)
_OTHER_MAIL = re.compile(
    r"\bold\b|former|previous|alternat|second|other|backup|recovery|\b[23]$", re.I
)
_PREFERRED = re.compile(
    r"\bpref\b|preferred|chosen|nick|\bgo by\b|be called|call you|ruf(?:name)?\b|spitzname|"
    r"known as|d'usage|\byou (?:use|prefer|like|want)\b|^preferred$",
    re.I,
)
_FAMILY = re.compile(
    r"\blast\b|family|\bl ?(?:name|nm)\b|\bsur ?name|nachname|apellido|cognome|achternaam|"
    r"efternamn|etternavn|nazwisko|sobrenome|de famille|фамилия|прізвище|επώνυμο|soyad|příjmení|"
    r"prezime|sukunimi|vezetéknév|^姓$",
    re.I,
)
_GIVEN = re.compile(
    r"\bfirst\b|\bgiven\b|\bf ?(?:name|nm)\b|\bfore ?name|vorname|de pila|prénom|prenom|"
    r"voornaam|förnamn|fornavn|imię|^имя|όνομα$|jméno|etunimi|keresztnév|^名$",
    re.I,
)
_NAME = re.compile(r"\b(?:full )?names?\b|\bof\b", re.I)
# Columns that Qualtrics adds for people of a contact list.
_OF_THE_LIST = {
    "recipientfirstname": Role.NAME,
    "recipientlastname": Role.NAME,
    "recipientemail": Role.EMAIL,
}


def identity_roles(
    facts: Sequence[ColumnFacts], kinds: Mapping[int, Personal | None]
) -> dict[int, Role]:
    """Return {column: role} of the columns that make up the identity of a row's student.

    Parameters
    ----------
    kinds : {column: the reason why it is personal, or None}.
    """
    titles = {k: title_words(facts[k].title) for k in kinds}
    titles = {k: title for k, title in titles.items() if not is_of_another(title)}
    names = [k for k in titles if kinds[k] == NAMES]
    preferred = [k for k in names if is_preferred(titles[k])]
    parts = name_parts(facts, titles, [k for k in names if k not in preferred])
    roles = dict.fromkeys(parts, Role.NAME)
    for role, columns in (
        (Role.PREFERRED, preferred),
        (Role.PRONOUNS, [k for k in titles if kinds[k] == PRONOUNS]),
        (Role.EMAIL, _by_rank(titles, [k for k in titles if kinds[k] == E_MAILS])),
    ):
        roles |= dict.fromkeys(columns[:1], role)
    listed = {one.index: _OF_THE_LIST.get(fold_title(one.name)) for one in facts}
    taken = set(roles.values())
    for k, known in listed.items():
        if known is not None and known not in taken and facts[k].answers:
            roles[k] = known
    return roles


def is_of_another(title: str) -> bool:
    """Return True if a title means a parent or the like, or a further name of the student."""
    return _OF_ANOTHER.search(title) is not None


def is_preferred(title: str) -> bool:
    """Return True if a title means the name that a student prefers."""
    return _PREFERRED.search(title) is not None


def mail_rank(title: str) -> int:
    """Return how well a column of e-mails fits for mail to the student, by its title.

    3 for the e-mail that the university gave, 2 for any, 1 for an old or second one, 0 for that of
    another person, who must not read about roommates.
    """
    words = title_words(title)
    if _MAIL_OF_ANOTHER.search(words):
        return 0
    return 1 if _OTHER_MAIL.search(words) else 3 if _USUAL_MAIL.search(words) else 2


def _by_rank(titles: Mapping[int, str], columns: list[int]) -> list[int]:
    ranks = {k: mail_rank(titles[k]) for k in columns}
    return sorted((k for k in columns if ranks[k]), key=lambda k: -ranks[k])


def place_in_name(title: str) -> int:
    """Return the place of a part of a name by its title: 0 for the given name, 2 for the family."""
    title = title_words(title)
    return FAMILY if _FAMILY.search(title) else 0 if _GIVEN.search(title) else 1


def columns_by_person(titles: Mapping[int, str]) -> list[list[int]]:
    """Return columns of names by the person whom they name, in the order of a name.

    "Roommate 1 First Name" and "Roommate 1 Last Name" are one person, other columns one each.
    """
    words = {k: title_words(title) for k, title in titles.items()}
    said = {k: _NAME.sub("", _FAMILY.sub("", _GIVEN.sub("", text))) for k, text in words.items()}
    whose = {k: (text.split(), place_in_name(titles[k])) for k, text in said.items()}
    people: list[list[int]] = []
    for k, (about, place) in whose.items():
        halves = [other for other, one in whose.items() if one == (about, FAMILY - place)]
        if place == 1 or len(halves) != 1 or list(whose.values()).count((about, place)) > 1:
            people.append([k])
        elif place == 0:
            people.append([k, *halves])
    return people


def name_parts(
    facts: Sequence[ColumnFacts], titles: Mapping[int, str], names: list[int]
) -> list[int]:
    """Return the column of full names, or the first columns of given and family names.

    "Nom" beside "Prénom" and "Name" beside "Vorname" hold the family name, unless they hold the
    given name as well.
    """
    family = [k for k in names if _FAMILY.search(titles[k]) and not _GIVEN.search(titles[k])]
    given = [k for k in names if _GIVEN.search(titles[k]) and not _FAMILY.search(titles[k])]
    full = [k for k in names if k not in family and k not in given]
    if family and (given or full):
        return [(given or full)[0], family[0]]
    if given and full and not _holds(facts[full[0]], facts[given[0]]):
        return [given[0], full[0]]
    return (full or given or family)[:1]


def _holds(whole: ColumnFacts, part: ColumnFacts) -> bool:
    """Return True if most cells of a column contain the cell of another one in the same row."""
    pairs = [
        (a.casefold(), b.casefold())
        for a, b in zip(whole.cells, part.cells, strict=True)
        if a and b
    ]
    return 2 * sum(b in a for a, b in pairs) >= len(pairs)
