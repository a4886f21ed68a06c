"""People of two organisations, clients that are signed in as them, and objects that they made.

alice looks, bob works, carol administers, otto is staff and an operator of the installation, all at
Northfield University; mallory works elsewhere.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.cache import caches
from django.db import connection
from django.test import Client
from django.utils import translation

from tests.webapp.earlier_versions import MigrateTo, empty_database, migrate_default_to
from tests.webapp.factories.campus import make_campus
from tests.webapp.factories.cohorts import import_cohort
from tests.webapp.factories.images import (
    MakeSet,
    make_batch,
    make_discs,
    make_image_set,
    make_segmenter,
)
from tests.webapp.factories.page_addresses import addresses_of_pages
from tests.webapp.factories.programs import Program, make_program
from tests.webapp.factories.providers import OpenIDServer, make_provider, running_provider
from tests.webapp.factories.university import (
    Past,
    cohort_of,
    learned_from,
    place_pairs,
    simulate_past,
)
from tests.webapp.pseudo_language import CODE, bracketed, write_catalogue
from tests.webapp.reader import Reader
from tests.webapp.solved import place_once
from tests.webapp.statements import Sent, covering, noted, read_notes
from webapp.accounts.models import Organisation, Role, User
from webapp.cohorts.models import Cohort
from webapp.housing.models import BuildingList, Placement
from webapp.identity.models import IdentityProvider
from webapp.matching.models import LearnedModel
from webapp.segmentation.models import ImageFile, ImageSet, PredictionBatch, Segmenter

PASSWORD = "quiet-lamp-orbit-42"
_WITH_TRANSACTIONS = {"transactional_db", "live_server"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On another database than the usual one, leave out tests for which it makes no difference.

    After a run on the usual one, tests stay that together send every statement of all.
    """
    if connection.vendor == "sqlite":
        return
    notes = read_notes()
    needed = covering(notes)
    kept = {
        item
        for item in items
        if not _is_of_web(item)
        or (_depends_on_database(item) and (item.nodeid in needed or _is_always_run(item, notes)))
    }
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note what the tests send to the usual database, for a choice of tests on another one."""
    if connection.vendor != "sqlite" or not _is_of_web(item):
        return (yield)
    with noted(item.nodeid):
        return (yield)


def _is_of_web(item: pytest.Item) -> bool:
    return item.path.is_relative_to(Path(__file__).parent)


def _depends_on_database(item: pytest.Item) -> bool:
    fixtures = set(getattr(item, "fixturenames", ()))
    if item.get_closest_marker("any_database"):
        return False
    return bool(item.get_closest_marker("django_db") or fixtures & {"db", *_WITH_TRANSACTIONS})


def _is_always_run(item: pytest.Item, notes: Mapping[str, Sent]) -> bool:
    """Return True for what notes say nothing about: locks, several connections, odd values."""
    marker = item.get_closest_marker("django_db")
    return bool(
        item.nodeid not in notes
        or item.get_closest_marker("every_database")
        or (marker and marker.kwargs.get("transaction"))
        or set(getattr(item, "fixturenames", ())) & _WITH_TRANSACTIONS
    )


@pytest.fixture(autouse=True)
def media_root(settings: LazySettings, tmp_path: Path) -> Path:
    """Keep files of tests away from the installation."""
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.SECURE_SSL_REDIRECT = False
    settings.SESSION_COOKIE_SECURE = False
    settings.CSRF_COOKIE_SECURE = False
    local = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    settings.CACHES = {"default": local, "limits": local | {"LOCATION": "limits"}}
    caches["limits"].clear()  # no test counts against the limits of the next
    settings.API_CALLS_A_MINUTE = settings.API_WRONG_TOKENS_A_MINUTE = 10**6
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick
    return settings.MEDIA_ROOT


@pytest.fixture(autouse=True)
def sent_job_ids(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record what would be sent to the broker; tests with a real broker override this fixture."""
    sent: list[str] = []

    def record(job_id: object, queue: str) -> bool:
        sent.append(str(job_id))
        return True

    monkeypatch.setattr("webapp.jobs.dispatch.send", record)
    return sent


@pytest.fixture(autouse=True)
def solved_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Solve each problem of rooms once in a process, unless the test is about solving."""
    if request.node.get_closest_marker("solves") is None:
        monkeypatch.setattr("webapp.housing.jobs.place_in_rooms", place_once)


@pytest.fixture
def migrate_to(db: None, tmp_path: Path) -> Iterator[MigrateTo]:
    """A function to versions of applications, in a database that is empty at first."""
    with empty_database(tmp_path):
        yield migrate_default_to


@pytest.fixture
def pseudo_language(tmp_path: Path, settings: LazySettings) -> Iterator[None]:
    """An installation whose staff read every translated text in brackets."""
    locale = Path(settings.BASE_DIR) / "webapp" / "locale" / "en" / "LC_MESSAGES"
    for domain in ("django", "djangojs"):
        write_catalogue(tmp_path / CODE, bracketed(locale / f"{domain}.po"), domain)
    settings.LOCALE_PATHS = [tmp_path, *settings.LOCALE_PATHS]
    settings.STAFF_LANGUAGE = settings.LANGUAGE_CODE = CODE
    yield
    translation.deactivate()


@pytest.fixture
def northfield(db: None) -> Organisation:
    return Organisation.objects.create(name="Northfield", department="Residential Life")


@pytest.fixture
def southgate(db: None) -> Organisation:
    return Organisation.objects.create(name="Southgate", department="Housing")


def make_user(name: str, organisation: Organisation, role: str) -> User:
    return User.objects.create_user(
        username=name, password=PASSWORD, organisation=organisation, role=role
    )


@pytest.fixture
def alice(northfield: Organisation) -> User:
    """A viewer."""
    return make_user("alice", northfield, Role.VIEWER)


@pytest.fixture
def bob(northfield: Organisation) -> User:
    """Staff."""
    return make_user("bob", northfield, Role.STAFF)


@pytest.fixture
def carol(northfield: Organisation) -> User:
    """An administrator."""
    return make_user("carol", northfield, Role.ADMINISTRATOR)


@pytest.fixture
def otto(northfield: Organisation) -> User:
    """Staff, and an operator of the installation."""
    user = make_user("otto", northfield, Role.STAFF)
    user.is_operator = True
    user.save()
    return user


@pytest.fixture
def mallory(southgate: Organisation) -> User:
    """Staff of another organisation."""
    return make_user("mallory", southgate, Role.STAFF)


@pytest.fixture
def client_of() -> Callable[[User], Client]:
    """A function from a person to a client that is signed in as that person."""

    def sign_in(user: User) -> Client:
        client = Reader()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        return client

    return sign_in


@pytest.fixture
def program_of() -> Callable[..., Program]:
    """A function from a person to a program that acts for that person."""
    return make_program


@pytest.fixture
def make_cohort() -> Callable[..., Cohort]:
    """A function that imports a survey as a person."""
    return import_cohort


@pytest.fixture(scope="session")
def past() -> Past:
    """A small university that was simulated and learned from once."""
    return simulate_past()


@pytest.fixture
def returning(bob: User, past: Past) -> Cohort:
    return cohort_of(bob, past, 0, "Returning 2024", with_pairs=True)


@pytest.fixture
def later_year(bob: User, past: Past) -> Cohort:
    return cohort_of(bob, past, 1, "Returning 2025", with_pairs=True)


@pytest.fixture
def first_years(bob: User, past: Past) -> Cohort:
    return cohort_of(bob, past, 2, "First-years", with_pairs=False)


@pytest.fixture
def learned(bob: User, past: Past, returning: Cohort) -> LearnedModel:
    """A learned model, from the weights of the session."""
    return learned_from(bob, past, returning)


@pytest.fixture
def make_pairs(bob: User, first_years: Cohort, learned: LearnedModel) -> Callable[..., Placement]:
    """A function that proposes pairs for the first-years and computes them."""
    return partial(place_pairs, bob, first_years, learned)


@pytest.fixture
def campus(bob: User) -> BuildingList:
    """Two halls: doubles for women and men, triples and singles for anybody; one closed room."""
    return make_campus(bob)


@pytest.fixture
def urls(
    bob: User, carol: User, make_pairs: Callable[..., Placement], campus: BuildingList
) -> dict[str, str]:
    """Every address of the pages, with objects of Northfield that exist."""
    return addresses_of_pages(bob, make_pairs(), campus)


@pytest.fixture(scope="session")
def openid_server() -> Iterator[OpenIDServer]:
    with running_provider() as server:
        yield server


@pytest.fixture
def openid(carol: User, openid_server: OpenIDServer) -> IdentityProvider:
    """Northfield's provider."""
    return make_provider(carol, openid_server)


@pytest.fixture
def make_set() -> MakeSet:
    """A function that makes a set of some images, the first few of them with masks."""
    return make_image_set


@pytest.fixture
def image_set(bob: User) -> ImageSet:
    """Three images of Northfield, two of them with masks."""
    return make_image_set(bob)


@pytest.fixture
def image(image_set: ImageSet) -> ImageFile:
    return image_set.files.get(name="leaf_0.jpg")


@pytest.fixture
def segmenter(bob: User) -> Segmenter:
    """A model whose weights are noise, with a real file."""
    return make_segmenter(bob)


@pytest.fixture
def batch(bob: User, segmenter: Segmenter, image_set: ImageSet) -> PredictionBatch:
    """All three images predicted."""
    return make_batch(bob, segmenter, image_set)


@pytest.fixture
def discs(bob: User) -> PredictionBatch:
    """Two images, each of two touching discs, one at the border, one alone."""
    return make_discs(bob)
