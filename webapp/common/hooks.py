"""Hooks by which an application adds itself to shared pages, from its ``AppConfig.ready``.

An application registers plain functions; nothing here imports an application. Every function gets
the signed-in user and must stay within the user's organisation.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.utils.text import slugify
from django.utils.translation import override

from webapp.accounts.models import Organisation, Role, User
from webapp.common.selectors import owned_counts


@dataclass(frozen=True, slots=True)
class NavigationItem:
    """One line of the rail.

    Its right part is the number of objects of ``counted`` in the organisation, or the text that
    ``label_of`` returns.
    """

    section: str  # "", "Housing", "Images" or "Workspace", in this order
    label: str
    icon: str
    url_name: str
    order: int = 50
    counted: type[Model] | None = None
    label_of: Callable[[User], str] | None = None
    prefix: str = ""  # addresses under this path select the item; default: the item's own address
    role: Role | None = None  # people who see it, so that no link leads to a refused page
    for_operators: bool = False  # operators see it too, whatever their role

    @property
    def help_section(self) -> str:
        """The section of Help about its pages, such as "housing-placements"."""
        with override("en"):  # an address, the same in every language
            return slugify(f"{self.section} {self.label}")

    def is_shown_to(self, user: User) -> bool:
        """Return True if the person may open it."""
        is_enough = self.role is None or user.has_role(self.role)
        return is_enough or (self.for_operators and user.is_operator)


@dataclass(frozen=True, slots=True)
class NextStep:
    """One line of "What to do next"; the step with the lowest order gets the green button."""

    title: str
    detail: str
    url: str
    action: str
    icon: str = "list-checks"
    tone: str = "accent"  # accent, warning or neutral
    order: int = 50


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One result of the search: a student, a pair, a cohort, an image."""

    title: str
    detail: str
    url: str
    icon: str = "search"


@dataclass(frozen=True, slots=True)
class HomePanel:
    """Panel of the home page: a template and the function that makes its context.

    The function returns None to leave the panel out (nothing there yet)."""

    template: str
    context: Callable[[User], dict[str, Any] | None]
    order: int = 50


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a cohort in words and numbers; the latest ``stage`` is shown."""

    words: str
    done: int
    total: int
    url: str
    stage: int

    @property
    def share(self) -> float:
        """Return the share of completed work, 0 to 1."""
        return self.done / self.total if self.total else 0.0


# A function from a request and a status to an error page; it does not use the database.
ErrorPage = Callable[[HttpRequest, int], HttpResponse]


@dataclass(frozen=True, slots=True)
class CohortContent:
    """Objects that a purge removes with a cohort: "397 requests".

    ``url`` leads to objects to be withdrawn before the purge; "" if there are none.
    """

    words: str
    url: str = ""


@dataclass(slots=True)
class _Registry:
    error_pages: dict[str, ErrorPage] = field(default_factory=dict)
    absences: dict[str, Callable[[BaseException], bool]] = field(default_factory=dict)
    navigation: list[NavigationItem] = field(default_factory=list)
    next_steps: list[Callable[[User], Iterable[NextStep]]] = field(default_factory=list)
    home_panels: list[HomePanel] = field(default_factory=list)
    home_facts: list[Callable[[User], str]] = field(default_factory=list)
    home_actions: list[str] = field(default_factory=list)
    progresses: list[Callable[[Collection[Any]], Mapping[Any, Progress]]] = field(
        default_factory=list
    )
    contents: list[Callable[[Any], Iterable[CohortContent]]] = field(default_factory=list)
    searches: list[Callable[[User, str], Iterable[SearchHit]]] = field(default_factory=list)
    naming: list[Callable[[HttpRequest, str], str]] = field(default_factory=list)
    demonstrations: list[tuple[int, Callable[[Organisation, User], str]]] = field(
        default_factory=list
    )


_registry = _Registry()


def register_error_pages(prefix: str, function: ErrorPage) -> None:
    """Register an application's own error pages for a path and everything below it."""
    _registry.error_pages[prefix] = function


def error_page_of(path: str) -> ErrorPage | None:
    """Return the error pages of a path; None if the shared ones apply."""
    found = [prefix for prefix in _registry.error_pages if path.startswith(prefix)]
    return _registry.error_pages[max(found, key=len)] if found else None


def register_absence(part: str, is_absent: Callable[[BaseException], bool]) -> None:
    """Register which errors mean that a part, such as "store of files", does not answer now."""
    _registry.absences[part] = is_absent


def absent_part(error: BaseException) -> str:
    """Return the registered part that does not answer, by its error; "" if it is no such error."""
    return next((part for part, is_of in _registry.absences.items() if is_of(error)), "")


def register_navigation(item: NavigationItem) -> None:
    """Add a line to the rail."""
    _registry.navigation.append(item)
    _registry.navigation.sort(key=lambda entry: (SECTIONS.index(entry.section), entry.order))


def register_next_steps(function: Callable[[User], Iterable[NextStep]]) -> None:
    """Add a source of next steps for the home page."""
    _registry.next_steps.append(function)


def register_home_panel(panel: HomePanel) -> None:
    """Add a panel to the home page."""
    _registry.home_panels.append(panel)
    _registry.home_panels.sort(key=lambda entry: entry.order)


def register_home_fact(function: Callable[[User], str]) -> None:
    """Add a part of the home page's line of facts, such as "4 cohorts"; '' adds nothing."""
    _registry.home_facts.append(function)


def register_home_action(template: str) -> None:
    """Add a partial with one button to the header of the home page."""
    _registry.home_actions.append(template)


def register_cohort_progress(
    function: Callable[[Collection[Any]], Mapping[Any, Progress]],
) -> None:
    """Add a source of the progress of cohorts; it gets keys and returns those it knows."""
    _registry.progresses.append(function)


def register_cohort_contents(function: Callable[[Any], Iterable[CohortContent]]) -> None:
    """Add a source of the objects that a purge removes with a cohort; it gets the cohort."""
    _registry.contents.append(function)


def register_search(function: Callable[[User, str], Iterable[SearchHit]]) -> None:
    """Add a source of search results; it gets the query as typed, stripped."""
    _registry.searches.append(function)


def register_demonstration(
    function: Callable[[Organisation, User], str], *, order: int = 50
) -> None:
    """Add an idempotent loader of demonstration data that returns its content in a sentence.

    It gets the demonstration organisation and its staff user, and runs without the worker: it
    makes finished objects by calling services directly.
    """
    _registry.demonstrations.append((order, function))
    _registry.demonstrations.sort(key=lambda entry: entry[0])


SECTIONS = ("", "Housing", "Images", "Workspace")


def register_naming(function: Callable[[HttpRequest, str], str]) -> None:
    """Register the function that adds the names of students to a sentence when it is shown."""
    _registry.naming.append(function)


def in_names(request: HttpRequest, sentence: str) -> str:
    """Return a sentence as this person sees it: with names beside ids such as S-1042 or not."""
    for function in _registry.naming:
        sentence = function(request, sentence)
    return sentence


def navigation_items() -> tuple[NavigationItem, ...]:
    """Return the lines of the rail in their order."""
    return tuple(_registry.navigation)


def rail_counts(user: User) -> dict[type[Model], int]:
    """Return the numbers of the rail by model, counted by one query for each request's user."""
    known: dict[type[Model], int] | None = getattr(user, "rail_counts", None)
    if known is None:
        counted = [item.counted for item in _registry.navigation if item.counted is not None]
        known = owned_counts(user, counted)
        user.rail_counts = known  # type: ignore[attr-defined]
    return known


def next_steps(user: User) -> list[NextStep]:
    """Return the next steps of the user, most useful first."""
    steps = [step for function in _registry.next_steps for step in function(user)]
    return sorted(steps, key=lambda step: step.order)


def home_panels(user: User) -> list[tuple[str, dict[str, Any]]]:
    """Return template and context of every panel that has something to show."""
    panels = [(panel.template, panel.context(user)) for panel in _registry.home_panels]
    return [(template, context) for template, context in panels if context is not None]


def home_facts(user: User) -> list[str]:
    """Return the facts under the title of the home page."""
    return [fact for function in _registry.home_facts if (fact := function(user))]


def home_actions() -> tuple[str, ...]:
    """Return the partials of the home page's buttons."""
    return tuple(_registry.home_actions)


def cohort_progress(keys: Collection[Any]) -> dict[Any, Progress]:
    """Return the progress of each cohort, by key: the latest stage of all sources."""
    found: dict[Any, Progress] = {}
    for function in _registry.progresses:
        for key, progress in function(keys).items():
            if key not in found or progress.stage > found[key].stage:
                found[key] = progress
    return found


def cohort_contents(cohort: Any) -> list[CohortContent]:
    """Return the objects that a purge removes with a cohort, those to be withdrawn first."""
    found = [content for function in _registry.contents for content in function(cohort)]
    return sorted(found, key=lambda content: not content.url)


def search(user: User, query: str) -> list[SearchHit]:
    """Return the search results of every source."""
    return [hit for function in _registry.searches for hit in function(user, query)]


def demonstrations() -> tuple[Callable[[Organisation, User], str], ...]:
    """Return the loaders of demonstration data in their order."""
    return tuple(function for _, function in _registry.demonstrations)
