"""The file of a model's weights, safe in any spreadsheet; it leaves one audit line."""

from collections.abc import Iterator
from typing import Any

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.matching.models import LearnedModel
from webapp.tabular.tables_out import as_csv


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
