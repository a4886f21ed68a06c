"""Student numbers with several sets of answers: the set that counts, and the open decisions.

If a code is enough to begin, anybody can type another student's number. So later answers never
replace the first ones: both are stored, and neither goes into a cohort before staff decide.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import ngettext

from webapp.surveys.models import Participant, Questionnaire
from webapp.surveys.people import person_key


@dataclass(frozen=True, slots=True)
class Clash:
    """All finished answers under one number or e-mail, the first ones first.

    ``counting`` is the set that goes into a cohort, or went; None until staff decide. No decision
    is needed if only one set came by a personal link or a sign-in, or if all sets are equal.
    """

    name: str
    answers: tuple[Participant, ...]
    set_aside: tuple[Participant, ...]
    counting: Participant | None

    @property
    def is_open(self) -> bool:
        """Return True if staff have to decide."""
        return self.counting is None

    @property
    def is_in_cohort(self) -> bool:
        """Return True if the answers that count are in a cohort already."""
        return self.counting is not None and self.counting.cohort_id is not None

    @property
    def n_different(self) -> int:
        """The number of questions with different answers."""
        given = [one.answers for one in self.answers]
        keys = {key for answers in given for key in answers}
        return sum(any(a.get(key) != given[0].get(key) for a in given) for key in keys)


def sorted_answers(questionnaire: Questionnaire) -> tuple[list[int], list[Clash]]:
    """Return the people for the next cohort, by key, and the numbers with several sets of answers.

    Answers that went into a cohort and those that staff set aside are in the second list only. The
    answers themselves, which may be encrypted, are read of the second list only.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    waiting: set[int] = set()
    finished = questionnaire.participants.exclude(finished_at=None)
    rows = finished.order_by("created_at", "pk").values_list(
        "pk", "identifier", "email", "cohort_id", "set_aside__pk"
    )
    for key, identifier, email, cohort, set_aside in rows:
        groups[person_key(key, identifier, email)].append(key)
        if cohort is None and set_aside is None:
            waiting.add(key)
    several = [group for group in groups.values() if len(group) > 1]
    whole = finished.select_related("set_aside").in_bulk(
        [key for group in several for key in group]
    )
    clashes = [_clash([whole[key] for key in group]) for group in several]
    waiting.difference_update(whole)
    waiting.update(
        clash.counting.pk
        for clash in clashes
        if clash.counting is not None and clash.counting.cohort_id is None
    )
    return sorted(waiting), clashes


def undecided_words(questionnaire: Questionnaire) -> str:
    """Return how many numbers wait for a decision, as a sentence; "" for none."""
    count = sum(clash.is_open for clash in sorted_answers(questionnaire)[1])
    words = ngettext(
        "%(count)s number waits for your decision under People.",
        "%(count)s numbers wait for your decision under People.",
        count,
    )
    return words % {"count": f"{count:,}"} if count else ""


def _clash(group: list[Participant]) -> Clash:
    aside = tuple(one for one in group if hasattr(one, "set_aside"))
    answers = tuple(one for one in group if one not in aside)
    name = group[0].identifier or group[0].email or group[0].code
    return Clash(name, answers, aside, _counting(answers))


def _counting(answers: tuple[Participant, ...]) -> Participant | None:
    """Return the answers that count automatically; None if there are none, or if staff decide."""
    in_cohort = _only(one for one in answers if one.cohort_id is not None)
    known = _only(one for one in answers if one.is_known)
    if in_cohort or known or len(answers) < 2:
        return in_cohort or known or next(iter(answers), None)
    is_same = all(one.answers == answers[0].answers for one in answers)
    return answers[0] if is_same and not any(one.is_known for one in answers) else None


def _only(found: Iterable[Participant]) -> Participant | None:
    candidates = list(found)
    return candidates[0] if len(candidates) == 1 else None
