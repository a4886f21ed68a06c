"""Reading requests, choices and needs from their own files or from the survey itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from engine.tabular.needs import parse_needs
from engine.tabular.personal import is_nobody
from engine.tabular.student_files import (
    SEVERAL,
    apart_columns,
    choice_columns,
    is_wanted_title,
    name_in,
    need_columns,
    people_columns,
    persons_in,
    ranked_choices,
    refuses,
    wanted_columns,
    who_columns,
)
from engine.tabular.table import Table
from webapp.cohorts.models import Cohort
from webapp.cohorts.student_files import (
    IGNORE,
    WHO,
    FileChoices,
    RowStudents,
    StudentFile,
)
from webapp.cohorts.student_finder import StudentFinder
from webapp.common.formats import counted
from webapp.housing.models import RoommateRequest
from webapp.translation.lazy import gettext_lazy

WANTED, CHOICE, NEED = "wanted", "choice", "need"
_SHOWN = 8
_MOST_LETTERS = 80  # of a choice

_WHO_LABEL = gettext_lazy("The student")
REQUEST_USES = {
    WHO: _WHO_LABEL,
    WANTED: gettext_lazy("The requested roommate"),
    IGNORE: gettext_lazy("Leave out"),
}
CHOICE_USES = {
    WHO: _WHO_LABEL,
    CHOICE: gettext_lazy("A choice, ranked by the order of the columns"),
} | {IGNORE: gettext_lazy("Leave out")}
NEED_USES = {
    WHO: _WHO_LABEL,
    NEED: gettext_lazy("A need (in words, or yes and no)"),
    IGNORE: gettext_lazy("Leave out"),
}


@dataclass(frozen=True, slots=True)
class AskedFor:
    """The requests in a file.

    ``new`` holds (asker, target or None, text written if the target is unsure) of requests not
    stored yet; ``twice`` counts those stored already, ``strangers`` those of rows that match no
    student.
    """

    new: tuple[tuple[int, int | None, str], ...]
    twice: int
    strangers: int

    @property
    def themselves(self) -> int:
        """Requests in which students request themselves."""
        return sum(target == student for student, target, _ in self.new)

    @property
    def unknown(self) -> int:
        """Requests that name no certain student."""
        return sum(target is None for _, target, _ in self.new)


def _uses(table: Table, use: str, who: tuple[int, ...], columns: tuple[int, ...]) -> list[str]:
    return [WHO if k in who else use if k in columns else IGNORE for k in range(table.n_columns)]


def guess_requests(cohort: Cohort, finder: StudentFinder, table: Table) -> list[str]:
    """Return a use for every column of a file of requests."""
    wanted = wanted_columns(table, finder.all_of)
    return _uses(table, WANTED, who_columns(table, finder.all_of, wanted), wanted)


def read_requests(
    cohort: Cohort, finder: StudentFinder, table: Table, choices: FileChoices
) -> StudentFile:
    """Return the requests of a file; several people in one cell are parted by commas and the like.

    A target need not be certain: staff decide it on the page of requests.
    """
    rows = RowStudents(finder, table, choices)
    columns = choices.columns(WANTED)
    known = RoommateRequest.objects.filter(cohort=cohort)
    seen: set[tuple[int, int | None, str]] = {
        *known.values_list("student_id", "target_id", "written")
    }
    new: list[tuple[int, int | None, str]] = []
    sample: list[tuple[str, ...]] = []
    twice = strangers = 0
    people = people_columns(table, columns)
    for position, row in enumerate(table.rows):
        names = [name for one in people for name in _named_in(name_in(row, one), finder)]
        if not names:
            continue
        student = rows.of(position)
        if student is None:
            strangers += len(names)
            continue
        for name in names:
            target = finder.find(name)
            key = (student.pk, target and target.pk, "" if target else name[:120])
            if key in seen:
                twice += 1
                continue
            seen.add(key)
            new.append(key)
            if len(sample) < _SHOWN:
                means = target.label if target else _("to be chosen on the page of requests")
                sample.append((student.label, name[:40], means))
    asked = AskedFor(tuple(new), twice, strangers)
    n_kept = len(new) - asked.themselves
    facts = [
        sentence(count) % {"count": f"{count:,}"}
        for count, sentence in (
            (asked.unknown, _uncertain_names),
            (asked.themselves, _for_themselves),
            (twice, _repeated),
        )
        if count
    ]
    facts += [
        _("“%(title)s” names people to keep apart. Set this in the rules of a placement.")
        % {"title": table.header[k][:60]}
        for k in apart_columns(table, choices.columns(IGNORE), finder.all_of)
    ]
    problems = [] if columns else [_("No column names the requested roommates. Choose one.")]
    problems += [
        _(
            "“%(title)s” names people with whom students must not live. Leave the column out, and "
            "keep them apart in the rules of a placement."
        )
        % {"title": table.header[k][:60]}
        for k in apart_columns(table, columns, finder.all_of)
    ]
    if new and asked.themselves == len(new) and not twice:
        problems.append(
            _(
                "In every row, students request themselves. Choose the column of the "
                "requested roommates, or another file."
            )
        )
    found = StudentFile(
        content=asked,
        n_kept=len(new),
        words=counted(n_kept, "request"),
        facts=facts,
        problems=problems,
        sample_header=(_("Student"), _("Requested name"), _("Requested student")),
        sample=sample,
    )
    if twice and not new:
        found.why_nothing = _("The cohort has every request of this file already.")
    return rows.finish(found)


def _named_in(cell: str, finder: StudentFinder) -> list[str]:
    """Return the names in one cell, also in a sentence: "Ash, Ada" is one name if a student has it.

    "Nobody" and "no preference" are no names. A cell that may name somebody who is not wanted,
    "anyone but Ben Lee", stays whole: its request is uncertain, and staff read it.
    """
    if finder.all_of(cell) or (refuses(cell) and not is_nobody(cell)):
        return [cell.strip()]
    parts = [part.strip() for part in SEVERAL.split(cell) if part.strip()]
    found = [persons_in(part, finder.all_of) or [part] for part in parts]
    return [name for names in found for name in names if not is_nobody(name)]


def guess_choices(cohort: Cohort, finder: StudentFinder, table: Table) -> list[str]:
    """Return a use for every column of a file of choices."""
    who = who_columns(table, finder.all_of, wanted_in_survey(table, finder))
    return _uses(table, CHOICE, who, choice_columns(table, who))


def wanted_in_survey(table: Table, finder: StudentFinder) -> tuple[int, ...]:
    """Return the survey's columns of requested roommates. The rows belong to the askers."""
    return tuple(k for k in wanted_columns(table, finder.all_of) if is_wanted_title(table, k))


def read_choices(
    cohort: Cohort, finder: StudentFinder, table: Table, choices: FileChoices
) -> StudentFile:
    """Return the choices of every student in order; "No preference" is not a choice."""
    rows = RowStudents(finder, table, choices)
    columns = choices.columns(CHOICE)
    ranked: dict[int, list[str]] = {}
    sample: list[tuple[str, ...]] = []
    problems = _problems_of_columns(table, columns, finder, _("choices"))
    for position, row in enumerate(table.rows):
        wanted = [choice[:_MOST_LETTERS] for choice in ranked_choices([row[k] for k in columns])]
        student = rows.of(position)
        if student is None:
            continue
        if student.pk in ranked:
            number = table.row_numbers[position]
            problems.append(
                _("Row %(number)s: %(original_id)s appears twice. Leave one out.")
                % {"number": f"{number:,}", "original_id": student.original_id[:30]}
            )
            continue
        ranked[student.pk] = wanted
        if wanted and len(sample) < _SHOWN:
            sample.append((student.label, ", then ".join(wanted)))
    n_kept = sum(map(len, ranked.values()))
    found = StudentFile(
        content=ranked,
        n_kept=n_kept,
        words=counted(n_kept, "choice"),
        facts=[_("These choices replace all earlier choices of this cohort.")] if n_kept else [],
        problems=problems,
        sample_header=(_("Student"), _("Choices")),
        sample=sample,
    )
    return rows.finish(found)


def _uncertain_names(count: int) -> str:
    return ngettext(
        "%(count)s request with an uncertain name: choose the student on the page of requests.",
        "%(count)s requests with an uncertain name: choose the student on the page of requests.",
        count,
    )


def _for_themselves(count: int) -> str:
    return ngettext(
        "%(count)s request in which students request themselves.",
        "%(count)s requests in which students request themselves.",
        count,
    )


def _repeated(count: int) -> str:
    return ngettext(
        "%(count)s request left out, because the file or the cohort already has them.",
        "%(count)s requests left out, because the file or the cohort already has them.",
        count,
    )


def _problems_of_columns(
    table: Table, columns: Sequence[int], finder: StudentFinder, what: str
) -> list[str]:
    """Return a sentence if no column is chosen, and one on every column that names students."""
    if not columns:
        return [_("No column contains %(what)s. Choose the columns that do.") % {"what": what}]
    return [
        _("“%(header)s” contains students, not %(what)s. Choose another use for it.")
        % {"header": table.header[k][:60], "what": what}
        for k in columns
        if _is_of_students(table, k, finder)
    ]


def _is_of_students(table: Table, column: int, finder: StudentFinder) -> bool:
    cells = [cell for cell in table.answers(column) if cell.strip()]
    return 2 * sum(bool(finder.all_of(cell)) for cell in cells) > len(cells)


def guess_needs(cohort: Cohort, finder: StudentFinder, table: Table) -> list[str]:
    """Return a use for every column of a file of needs."""
    who = who_columns(table, finder.all_of, wanted_in_survey(table, finder))
    return _uses(table, NEED, who, need_columns(table, who))


def read_needs(
    cohort: Cohort, finder: StudentFinder, table: Table, choices: FileChoices
) -> StudentFile:
    """Return each student's needs: the words of a cell, or the column's title for a yes."""
    rows = RowStudents(finder, table, choices)
    columns = choices.columns(NEED)
    needs: dict[int, dict[str, None]] = {}
    labels: dict[int, str] = {}
    for position, row in enumerate(table.rows):
        student = rows.of(position)
        if student is None:
            continue
        found = needs.setdefault(student.pk, {})
        labels[student.pk] = student.label
        for k in columns:
            found |= dict.fromkeys(parse_needs(table.header[k], row[k]))
    n_kept = sum(bool(words) for words in needs.values())
    sample: list[tuple[str, ...]] = [
        (labels[key], ", ".join(words)) for key, words in needs.items() if words
    ]
    result = StudentFile(
        content=needs,
        n_kept=n_kept,
        words=ngettext("the needs of %(count)s student", "the needs of %(count)s students", n_kept)
        % {"count": f"{n_kept:,}"},
        facts=[_("These needs replace those of earlier files.")] if n_kept else [],
        problems=_problems_of_columns(table, columns, finder, _("needs")),
        sample_header=(_("Student"), _("Needs")),
        sample=sample[:_SHOWN],
    )
    return rows.finish(result)
