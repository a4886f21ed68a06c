"""The tour: five steps that lead through the results of the demonstration."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from webapp.accounts.models import User
from webapp.common.parameters import whole_number
from webapp.demonstration.selectors import ShownResult, demonstration_results, has_demonstration
from webapp.translation.lazy import gettext_lazy as _

PARAMETER = "tour"


@dataclass(frozen=True, slots=True)
class OtherPage:
    """A further page of a step: the result that it is about, its address, and who may open it."""

    label: str
    key: str
    url_name: str
    for_staff: bool = False


@dataclass(frozen=True, slots=True)
class TourStep:
    """One step of the tour: the result that it shows, what it is, and what to look at."""

    key: str
    title: str
    text: str
    look_at: tuple[str, ...]
    others: tuple[OtherPage, ...] = ()


STEPS = (
    TourStep(
        "questionnaire",
        _("Ask the students"),
        _(
            "Students answer on their phones by a personal link, without an account. This "
            "questionnaire comes from a template. 40 made-up students were invited, and 34 "
            "have finished."
        ),
        (
            _("How many students finished, and on which day."),
            _("The preview beside the questions: it is the page that students see."),
            _("“Answers”: what the students said, by question and by student."),
        ),
    ),
    TourStep(
        "model",
        _("Learn what matters"),
        _(
            "A model learns from a past year which answers made students choose each other. "
            "It was then checked on another year, which it had not seen."
        ),
        (
            _("The weight of each question: the longer the bar, the more the question matters."),
            _("The check: how often the model ranks a real pair above another pair."),
            _("“Certified”: how near the weights are to the best possible ones."),
        ),
    ),
    TourStep(
        "pairs",
        _("Propose pairs and rooms"),
        _(
            "The model chose roommates for 312 first-years, all of them together. The same "
            "students also have rooms, as a draft that you can change."
        ),
        (
            _("One pair: what speaks for it, what speaks against it, and the next best roommates."),
            _("Accept, lock, forbid or swap a pair. Then propose again around your decisions."),
            _("In the draft of rooms: halls, floors, and the rooms that are worth a look first."),
        ),
        (OtherPage(_("Open the draft of rooms"), "draft", "housing:placement"),),
    ),
    TourStep(
        "published",
        _("Publish and write letters"),
        _(
            "The students of the questionnaire have rooms, and the placement is published. A "
            "letter to them is written. Nothing was sent."
        ),
        (
            _("“Published” beside the title. From now on every move is a late change."),
            _("“Late changes”: who would move, and why, before anything is kept."),
            _("The letters: each student's text, and what is missing before they can be sent."),
        ),
        (OtherPage(_("Open the letters"), "published", "letters:placement", for_staff=True),),
    ),
    TourStep(
        "counts",
        _("From pictures to counts"),
        _(
            "A few strokes were painted on two pictures. A model learned from the strokes, "
            "predicted all four pictures and counted the cells."
        ),
        (
            _("The table of images: how many cells each picture has, and how large they are."),
            _("The pictures: the prediction lies over each, and its layers can be switched."),
            _("The model: which classes it learned from the strokes, and how exact it is."),
        ),
        (
            OtherPage(_("Open the pictures"), "counts", "segmentation:prediction"),
            OtherPage(_("Open the model"), "painted", "segmentation:segmenter"),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class ShownStep:
    """One step as a page shows it: its number, and the other pages that are ready."""

    number: int
    step: TourStep
    result: ShownResult | None
    others: tuple[tuple[str, str], ...]

    @property
    def total(self) -> int:
        """Number of steps."""
        return len(STEPS)

    @property
    def previous(self) -> int:
        """Number of the step before; 0 if it is the first."""
        return self.number - 1

    @property
    def following(self) -> int:
        """Number of the step after; 0 if it is the last."""
        return self.number + 1 if self.number < len(STEPS) else 0

    @property
    def url(self) -> str:
        """Address of the result with this step above it; '' until the result is ready."""
        found = self.result.url if self.result is not None else ""
        return with_step(found, self.number) if found else ""


def with_step(url: str, number: int) -> str:
    """Return an address whose page shows a step of the tour."""
    return f"{url}?{PARAMETER}={number}"


def shown_step(user: User, number: int) -> ShownStep:
    """Return a step of the tour, 1 to 5, for a person."""
    step = STEPS[number - 1]
    results = {result.step.key: result for result in demonstration_results(user)}
    others = []
    for other in step.others:
        result = results.get(other.key)
        is_open = user.is_staff_member or not other.for_staff
        if result is not None and result.url and is_open:
            url = reverse(other.url_name, args=[result.row.target])
            others.append((other.label, with_step(url, number)))
    return ShownStep(number, step, results.get(step.key), tuple(others))


def step_of_request(request: HttpRequest) -> ShownStep | None:
    """Return the step that the address of a page names; None outside the tour."""
    number = whole_number(request.GET.get(PARAMETER, ""))
    user = request.user
    if number is None or not 1 <= number <= len(STEPS) or not isinstance(user, User):
        return None
    return shown_step(user, number) if has_demonstration(user) else None
