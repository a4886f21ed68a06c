"""Creating, splitting and purging cohorts; each is one transaction with its audit line."""

from collections import Counter
from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from engine.tabular.answers import TableAnswers
from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.cohorts.models import (
    Cohort,
    PairsOrigin,
    PastPair,
    PastRoom,
    Student,
)
from webapp.cohorts.selectors.cohorts import halves_within
from webapp.cohorts.services.numbers import numbers_take
from webapp.cohorts.signals import cohort_purging
from webapp.common.errors import Refusal


class CohortError(Refusal):
    """Refusal of an act on cohorts; the message is one sentence for staff."""


def check_name(name: str) -> str:
    """Return the trimmed name of a cohort; raise CohortError if it is empty or too long."""
    name = " ".join(name.split())
    if not name:
        raise CohortError(_("The cohort needs a name."))
    if len(name) > 120:
        raise CohortError(_("The name is longer than 120 characters."))
    return name


def cohort_create(*, user: User, name: str, filename: str, answers: TableAnswers) -> Cohort:
    """Store a cohort with the students of a file; raise IntegrityError if its name is taken."""
    cohort = Cohort.objects.create(
        organisation=user.own_organisation,
        created_by=user,
        name=name,
        filename=filename,
        questions=[
            {
                "name": question.name,
                "kind": question.kind,
                "levels": list(question.levels),
                **({"wording": wording} if wording else {}),
            }
            for question, wording in zip(answers.questions, answers.wordings, strict=True)
        ],
        constraints=list(answers.rules),
        needs=list(answers.needs),
        n_students=answers.n_people,
        ids_made=not answers.ids,
    )
    Student.objects.bulk_create(_students(cohort, answers), batch_size=500)
    return cohort


def _students(cohort: Cohort, answers: TableAnswers) -> list[Student]:
    first = numbers_take(cohort.organisation, answers.n_people)
    labels = [f"S-{first + k}" for k in range(answers.n_people)]
    originals = answers.ids or labels
    return [
        Student(
            cohort=cohort,
            number=first + k,
            original_id=originals[k],
            email=answers.emails[k],
            name=answers.names[k],
            preferred=answers.preferred[k],
            pronouns=answers.pronouns[k],
            answers=[codes[k] for codes in answers.codes],
            attributes={name: values[k] for name, values in answers.rules.items()},
        )
        for k in range(answers.n_people)
    ]


def cohort_split(*, user: User, cohort: Cohort, seed: int) -> tuple[Cohort, Cohort]:
    """Split a cohort at random into two new ones, for practice on one of them.

    The original stays. The students of the halves keep their ids, on screen too: S-1042 is the same
    student in the half as in the whole. Purging the whole purges its halves.
    """
    if cohort.n_students < 4:
        raise CohortError(_("At least 4 students are needed to split a cohort into two halves."))
    with transaction.atomic():
        _locked(cohort)
        students = list(cohort.students.all())
        columns = cohort.same_columns
        groups = [tuple(student.attributes.get(c, "") for c in columns) for student in students]
        parts = _deal(groups, np.random.default_rng(seed))
        halves = tuple(
            cohort_of_some(
                user=user,
                cohort=cohort,
                name=_("%(cohort)s, half %(letter)s")
                % {"cohort": cohort.name[:100], "letter": letter},
                students=[students[k] for k in part],
            )
            for letter, part in zip("AB", parts, strict=True)
        )
        audit(user, "split", cohort, seed=seed, halves=[half.name for half in halves])
    return halves[0], halves[1]


def _deal(groups: Sequence[Sequence[str]], rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Deal positions to two halves, two of one group at a time.

    So a group that can be paired completely can still be paired in each half, and practice leaves
    nobody over. Single students of groups come last, and the last odd one goes to the second half.
    """
    members: dict[Sequence[Any], list[int]] = {}
    for k in rng.permutation(len(groups)).tolist():
        members.setdefault(groups[k], []).append(k)
    in_twos = [k for group in members.values() for k in group[: len(group) // 2 * 2]]
    in_twos += [group[-1] for group in members.values() if len(group) % 2]
    twos = [in_twos[k : k + 2] for k in range(0, len(in_twos), 2)]
    second = [two for place, two in enumerate(twos) if place % 2 == 0 or len(two) == 1]
    first = [two for place, two in enumerate(twos) if place % 2 == 1 and len(two) == 2]
    return sorted(k for two in first for k in two), sorted(k for two in second for k in two)


def cohort_of_some(*, user: User, cohort: Cohort, name: str, students: Sequence[Student]) -> Cohort:
    """Make a cohort of some students of another one; they keep their ids, on screen too.

    Purging the whole purges the part. A number follows the name if the name is taken.
    """
    part = Cohort.objects.create(
        organisation=cohort.organisation,
        created_by=user,
        name=_free_name(cohort, name),
        filename=cohort.filename,
        questions=cohort.questions,
        constraints=cohort.constraints,
        needs=cohort.needs,
        n_students=len(students),
        ids_made=cohort.ids_made,
        half_of=cohort,
    )
    rows = [
        Student(
            cohort=part,
            number=student.number,
            original_id=student.original_id,
            email=student.email,
            name=student.name,
            preferred=student.preferred,
            pronouns=student.pronouns,
            answers=student.answers,
            attributes=student.attributes,
        )
        for student in students
    ]
    Student.objects.bulk_create(rows, batch_size=500)
    return part


def _free_name(cohort: Cohort, wanted: str) -> str:
    taken = set(
        Cohort.objects.filter(
            organisation=cohort.organisation, name__startswith=wanted
        ).values_list("name", flat=True)
    )
    name, count = wanted, 1
    while name in taken:
        count += 1
        name = f"{wanted} ({count})"
    return name


def cohort_rename(*, user: User, cohort: Cohort, name: str) -> None:
    """Rename a cohort."""
    name = check_name(name)
    try:
        with transaction.atomic():
            audit(user, "renamed", cohort, to=name)
            Cohort.objects.filter(pk=cohort.pk).update(name=name, updated_at=timezone.now())
    except IntegrityError as error:
        raise CohortError(
            _("There is already a cohort called “%(name)s”.") % {"name": name}
        ) from error


def cohort_set_pairs(
    *,
    user: User | None,
    cohort: Cohort,
    pairs: Sequence[tuple[int, int]],
    origin: PairsOrigin,
    note: str,
    **details: Any,
) -> None:
    """Replace the past pairs of a cohort; ``pairs`` are positions in the order of the numbers.

    Raises CohortError if a student would be in two pairs or paired with themselves.
    """
    counts = Counter(student for pair in pairs for student in pair)
    if any(count > 1 for count in counts.values()):
        raise CohortError(_("A student is in more than one pair. Nothing was saved."))
    keys = list(cohort.students.values_list("pk", flat=True))
    with transaction.atomic():
        PastPair.objects.filter(cohort=cohort).delete()
        PastPair.objects.bulk_create(
            [PastPair(cohort=cohort, first_id=keys[a], second_id=keys[b]) for a, b in pairs],
            batch_size=500,
        )
        Cohort.objects.filter(pk=cohort.pk).update(
            n_pairs=len(pairs), pairs_origin=origin, pairs_note=note, updated_at=timezone.now()
        )
        verb = "simulated pairs" if origin == PairsOrigin.SIMULATED else "imported pairs"
        owner = cohort.organisation
        audit(user, verb, cohort, organisation=owner, pairs=len(pairs), **details)
    cohort.refresh_from_db()


def cohort_set_rooms(*, cohort: Cohort, rooms: Sequence[tuple[str, Sequence[int]]]) -> None:
    """Replace the past rooms of a cohort; residents are positions in the order of the numbers."""
    cohort.past_rooms.all().delete()
    made = PastRoom.objects.bulk_create(
        [PastRoom(cohort=cohort, name=name[:200]) for name, _ in rooms], batch_size=500
    )
    students = list(cohort.students.only("cohort"))
    housed = []
    for room, (_rest, residents) in zip(made, rooms, strict=True):
        for position in residents:
            students[position].past_room = room
            housed.append(students[position])
    Student.objects.bulk_update(housed, ["past_room"], batch_size=500)
    changed: dict[str, int] = {"n_rooms": len(made)}
    if rooms:  # every two roommates are a pair, in larger rooms too
        changed["n_pairs"] = sum(comb(len(residents), 2) for _, residents in rooms)
    Cohort.objects.filter(pk=cohort.pk).update(**changed)
    cohort.refresh_from_db()


def cohort_purge(*, user: User, cohort: Cohort, typed_name: str) -> None:
    """Remove a cohort with its students, pairs and placements for good, and its halves as well.

    The halves hold the same answers of the same people. Models trained on any of them stay: they
    hold weights, no answers. Raises CohortError unless ``typed_name`` is the name of the cohort.
    """
    if typed_name.strip() != cohort.name:
        raise CohortError(_("The name does not match. Nothing was purged."))
    with transaction.atomic():
        _locked(cohort)
        for part in reversed([cohort, *halves_within(cohort)]):  # each half before its whole
            cohort_purging.send(Cohort, cohort=part, user=user)
            audit(user, "purged", part, students=part.n_students, pairs=part.n_pairs)
            part.delete()


def _locked(cohort: Cohort) -> None:
    """Lock the cohort until this transaction ends, against splits and purges."""
    if not Cohort.objects.select_for_update().filter(pk=cohort.pk).exists():
        raise CohortError(_("%(cohort)s was removed meanwhile.") % {"cohort": cohort.name})
