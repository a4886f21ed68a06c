"""Places where an application adds itself to shared pages, from its ``AppConfig.ready``.

An application registers plain functions; nothing here imports an application. Every function gets
the signed-in user and must stay within the user's organisation.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from webapp.accounts.models import Organisation, Role, User


@dataclass(frozen=True, slots=True)
class NavigationItem:
    """One line of the rail. ``count`` gives what stands at its right (a number, a text, or '')."""

    section: str  # "", "Housing", "Images" or "Workspace", in this order
    label: str
    icon: str
    url_name: str
    order: int = 50
    count: Callable[[User], int | str] | None = None
    prefix: str = ""  # addresses under this path select the item; default: the item's own address
    role: Role | None = None  # who sees it, so that nobody is led to a page that is refused


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
    """One answer of the search: a student, a pair, a cohort, an image."""

    title: str
    detail: str
    url: str
    icon: str = "search"


@dataclass(frozen=True, slots=True)
class HomePanel:
    """A panel of the home page: a template and the function that makes its context.

    The function returns None to leave the panel out (nothing there yet)."""

    template: str
    context: Callable[[User], dict[str, Any] | None]
    order: int = 50


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a cohort is: so many of so many, in words; a later ``stage`` tells more."""

    words: str
    done: int
    total: int
    url: str
    stage: int

    @property
    def share(self) -> float:
        """What is done, 0 to 1."""
        return self.done / self.total if self.total else 0.0


@dataclass(slots=True)
class _Registry:
    navigation: list[NavigationItem] = field(default_factory=list)
    next_steps: list[Callable[[User], Iterable[NextStep]]] = field(default_factory=list)
    home_panels: list[HomePanel] = field(default_factory=list)
    home_facts: list[Callable[[User], str]] = field(default_factory=list)
    home_actions: list[str] = field(default_factory=list)
    progresses: list[Callable[[Collection[Any]], Mapping[Any, Progress]]] = field(
        default_factory=list
    )
    searches: list[Callable[[User, str], Iterable[SearchHit]]] = field(default_factory=list)
    demonstrations: list[tuple[int, Callable[[Organisation, User], str]]] = field(
        default_factory=list
    )


_registry = _Registry()


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
    """Add a part of the home page's line of facts, such as "4 cohorts"; '' leaves it out."""
    _registry.home_facts.append(function)


def register_home_action(template: str) -> None:
    """Add a partial with one button to the header of the home page."""
    _registry.home_actions.append(template)


def register_cohort_progress(
    function: Callable[[Collection[Any]], Mapping[Any, Progress]],
) -> None:
    """Add a source of how far cohorts are; it gets keys of cohorts and returns those it knows."""
    _registry.progresses.append(function)


def register_search(function: Callable[[User, str], Iterable[SearchHit]]) -> None:
    """Add a source of answers to the search box; it gets the query as typed, stripped."""
    _registry.searches.append(function)


def register_demonstration(
    function: Callable[[Organisation, User], str], *, order: int = 50
) -> None:
    """Add a loader of demonstration data; it is idempotent and says in a sentence what is there.

    It gets the demonstration organisation and its staff user, and runs with the worker absent: it
    makes finished objects by calling services directly.
    """
    _registry.demonstrations.append((order, function))
    _registry.demonstrations.sort(key=lambda entry: entry[0])


SECTIONS = ("", "Housing", "Images", "Workspace")


def navigation_items() -> tuple[NavigationItem, ...]:
    """Return the lines of the rail in their order."""
    return tuple(_registry.navigation)


def next_steps(user: User) -> list[NextStep]:
    """Return what the user can do next, most useful first."""
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
    """Return how far each cohort is, by key: of all sources the latest stage."""
    found: dict[Any, Progress] = {}
    for function in _registry.progresses:
        for key, progress in function(keys).items():
            if key not in found or progress.stage > found[key].stage:
                found[key] = progress
    return found


def search(user: User, query: str) -> list[SearchHit]:
    """Return the answers of every source."""
    return [hit for function in _registry.searches for hit in function(user, query)]


def demonstrations() -> tuple[Callable[[Organisation, User], str], ...]:
    """Return the loaders of demonstration data in their order."""
    return tuple(function for _, function in _registry.demonstrations)
