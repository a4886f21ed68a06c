"""Behind a proxy, a visitor keeps an address: nobody's failures lock anybody else out."""

import pytest
from django.conf import LazySettings
from django.test import Client, RequestFactory

from tests.webapp.conftest import PASSWORD
from webapp.accounts.models import User
from webapp.common.client_address import ClientAddressMiddleware, read_networks

SIGN_IN = "/accounts/sign-in/"
PROXY = "10.0.0.5"


def seen(headers: dict[str, str], *, sender: str = PROXY) -> dict[str, str]:
    """The request's environment as a view sees it."""
    request = RequestFactory().get("/", REMOTE_ADDR=sender, headers=headers)
    ClientAddressMiddleware(lambda request: None)(request)  # type: ignore[arg-type, return-value]
    return request.META


@pytest.fixture
def behind_proxy(settings: LazySettings) -> None:
    settings.TRUSTED_PROXIES = read_networks("10.0.0.0/24, 192.168.7.1, fd00::/8")
    settings.TRUST_PROXY = False


@pytest.mark.usefixtures("behind_proxy")
@pytest.mark.parametrize(
    ("chain", "address"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("203.0.113.9, 198.51.100.7", "198.51.100.7"),  # the first is what a stranger wrote
        ("198.51.100.7, 10.0.0.6, 192.168.7.1", "198.51.100.7"),
        ("198.51.100.7:4711", "198.51.100.7"),
        ("[2001:db8::7]:4711", "2001:db8::7"),
        ("198.51.100.7, nonsense", PROXY),
        ("", PROXY),
        ("10.0.0.9", "10.0.0.9"),
    ],
)
def test_the_nearest_address_that_no_proxy_has_counts(chain: str, address: str) -> None:
    assert seen({"x-forwarded-for": chain})["REMOTE_ADDR"] == address


@pytest.mark.usefixtures("behind_proxy")
def test_a_stranger_chooses_no_address_and_no_host() -> None:
    forged = {"x-forwarded-for": "1.2.3.4", "x-forwarded-proto": "https", "x-forwarded-host": "x"}
    found = seen(forged, sender="198.51.100.7")
    assert found["REMOTE_ADDR"] == "198.51.100.7"
    assert not [name for name in found if name.startswith("HTTP_X_FORWARDED")]


def test_trust_in_whoever_sends_takes_the_last_entry(settings: LazySettings) -> None:
    settings.TRUSTED_PROXIES, settings.TRUST_PROXY = [], True
    assert seen({"x-forwarded-for": "1.2.3.4, 198.51.100.7"})["REMOTE_ADDR"] == "198.51.100.7"
    assert seen({})["REMOTE_ADDR"] == PROXY


@pytest.mark.usefixtures("behind_proxy")
def test_nobody_locks_an_administrator_out_from_elsewhere(carol: User) -> None:
    """All visitors behind the proxy shared its address: five bad guesses kept the owner out."""
    data = {"username": "carol", "password": "wrong"}
    stranger = Client(REMOTE_ADDR=PROXY, headers={"x-forwarded-for": "203.0.113.9"})
    for _ in range(5):
        stranger.post(SIGN_IN, data)
    assert stranger.post(SIGN_IN, data | {"password": PASSWORD}).status_code == 429
    owner = Client(REMOTE_ADDR=PROXY, headers={"x-forwarded-for": "198.51.100.7"})
    assert owner.post(SIGN_IN, data | {"password": PASSWORD}).status_code == 302


def test_a_bad_network_is_named() -> None:
    with pytest.raises(ValueError, match=r"10\.0\.0\.999"):
        read_networks("10.0.0.1, 10.0.0.999")
