"""Exports of pairs for the housing system, safe in any spreadsheet; each leaves one audit line."""

from collections.abc import Iterator
from typing import Any

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.naming import check_may_name
from webapp.housing.models import PairState, Placement
from webapp.housing.pairs.table import standing_pairs
from webapp.tabular.tables_out import table_file

_HEADER = (
    "student_a",
    "student_b",
    "on_screen_a",
    "on_screen_b",
    "score_nats",
    "probability",
    "decision",
    "decided_by",
)
# Added at the end for those who see names, so that the other columns stay where they are.
_IDENTITY = ("name", "preferred", "email")


def pair_export_rows(
    placement: Placement, *, decided_only: bool = False, with_names: bool = False
) -> Iterator[tuple[Any, ...]]:
    """Yield one row per standing pair, in the order of the students."""
    added = _IDENTITY if with_names else ()
    pairs = standing_pairs(placement).select_related("first", "second")
    if decided_only:
        pairs = pairs.exclude(state=PairState.OPEN)
    for pair in pairs.order_by("first_number"):
        yield (
            pair.first.original_id,
            pair.second.original_id,
            pair.first.label,
            pair.second.label,
            round(pair.score, 4),
            round(pair.probability, 6),
            PairState(pair.state).label,
            pair.decided_by,
            *(getattr(student, name) for name in added for student in (pair.first, pair.second)),
        )


def pairs_export(
    *,
    user: User,
    placement: Placement,
    file_format: str,
    decided_only: bool = False,
    with_names: bool = False,
    is_taken: bool = True,
) -> tuple[bytes, str]:
    """Return the pairs of a placement as a file with its content type, and write the audit line.

    Parameters
    ----------
    file_format : "csv" or "xlsx"
        Cells that a spreadsheet could read as a formula are defused in CSV, and are text in XLSX.
    with_names : bool
        Whether names, preferred names and e-mails of both students follow.
    is_taken : bool
        False if nothing of the file is sent (HEAD): that leaves no line.

    Raises
    ------
    NamesRefusedError
        If the file would hold names that this person does not see now.
    """
    if with_names:
        check_may_name(user)
    rows = list(pair_export_rows(placement, decided_only=decided_only, with_names=with_names))
    header = [*_HEADER, *(f"{name}_{k}" for name in _IDENTITY if with_names for k in "ab")]
    data, kind = table_file("Pairs", [header, *rows], file_format)
    if is_taken:
        audit(
            user,
            "exported",
            placement,
            pairs=len(rows),
            format=file_format,
            decided_only=decided_only,
            original_ids=True,
            with_names=with_names,
        )
    return data, kind
