"""Find the people of a cohort in another file: by id, by e-mail, or by name, and nearly so."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

_NEAR = 82.0  # of 100: names that share most of their letters
SURE_EDITS = 1  # letters by which a sure match may differ
# Letters that are no plain letter with an accent, as a passport writes them.
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i", "þ": "th"})
_APART = 10.0  # by how much the next candidate must be worse for a match to be sure


class By(StrEnum):
    """What a column tells people by."""

    ID = "id"
    EMAIL = "e-mail"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Near:
    """Somebody whom a cell may mean; ``is_sure`` where they are one letter apart and alone.

    ``edits`` are the letters by which the cell differs.
    """

    position: int
    said: str
    is_sure: bool
    edits: int


@dataclass(frozen=True, slots=True)
class People:
    """The people of a cohort by what they are known by; ``labels`` are their ids, in order.

    What two people share, such as a name, finds neither of them.
    """

    labels: tuple[str, ...]
    emails: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    found: dict[By, dict[str, int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Index every kind of name once."""
        exact = {label: k for k, label in enumerate(self.labels)}
        folded = _unique(label.casefold() for label in self.labels)
        self.found[By.ID] = {**folded, **exact}
        mails = [label if "@" in label else "" for label in self.labels]
        for k, mail in enumerate(self.emails):
            mails[k] = mail or mails[k]
        self.found[By.EMAIL] = _unique(mail.strip().casefold() for mail in mails)
        self.found[By.NAME] = _unique(map(fold_name, self.names))

    def __len__(self) -> int:
        """Number of people."""
        return len(self.labels)

    def by(self, kind: By, text: str) -> int | None:
        """Return whom a cell of one kind means; None for nobody, or for more than one."""
        index = self.found[kind]
        if kind is By.ID and text in index:
            return index[text]
        return index.get(fold_name(text) if kind is By.NAME else text.strip().casefold())

    def find(self, text: str) -> int | None:
        """Return whom a cell means by any kind; None for nobody."""
        return next(
            (found for kind in By if text and (found := self.by(kind, text)) is not None), None
        )

    def near(self, text: str) -> Near | None:
        """Return who is most nearly called so, by name or e-mail; ids are never guessed."""
        kind = By.EMAIL if "@" in text else By.NAME
        index = self.found[kind]
        wanted = text.strip().casefold() if kind is By.EMAIL else fold_name(text)
        if not wanted or not index:
            return None
        best = process.extract(wanted, index.keys(), scorer=fuzz.ratio, score_cutoff=_NEAR, limit=2)
        if not best:
            return None
        said, score, _ = best[0]
        is_alone = len(best) == 1 or score - best[1][1] >= _APART
        edits = OSA.distance(wanted, said)
        is_sure = is_alone and edits <= SURE_EDITS and len(wanted) > 5
        position = index[said]
        shown = self.names[position] if kind is By.NAME else said
        return Near(position, shown, is_sure, edits)


def fold_name(name: str) -> str:
    """Return a name without accents, capitals, order and marks: "Müller, Zoë" is "muller zoe"."""
    letters = name.casefold()
    if not letters.isascii():
        plain = unicodedata.normalize("NFKD", letters.translate(_LETTERS))
        letters = "".join(c for c in plain if not unicodedata.combining(c))
    return " ".join(sorted(re.findall(r"[^\W_]+", letters)))


def _unique(keys: Iterable[str]) -> dict[str, int]:
    listed = list(keys)
    times = Counter(listed)
    return {key: k for k, key in enumerate(listed) if key and times[key] == 1}


def match_columns(columns: Sequence[Sequence[str]], people: People) -> Mapping[By, list[int]]:
    """Return {kind: rows in which each column names somebody by it}."""
    return {
        kind: [
            sum(people.by(kind, cell) is not None for cell in cells if cell) for cells in columns
        ]
        for kind in By
    }
