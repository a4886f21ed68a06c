"""Mean score contribution of allowed partners per question, for all students at once.

This is the mean of ``explain_pair`` over a student's allowed partners, computed from counts of
answers within groups instead of pair by pair: O(n Q) for a cohort instead of O(n) for every pair.
"""

from dataclasses import dataclass

import numpy as np

from engine.core.arguments import FloatArray, IntArray, read_only
from engine.crf.rules import Rules
from engine.crf.survey import Survey
from engine.learning.roommates.model import RoommateModel


@dataclass(frozen=True, slots=True)
class PartnerMeans:
    """Sums of scores over the partners that ``same``, ``forbids`` and ``single`` allow.

    Parameters
    ----------
    sums : ndarray, shape (n, Q), nats, score of each question summed over allowed partners.
    counts : ndarray, shape (n,), number of allowed partners.
    """

    sums: FloatArray
    counts: IntArray

    def of_pairs(self, pairs: IntArray) -> FloatArray:
        """Return the mean score over both students' allowed partners, shape (p, Q), nats.

        It is zero if neither student has an allowed partner.
        """
        total = self.sums[pairs].sum(axis=1)
        count = self.counts[pairs].sum(axis=1)[:, None]
        means: FloatArray = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
        return means


def compute_partner_means(
    model: RoommateModel, survey: Survey, rules: Rules | None = None
) -> PartnerMeans:
    """Return the sums and counts for the mean score of every student's allowed partners.

    Raises
    ------
    InvalidProblemError
        If the survey has other questions.
    """
    rules = rules or Rules()
    model.check_survey(survey)
    n = survey.n_students
    is_partner = np.ones(n, dtype=bool)
    is_partner[list(rules.single)] = False
    group = _group_numbers(survey, rules)
    sums = np.zeros((n, survey.questionnaire.n_questions))
    for index, question in enumerate(survey.questionnaire.questions):
        block = model.features.question_block(model.theta, index)
        answers = survey.answers[:, index].astype(np.int64)
        codes = np.where(answers < 0, question.n_levels, answers)
        counts = np.zeros((int(group.max(initial=0)) + 1, len(block)))
        np.add.at(counts, (group[is_partner], codes[is_partner]), 1.0)
        sums[:, index] = np.einsum("ik,ik->i", block[codes], counts[group])
        sums[is_partner, index] -= block[codes, codes][is_partner]
        for i, j in _effective_forbids(rules, group):
            part = block[codes[i], codes[j]]
            sums[i, index] -= part if is_partner[j] else 0.0
            sums[j, index] -= part if is_partner[i] else 0.0
    members = np.bincount(group[is_partner], minlength=int(group.max(initial=0)) + 1)
    allowed = members[group] - is_partner
    for i, j in _effective_forbids(rules, group):
        allowed[i] -= is_partner[j]
        allowed[j] -= is_partner[i]
    return PartnerMeans(read_only(sums), read_only(allowed.astype(np.int64)))


def _group_numbers(survey: Survey, rules: Rules) -> IntArray:
    """Return the number of each student's group; pairs stay within groups, blank is a value."""
    if not rules.same:
        return np.zeros(survey.n_students, dtype=np.int64)
    keys = list(zip(*(survey.attributes[name] for name in rules.same), strict=True))
    number = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    return np.array([number[key] for key in keys], dtype=np.int64)


def _effective_forbids(rules: Rules, group: IntArray) -> list[tuple[int, int]]:
    """Return each forbidden pair within a group once; pairs across groups are never allowed."""
    pairs = {(min(i, j), max(i, j)) for i, j in rules.forbids}
    return sorted((i, j) for i, j in pairs if group[i] == group[j])
