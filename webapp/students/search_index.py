"""The index by which a search of all cohorts reads only those that can hold the person.

The names of 200 cohorts are encrypted half a million times over: reading all of them takes
seconds. Of each cohort the index keeps 4-byte keyed digests: of the first letters of every word of
a name, of every number and of every e-mail. It never misses a student whom
:class:`webapp.cohorts.naming.Search` finds; where it names a cohort in vain, the search looks there
and finds nobody.
"""

import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
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


def may_hold(cohort: Cohort, wanted: Search) -> bool:
    """Return False if the cohort holds nobody whom the text means by name, number or e-mail."""
    digests = _digests_of(cohort)
    whole = [_digest("=", wanted.whole)]
    words = [_digest("~", word[:PREFIX]) for word in wanted.words]
    return _has_all(digests, whole) or (bool(words) and _has_all(digests, words))


def forget_indexes() -> None:
    """Delete the indexes that this process keeps; call it when a cohort is purged."""
    _read.cache_clear()


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
    found = _read(cohort.pk, cohort.revision, _key_name())
    if found is None:
        _write(cohort)
        _read.cache_clear()
        found = _read(cohort.pk, cohort.revision, _key_name())
    return np.zeros(0, dtype="<u4") if found is None else found


@lru_cache(maxsize=KEPT)
def _read(cohort: UUID, revision: int, key: str) -> NDArray[np.uint32] | None:
    rows = SearchIndex.objects.filter(cohort=cohort, revision=revision, key=key)
    kept = rows.values_list("digests", flat=True).first()
    return None if kept is None else np.frombuffer(bytes(kept), dtype="<u4")


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
