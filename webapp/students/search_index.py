"""The index by which a search of all cohorts reads only those that can hold the person.

The names of 200 cohorts are encrypted half a million times over: reading all of them takes
seconds. Of each cohort the index keeps 4-byte keyed digests: of the first letters of every word of
a name, of every number and of every e-mail. It never misses a student whom
:class:`webapp.cohorts.naming.Search` finds; where it names a cohort in vain, the search looks there
and finds nobody.
"""

import hashlib
from collections.abc import Iterable, Iterator
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from webapp.cohorts.models import Cohort
from webapp.cohorts.naming import Search, directory_of
from webapp.encryption.fields import search_key
from webapp.students.models import SearchIndex

PREFIX = 8  # letters of a word; a longer one is searched by its first
KEPT = 512  # indexes of cohorts that a process keeps, of about 80 kB each
_SIZE = 4  # bytes of a digest
# By cohort, its revision and the name of the key.
_kept: dict[tuple[UUID, int, str], NDArray[np.uint32]] = {}


def may_hold(cohort: Cohort, wanted: Search) -> bool:
    """Return False if the cohort holds nobody whom the text means by name, number or e-mail."""
    digests = _digests_of(cohort)
    whole = [_digest("=", wanted.whole)]
    words = [_digest("~", word[:PREFIX]) for word in wanted.words]
    return _has_all(digests, whole) or (bool(words) and _has_all(digests, words))


def read_indexes(cohorts: Iterable[Cohort]) -> None:
    """Read the stored indexes of cohorts that this process does not keep, with one query."""
    key = _key_name()
    missing = {one.pk: one.revision for one in cohorts if (one.pk, one.revision, key) not in _kept}
    if len(_kept) + len(missing) > KEPT:
        _kept.clear()
    rows = SearchIndex.objects.filter(cohort__in=list(missing)[:KEPT], key=key)
    for cohort, revision, digests in rows.values_list("cohort", "revision", "digests"):
        if missing[cohort] == revision:
            _kept[cohort, revision, key] = np.frombuffer(bytes(digests), dtype="<u4")


def forget_indexes() -> None:
    """Delete the indexes that this process keeps; call it when a cohort is purged."""
    _kept.clear()


def _has_all(digests: NDArray[np.uint32], wanted: Iterable[bytes]) -> bool:
    values = np.frombuffer(b"".join(wanted), dtype="<u4")
    places = np.minimum(np.searchsorted(digests, values), max(0, len(digests) - 1))
    return len(digests) > 0 and bool((digests[places] == values).all())


def _digest(kind: str, text: str) -> bytes:
    key = search_key()
    return hashlib.blake2b(f"{kind}{text}".encode(), digest_size=_SIZE, key=key).digest()


def _key_name() -> str:
    return hashlib.sha256(search_key()).hexdigest()[:16]


def _digests_of(cohort: Cohort) -> NDArray[np.uint32]:
    kept = (cohort.pk, cohort.revision, _key_name())
    if kept not in _kept:
        read_indexes([cohort])
    if kept not in _kept:
        _write(cohort)
        read_indexes([cohort])
    return _kept.get(kept, np.zeros(0, dtype="<u4"))


def _write(cohort: Cohort) -> None:
    texts = {text for words in directory_of(cohort).words for text in _searched(words[1])}
    digests = np.unique(np.frombuffer(b"".join(_digest(*text) for text in texts), dtype="<u4"))
    SearchIndex.objects.bulk_create(
        [
            SearchIndex(
                cohort=cohort, revision=cohort.revision, key=_key_name(), digests=digests.tobytes()
            )
        ],
        update_conflicts=True,
        unique_fields=["cohort"],
        update_fields=["revision", "key", "digests"],
    )


def _searched(folded: str) -> Iterator[tuple[str, str]]:
    """Yield what a search may look for in the folded words of one student."""
    name, preferred, own, email = folded.split("\n", 3)
    for word in f"{name} {preferred}".split():
        for length in range(1, min(PREFIX, len(word)) + 1):
            yield "~", word[:length]
    for whole in (own, email, email.split("@")[0]):
        if whole:
            yield "=", whole
