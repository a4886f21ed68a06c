"""Search for the people of a cohort in another file: by id, by e-mail, by name, or nearly."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from engine.tabular.ids import differing_by_zeros
from engine.tabular.text import fold_id, fold_name

_NEAR = 82.0  # of 100: similarity of names that share most of their letters
SURE_EDITS = 1  # letters by which a sure match may differ
_APART = 10.0  # lead over the next candidate that makes a match sure


class By(StrEnum):
    """Kind of name by which a column identifies people."""

    ID = "id"
    EMAIL = "e-mail"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Near:
    """Near match of a cell; ``is_sure`` if it is one letter apart and the only one.

    ``edits`` counts the differing letters. ``positions`` are all people with that name.
    """

    position: int
    said: str
    is_sure: bool
    edits: int
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class People:
    """Index of the people of a cohort by id, e-mail and name; ``labels`` are their ids, in order.

    A name that two people share finds neither of them: staff must decide.
    """

    labels: tuple[str, ...]
    emails: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    called: dict[By, dict[str, tuple[int, ...]]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Index every kind of name once."""
        mails = [label if "@" in label else "" for label in self.labels]
        for k, mail in enumerate(self.emails):
            mails[k] = mail or mails[k]
        self.called[By.ID] = _positions(fold_id(label).casefold() for label in self.labels)
        # Ids that differ in capitals only are two ids; each is found by its exact spelling.
        self.called[By.ID] |= {label: (k,) for k, label in enumerate(self.labels)}
        self.called[By.EMAIL] = _positions(fold_id(mail.strip()) for mail in mails)
        self.called[By.NAME] = _positions(map(fold_name, self.names))

    def __len__(self) -> int:
        """Return the number of people."""
        return len(self.labels)

    def all_by(self, kind: By, text: str) -> tuple[int, ...]:
        """Return everybody whom a cell of one kind may mean."""
        index = self.called[kind]
        if kind is By.NAME:
            return index.get(fold_name(text), ())
        if text in index:
            return index[text]
        return index.get(fold_id(text.strip()).casefold(), ())

    def by(self, kind: By, text: str) -> int | None:
        """Return the person that a cell of one kind means; None for nobody or for more than one."""
        found = self.all_by(kind, text)
        return found[0] if len(found) == 1 else None

    def find(self, text: str) -> int | None:
        """Return the person that a cell means by any kind; None for nobody."""
        return next(
            (found for kind in By if text and (found := self.by(kind, text)) is not None), None
        )

    def namesakes(self, text: str) -> tuple[int, ...]:
        """Return the two or more people whom a cell may mean alike; nobody if it matches one."""
        if not text or self.find(text) is not None:
            return ()
        return next((found for kind in By if (found := self.all_by(kind, text))), ())

    def near(self, text: str) -> Near | None:
        """Return the nearest match by name or e-mail; ids are never guessed."""
        kind = By.EMAIL if "@" in text else By.NAME
        index = self.called[kind]
        wanted = fold_id(text.strip()) if kind is By.EMAIL else fold_name(text)
        if not wanted or not index or wanted in index:
            return None
        try:  # comes with the extra "tables"; without it there are no near matches
            from rapidfuzz import fuzz, process
            from rapidfuzz.distance import OSA
        except ImportError:
            return None
        best = process.extract(wanted, index.keys(), scorer=fuzz.ratio, score_cutoff=_NEAR, limit=2)
        if not best:
            return None
        said, score, _ = best[0]
        positions = index[said]
        is_alone = len(positions) == 1 and (len(best) == 1 or score - best[1][1] >= _APART)
        edits = OSA.distance(wanted, said)
        is_sure = is_alone and edits <= SURE_EDITS and len(wanted) > 5
        shown = self.names[positions[0]] if kind is By.NAME else said
        return Near(positions[0], shown, is_sure, edits, positions)

    def differing_by_zeros(self, cells: Iterable[str]) -> dict[str, int]:
        """Return {cell: position} of ids that a spreadsheet wrote with other zeros: 00123, 123."""
        unknown = [cell for cell in cells if cell and self.find(cell) is None]
        found = differing_by_zeros(unknown, self.labels)
        return {cell: self.called[By.ID][label][0] for cell, label in found.items()}


def _positions(keys: Iterable[str]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for k, key in enumerate(keys):
        if key:
            found[key] = (*found.get(key, ()), k)
    return found


def match_columns(columns: Sequence[Sequence[str]], people: People) -> Mapping[By, list[int]]:
    """Return {kind: number of rows in which each column names one or several people}."""
    return {
        kind: [sum(bool(people.all_by(kind, cell)) for cell in cells if cell) for cells in columns]
        for kind in By
    }
