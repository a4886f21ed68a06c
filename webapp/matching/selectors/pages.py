"""Template context of a proposal's page, for the full page and for its fragments."""

from collections.abc import Mapping
from typing import Any

from webapp.accounts.models import User
from webapp.common.listing import light
from webapp.common.parameters import whole_number
from webapp.matching.conflicts import Conflict
from webapp.matching.models import PairState, Proposal
from webapp.matching.numbers import ProposalNumbers
from webapp.matching.selectors.cards import pair_card
from webapp.matching.selectors.models import learned_since
from webapp.matching.selectors.proposals import (
    APART,
    count_standing,
    forbidden_pairs,
    pair_counts,
    pair_table,
    pair_tabs,
)
from webapp.matching.services.proposals import proposal_conflicts


def proposal_context(
    proposal: Proposal, parameters: Mapping[str, str], user: User
) -> dict[str, Any]:
    """Return the context of a proposal's page for the parameters of its URL."""
    numbers = ProposalNumbers(proposal)
    conflicts = _conflicts(numbers)
    context: dict[str, Any] = {
        "proposal": proposal,
        "is_running": _is_running(proposal),
        "conflicts": conflicts,
        "questions": [q["name"] for q in proposal.model.questions],
        "kept": _kept(parameters),
        "rule_locks": light(proposal.locks.all(), "first", "second"),
        "successor": learned_since(proposal.model),
    }
    if not proposal.is_computed:
        return context
    counts = pair_counts(proposal)
    forbidden = dict(forbidden_pairs(proposal).values_list("pk", "state"))
    table = pair_table(proposal, parameters, conflicts, user)
    rows = list(table.page.object_list)
    keys = [row.pk for row in rows]
    n_open = counts.of(PairState.OPEN)
    context |= {
        "table": table,
        "tabs": pair_tabs(proposal, counts, table.tab),
        "decided": counts.total - n_open,
        "total": counts.total,
        "n_open": n_open,
        "forbidden": forbidden,
        "n_forbidden": len(forbidden),
        "n_unpaired": proposal.cohort.n_students - 2 * count_standing(counts, forbidden.values()),
        "total_score": counts.total_score,
        "rows": rows,
        "is_apart_tab": table.tab in APART,
    }
    return context | _card(numbers, parameters, keys)


def drawer_context(proposal: Proposal, parameters: Mapping[str, str], user: User) -> dict[str, Any]:
    """Return the context of the card alone, for a click on a row of the page."""
    numbers = ProposalNumbers(proposal)
    table = pair_table(proposal, parameters, _conflicts(numbers), user)
    keys = [pair.pk for pair in table.page.object_list]
    context = {"proposal": proposal, "kept": _kept(parameters)}
    return context | _card(numbers, parameters, keys)


def _is_running(proposal: Proposal) -> bool:
    return proposal.job is not None and proposal.job.is_active


def _conflicts(numbers: ProposalNumbers) -> list[Conflict]:
    proposal = numbers.proposal
    return [] if _is_running(proposal) else proposal_conflicts(proposal, numbers)


def _card(
    numbers: ProposalNumbers, parameters: Mapping[str, str], keys: list[int]
) -> dict[str, Any]:
    """Return the opened pair's card and its neighbours in the table; nothing if none is open."""
    opened = whole_number(parameters.get("pair", ""))
    pair = None if opened is None else numbers.proposal.pairs.filter(pk=opened).first()
    if pair is None:
        return {}
    card = {"card": pair_card(numbers, pair), "opened": pair.pk}
    return card | _neighbours(keys, pair.pk)


def _neighbours(keys: list[int], key: int) -> dict[str, int | None]:
    """Return the pairs before and after a pair in the order of the table."""
    if key not in keys:
        return {"previous_pair": None, "next_pair": keys[0] if keys else None}
    k = keys.index(key)
    return {
        "previous_pair": keys[k - 1] if k > 0 else None,
        "next_pair": keys[k + 1] if k + 1 < len(keys) else None,
    }


def _kept(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that every link and form of the page passes on."""
    names = ("tab", "sort", "q", "against", "page")
    return {name: parameters[name] for name in names if parameters.get(name)}
