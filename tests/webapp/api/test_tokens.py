"""Tokens: made once, shown once, hashed, revocable, never more than their person."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.webapp.factories.programs import Program
from tests.webapp.roles import Page
from tests.webapp.typed_forms import check_outlives_a_session, check_refused
from webapp.api.models import ApiToken
from webapp.api.services import secret_digest, token_create, token_find, token_revoke
from webapp.audit.models import AuditLine


def test_only_the_hash_is_kept(bob) -> None:
    token, secret = token_create(user=bob, name="sync", may_change=False, days=30)
    assert secret.startswith("bh_")
    assert len(secret) > 40
    stored = [str(value) for value in ApiToken.objects.values().get().values()]
    assert not any(secret in value for value in stored)
    assert token.digest == secret_digest(secret)


def test_the_page_shows_the_secret_once(client_of, bob) -> None:
    client = client_of(bob)
    answer = client.post("/api/tokens/", {"name": "sync", "days": "30"})
    page = Page(answer)
    secret = page.element.xpath("//*[@data-secret]")[0].text_content()
    assert token_find(secret=secret) is not None
    assert secret not in Page(client.get("/api/tokens/")).source
    assert answer["Cache-Control"] == "no-store"


def test_a_token_needs_a_name(client_of, bob) -> None:
    assert client_of(bob).post("/api/tokens/", {"name": "", "days": "30"}).status_code == 422
    assert not ApiToken.objects.exists()


def test_a_refused_token_keeps_what_was_typed(client_of, bob) -> None:
    typed = {"name": "", "days": "365", "may_change": "on"}
    page = client_of(bob).post("/api/tokens/", typed)
    check_refused(page, typed, field="name", error="This field is required.")
    typed["name"] = "nightly sync"
    client = check_outlives_a_session(client_of, bob, "/api/tokens/", typed)
    assert not ApiToken.objects.exists()
    client.post("/api/tokens/", typed)
    assert ApiToken.objects.get().may_change


def test_people_see_their_own_and_administrators_all(client_of, alice, bob, carol) -> None:
    token_create(user=bob, name="of bob", may_change=False, days=30)
    assert "of bob" not in Page(client_of(alice).get("/api/tokens/")).source
    assert Page(client_of(bob).get("/api/tokens/")).has("row", "of bob")
    assert Page(client_of(carol).get("/api/tokens/")).has("row", "of bob")


def test_nobody_revokes_the_token_of_another_but_administrators(
    client_of, alice, bob, carol, mallory
) -> None:
    token, secret = token_create(user=bob, name="sync", may_change=False, days=30)
    url = f"/api/tokens/{token.pk}/revoke/"
    for stranger in (alice, mallory):
        assert client_of(stranger).post(url).status_code == 404
    assert token_find(secret=secret) is not None
    client_of(carol).post(url)
    assert token_find(secret=secret) is None


def test_a_revoked_token_opens_nothing(bob, program_of) -> None:
    token, secret = token_create(user=bob, name="sync", may_change=False, days=30)
    program = Program(secret)
    assert program.get("/me").status_code == 200
    token_revoke(user=bob, token=token)
    assert program.get("/me").status_code == 401


def test_an_expired_token_opens_nothing(bob) -> None:
    token, secret = token_create(user=bob, name="sync", may_change=False, days=1)
    ApiToken.objects.filter(pk=token.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert Program(secret).get("/me").status_code == 401


def test_the_token_of_somebody_who_left_opens_nothing(bob) -> None:
    _, secret = token_create(user=bob, name="sync", may_change=False, days=None)
    bob.is_active = False
    bob.save()
    assert Program(secret).get("/me").status_code == 401


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Bearer bh_nonsense", "Basic Ym9iOnB3", "bh_x", "Bearer x y"],
)
def test_anything_else_is_refused_with_a_challenge(client: Client, header, db) -> None:
    answer = client.get("/api/v1/me", headers={"authorization": header})
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert answer["Content-Type"] == "application/problem+json"


def test_a_session_is_no_token(client_of, bob) -> None:
    """Cookies open nothing here, so no other site can make a browser act."""
    assert client_of(bob).get("/api/v1/me").status_code == 401


def test_a_reading_token_changes_nothing(bob, program_of, image_set) -> None:
    program = program_of(bob, may_change=False)
    assert program.get("/image-sets").status_code == 200
    assert program.post("/image-sets", {"name": "x"}).status_code == 403
    assert program.delete(f"/image-sets/{image_set.pk}").status_code == 403


def test_a_viewer_s_token_changes_nothing(alice, program_of) -> None:
    answer = program_of(alice, may_change=True).post("/image-sets", {"name": "x"})
    assert answer.status_code == 403
    assert answer.data["detail"] == "This needs the role staff."


def test_use_is_noted(bob, program_of) -> None:
    program_of(bob).get("/me")
    assert ApiToken.objects.get().last_used_at is not None


def test_making_and_revoking_leave_audit_lines(bob) -> None:
    token, _ = token_create(user=bob, name="sync", may_change=True, days=30)
    token_revoke(user=bob, token=token)
    token_revoke(user=bob, token=token)
    verbs = list(AuditLine.objects.filter(user=bob).values_list("verb", flat=True))
    assert verbs.count("made a token") == 1
    assert verbs.count("revoked a token") == 1
