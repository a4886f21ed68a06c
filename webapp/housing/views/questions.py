"""Confirmation questions before acts on many people or published beds: numbers and names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from webapp.accounts.requests import SignedInRequest
from webapp.housing.models import Placement
from webapp.housing.selectors.drafts import ChangeLine

NAMED = 60  # students that a question lists at once; the others follow behind a summary


@dataclass(frozen=True, slots=True)
class Question:
    """A confirmation question before an act.

    Parameters
    ----------
    title : str, the act as a question.
    sentences : sequence of str, the effects of the act, with numbers.
    button : str, verb and object.
    address : str, address that receives the answer.
    fields : mapping of str to str or a list of them, form fields of the answer.
    lines : sequence of ChangeLine, the students concerned, with their rooms.
    people : sequence of int, numbers of students concerned whose rooms stay.
    choices : sequence of (number, value), students to choose one from, in place of the button.
    choice_field : str, form field of the chosen student.
    is_danger : bool, whether somebody loses a bed.
    back : str, address of the page that asked.
    trail : sequence of (words, address), breadcrumbs of the question as a page.
    """

    title: str
    sentences: Sequence[str]
    button: str
    address: str
    fields: Mapping[str, object] = field(default_factory=dict)
    lines: Sequence[ChangeLine] = ()
    people: Sequence[int] = ()
    choices: Sequence[tuple[int, str]] = ()
    choice_field: str = "student"
    is_danger: bool = False
    back: str = ""
    trail: Sequence[tuple[str, str]] = ()

    @property
    def first_lines(self) -> Sequence[ChangeLine]:
        """The students listed at once."""
        return self.lines[:NAMED]

    @property
    def more_lines(self) -> Sequence[ChangeLine]:
        """The students behind the summary."""
        return self.lines[NAMED:]

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """The fields one by one, as hidden fields of a form."""
        pairs: list[tuple[str, str]] = []
        for name, value in self.fields.items():
            values = value if isinstance(value, list | tuple) else [value]
            pairs += [(name, str(one)) for one in values]
        return pairs


def trail_of(placement: Placement) -> list[tuple[str, str]]:
    """Return the breadcrumbs of questions about a placement."""
    return [
        (_("Placements"), reverse("housing:placements")),
        (placement.name, reverse("housing:placement", args=[placement.pk])),
    ]


def ask(
    request: SignedInRequest, question: Question, placement: Placement | None = None
) -> HttpResponse:
    """Show a question: as a dialog on the page, or as a page without scripts.

    The names of students come from the cohort of ``placement``.
    """
    context = {"question": question, "placement": placement}
    if not request.htmx:
        return render(request, "housing/question.html", context)
    response = render(request, "housing/_question_dialog.html", context)
    response["HX-Retarget"], response["HX-Reswap"] = "#dialog-slot", "innerHTML"
    return response
