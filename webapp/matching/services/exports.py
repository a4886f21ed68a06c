"""Exports for the housing system, safe in any spreadsheet; each leaves one audit line."""

from collections.abc import Iterator
from typing import Any

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.naming import check_may_name
from webapp.matching.models import LearnedModel, PairState, Proposal
from webapp.matching.selectors.proposals import standing_pairs
from webapp.tabular.tables_out import as_csv, table_file

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


def proposal_rows(
    proposal: Proposal, *, decided_only: bool = False, with_names: bool = False
) -> Iterator[tuple[Any, ...]]:
    """Yield one row per standing pair, in the order of the students."""
    added = _IDENTITY if with_names else ()
    pairs = standing_pairs(proposal).select_related("first", "second")
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


def proposal_export(
    *,
    user: User,
    proposal: Proposal,
    file_format: str,
    decided_only: bool = False,
    with_names: bool = False,
    is_taken: bool = True,
) -> tuple[bytes, str]:
    """Return the pairs of a proposal as a file with its content type, and write the audit line.

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
    rows = list(proposal_rows(proposal, decided_only=decided_only, with_names=with_names))
    header = [*_HEADER, *(f"{name}_{k}" for name in _IDENTITY if with_names for k in "ab")]
    data, kind = table_file("Pairs", [header, *rows], file_format)
    if is_taken:
        audit(
            user,
            "exported",
            proposal,
            pairs=len(rows),
            format=file_format,
            decided_only=decided_only,
            original_ids=True,
            with_names=with_names,
        )
    return data, kind


def weights_export(*, user: User, model: LearnedModel) -> bytes:
    """Return the weights of a model as CSV, one row per question, and write the audit line."""
    data = as_csv(_weights_rows(model.weights))
    audit(user, "exported", model, questions=len(model.weights), format="csv")
    return data


def _weights_rows(rows: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    ends = [(of, end) for of in ("interval", "drift") for end in ("value", "low", "high")]
    ends = [(of, end) for of, end in ends if any(of in row for row in rows)]
    names = ("question", "kind", "effect_nats", "odds", "importance", "distance_weight", "in_words")
    yield (*names, *(f"{of}_{end}" for of, end in ends))
    for row in rows:
        yield (
            row["question"],
            row["kind"],
            round(row["effect"], 6),
            round(row["odds"], 6),
            round(row["importance"], 6),
            round(row["distance_weight"], 6),
            f"{row['words']} {row['per']}".strip(),
            *(round(row[of][end], 6) if of in row else "" for of, end in ends),
        )
