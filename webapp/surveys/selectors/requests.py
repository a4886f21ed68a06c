"""Roommate requests by the codes that students typed, for staff."""

from collections.abc import Mapping
from dataclasses import dataclass

from webapp.surveys.models import Participant, Questionnaire, RequestedPerson
from webapp.surveys.questions import Question, counted_answers, questions_of


@dataclass(frozen=True, slots=True)
class RequestLine:
    """One request; a mutual request has one line, of the person who came first.

    ``differs_in`` names rules, such as gender, to which the two gave different answers.
    """

    asker: Participant
    target: Participant
    is_mutual: bool
    is_declined: bool
    differs_in: tuple[str, ...]


def requests_of(questionnaire: Questionnaire) -> list[tuple[Participant, Participant, bool]]:
    """Return the requests that count as [(asker, target, is mutual)].

    Declined requests do not count, nor do those in a question that the asker is not shown any more.
    """
    questions = questions_of(questionnaire.content)
    rows = [row for row in _rows(questionnaire) if row.declined_at is None]
    rows = [row for row in rows if _counts(row, questions)]
    pairs = {(row.asker_id, row.target_id) for row in rows}
    return [(row.asker, row.target, (row.target_id, row.asker_id) in pairs) for row in rows]


def request_counts(questionnaire: Questionnaire) -> tuple[int, int]:
    """Return the number of requests and of mutual pairs."""
    rows = questionnaire.requested_people.filter(declined_at=None)
    pairs = set(rows.values_list("asker", "target"))
    return len(pairs), sum((b, a) in pairs for a, b in pairs) // 2


def request_lines(questionnaire: Questionnaire) -> list[RequestLine]:
    """Return one line for each request, mutual ones once, those against a rule first."""
    rules = [q for q in questions_of(questionnaire.content) if q.is_rule]
    rows = list(_rows(questionnaire))
    counting = {(row.asker_id, row.target_id) for row in rows if row.declined_at is None}
    lines = []
    for row in rows:
        is_mutual = {(row.asker_id, row.target_id), (row.target_id, row.asker_id)} <= counting
        if is_mutual and row.asker_id > row.target_id:
            continue
        differs = tuple(_differing(row.asker.answers, row.target.answers, rules))
        is_declined = row.declined_at is not None
        lines.append(RequestLine(row.asker, row.target, is_mutual, is_declined, differs))
    return sorted(lines, key=lambda line: (not line.differs_in, not line.is_mutual))


def _rows(questionnaire: Questionnaire) -> list[RequestedPerson]:
    return list(questionnaire.requested_people.select_related("asker", "target"))


def _counts(row: RequestedPerson, questions: list[Question]) -> bool:
    return counted_answers(questions, row.asker.answers).get(row.key) == row.target.code


def _differing(
    one: Mapping[str, object], other: Mapping[str, object], rules: list[Question]
) -> list[str]:
    return [
        rule.name
        for rule in rules
        if one.get(rule.key) is not None
        and other.get(rule.key) is not None
        and one[rule.key] != other[rule.key]
    ]
