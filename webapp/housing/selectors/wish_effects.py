"""Strengths of wishes in words, and how many one-sided requests each would honour, estimated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from engine.rooms.wish_effects import WishEffect, estimate_wish_effects
from webapp.cohorts.models import Cohort
from webapp.common.formats import per_cent
from webapp.housing.models import Placement
from webapp.housing.rules import (
    CHOICE_STRENGTHS,
    MUST,
    SUITE_STRENGTHS,
    WISH_STRENGTHS,
    PlacementRules,
)
from webapp.housing.scores import Scores
from webapp.housing.selectors.wishes import CohortWishes
from webapp.matching.models import LearnedModel
from webapp.translation.lazy import gettext_lazy

MOST_STUDENTS = 2_500  # of an estimate; a larger cohort is estimated from a random part
BEFORE = gettext_lazy("The effect of each strength is estimated in a moment.")
NO_REQUESTS = gettext_lazy("Nobody made a one-sided request.")
NO_ESTIMATE = gettext_lazy(
    "There is no estimate, since the rules pair nobody up or the answers cannot be scored."
)
ESTIMATED = gettext_lazy(
    "Estimated for rooms of two. The cost is a share of what matching gains over rooms "
    "drawn at random."
)


@dataclass(frozen=True, slots=True)
class Strength:
    """One choice: its value in the unit of the scores, its words, and its effect in words."""

    value: float
    label: str
    is_chosen: bool
    effect: str = ""


def strengths_context(rules: PlacementRules, effects_query: str | None) -> dict[str, Any]:
    """Return the context of the fields about strengths.

    ``effects_query`` are parameters of the address that estimates effects, for fields that are not
    on the page; None: nothing is estimated.
    """
    return {
        "strengths": wish_strengths(rules.wish),
        "choice_strengths": _strengths(CHOICE_STRENGTHS, rules.preference),
        "suite_strengths": _strengths(SUITE_STRENGTHS, rules.suite),
        "effects_query": effects_query,
        "effects_sentence": BEFORE if effects_query is not None else "",
    }


def _strengths(words: Sequence[tuple[float, str]], chosen: float) -> list[Strength]:
    """Return the strengths to choose from; the chosen one is added if it has no name."""
    named = dict(words)
    return [
        Strength(
            value,
            named.get(value, _("As set: %(value)s") % {"value": f"{value:g}"}),
            value == chosen,
        )
        for value in sorted({*named, chosen})
    ]


def wish_strengths(
    chosen: float, effects: Sequence[WishEffect] = (), n_requests: int = 0
) -> list[Strength]:
    """Return the strengths to choose from, with their effects if these are known."""
    named = dict(WISH_STRENGTHS)
    values = sorted({*named, chosen})
    effect_of = {
        effect.value: _("about %(honoured)s of %(n_requests)s honoured, costs %(cost_share)s")
        % {
            "honoured": f"{effect.n_honoured:,}",
            "n_requests": f"{n_requests:,}",
            "cost_share": per_cent(effect.cost_share),
        }
        for effect in effects
    }
    return [
        Strength(
            value,
            named.get(value, _("As set: %(value)s") % {"value": f"{value:g}"}),
            value == chosen,
            effect_of.get(value, ""),
        )
        for value in values
    ]


def estimated_strengths(
    cohort: Cohort, model: LearnedModel, rules: PlacementRules
) -> tuple[list[Strength], str]:
    """Return the strengths with their estimated effects, and a sentence about the estimate."""
    requests = CohortWishes(cohort.pk).requests
    if not requests.one_sided:
        return wish_strengths(rules.wish), NO_REQUESTS
    scores = Scores(Placement(cohort=cohort, model=model))
    part = _part(len(scores.position), [scores.position[n] for p in requests.one_sided for n in p])
    place = {int(position): k for k, position in enumerate(part)}
    survey = scores.survey.take(part)
    table = scores.model.scores(survey)
    for column in rules.same:
        answers = np.array(survey.attributes[column])
        table[answers[:, np.newaxis] != answers] = -np.inf
    if rules.mutual == MUST:
        _bind(table, [tuple(place.get(scores.position[n], -1) for n in p) for p in requests.mutual])
    wishes = [[place[scores.position[n]] for n in pair] for pair in requests.one_sided]
    values = sorted({*dict(WISH_STRENGTHS), rules.wish})
    effects = estimate_wish_effects(table, np.array(wishes, dtype=np.int64), values)
    if not any(effect.n_honoured for effect in effects) and not np.isfinite(table).any():
        return wish_strengths(rules.wish), NO_ESTIMATE
    return wish_strengths(rules.wish, effects, len(wishes)), ESTIMATED


def _part(n: int, named: Sequence[int]) -> NDArray[np.int64]:
    """Return the positions that an estimate uses: everybody named, and others up to a limit."""
    kept = np.unique(np.array(named, dtype=np.int64))
    others = np.setdiff1d(np.arange(n), kept)
    n_others = max(0, min(len(others), MOST_STUDENTS - len(kept)))
    drawn = np.random.default_rng(0).choice(others, n_others, replace=False)
    return np.sort(np.concatenate([kept, drawn]))


def _bind(table: NDArray[np.float64], pairs: Sequence[tuple[int, ...]]) -> None:
    """Leave students of a must only each other; somebody outside the part stays alone in it."""
    for a, b in pairs:
        score = table[a, b] if a >= 0 and b >= 0 else -np.inf
        for one in (a, b):
            if one >= 0:
                table[one, :] = table[:, one] = -np.inf
        if np.isfinite(score):
            table[a, b] = table[b, a] = score
