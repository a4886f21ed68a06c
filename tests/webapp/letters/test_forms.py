"""Refused forms of letters keep the text of staff, also after a session; old addresses redirect."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.roles import Page
from tests.webapp.typed_forms import check_outlives_a_session, check_refused
from webapp.accounts.models import User
from webapp.housing.models import Placement
from webapp.letters.models import Letter, LetterTemplate
from webapp.letters.services.letters import letters_queue, letters_send
from webapp.letters.services.templates import template_save

ClientOf = Callable[[User], Client]
LONG = "Dear [name],\n\n" + "you live in [hall].\n" * 200
TYPED = {
    "name": "Welcome",
    "subject": "Your room",
    "text": LONG,
    "reply_to": "home@uni.example",
    "contact": "agreed",
    "consent_column": "Share my e-mail",
}


def at(name: str, placement: Placement) -> str:
    return reverse(f"letters:placement-{name}", args=[placement.pk])


@pytest.mark.parametrize(
    ("changed", "field", "error"),
    [
        ({"name": "Rooms"}, "name", "There is already a letter called “Rooms”."),
        ({"name": " "}, "name", "This field is required."),
        ({"subject": "Your [rom]"}, "subject", "Did you mean [room]?"),
        ({"text": LONG + "[hal]"}, "text", "Did you mean [hall]?"),
        ({"text": LONG * 4}, "text", "at most 10000 characters"),
        ({"reply_to": "nobody"}, "reply_to", "“nobody” is not an e-mail address for answers."),
        ({"contact": "x"}, "contact", "Select a valid choice."),
        ({"consent_column": ""}, "consent_column", "Name the column"),
    ],
)
def test_a_refused_letter_keeps_everything_typed(
    client_of: ClientOf,
    bob: User,
    template: LetterTemplate,
    changed: dict[str, str],
    field: str,
    error: str,
) -> None:
    typed = TYPED | changed
    page = client_of(bob).post(reverse("letters:template-new"), typed)
    kept = {name: text for name, text in typed.items() if text.strip()}
    kept.pop("contact" if changed.get("contact") else "", None)
    check_refused(page, kept, field=field, error=error)
    assert LetterTemplate.objects.count() == 1


def test_a_taken_name_keeps_the_change_of_a_letter_and_its_title(
    client_of: ClientOf, bob: User, template: LetterTemplate
) -> None:
    template_save(user=bob, template=None, name="Other", subject="S", text="[hall]")
    url = reverse("letters:template", args=[template.pk])
    typed = TYPED | {"name": "Other"}
    page = client_of(bob).post(url, typed)
    check_refused(page, typed, field="name", error="There is already a letter called “Other”.")
    assert Page(page, status=422).has("heading", "Rooms", exactly=True)
    template.refresh_from_db()
    assert template.name == "Rooms"


def test_a_letter_outlives_a_session(
    client_of: ClientOf, bob: User, template: LetterTemplate
) -> None:
    url = reverse("letters:template", args=[template.pk])
    client = check_outlives_a_session(client_of, bob, url, TYPED)
    assert client.post(url, TYPED).status_code == 302
    template.refresh_from_db()
    assert template.name == "Welcome"


def test_a_letter_is_removed_after_its_name_was_typed(
    client_of: ClientOf, bob: User, template: LetterTemplate
) -> None:
    url, client = reverse("letters:template-remove", args=[template.pk]), client_of(bob)
    page = client.post(url, {"name": "rooms"})
    check_refused(page, {"name": "rooms"}, field="name", error="The name does not match.")
    assert Page(client.get(url)).field("Type “Rooms” to confirm").value == ""
    assert client.post(url, {"name": "Rooms"}).url == reverse("letters:templates")
    assert not LetterTemplate.objects.exists()


def test_a_refused_test_keeps_address_student_and_letter(
    client_of: ClientOf, bob: User, placement: Placement, template: LetterTemplate
) -> None:
    typed = {"letter": str(template.pk), "student": "S-1002", "address": "bob at uni"}
    client = client_of(bob)
    page = client.post(at("test", placement), typed)
    check_refused(page, typed, field="address", error="Give the e-mail that the test goes to.")
    assert page.context["chosen"].student.label == "S-1002"
    check_outlives_a_session(client_of, bob, at("test", placement), typed)
    nobody = typed | {"student": "S-9999", "address": "bob@uni.example"}
    page = Page(client.post(at("test", placement), nobody), status=422)
    assert page.has("alert", "Choose a student with a room")


def test_returned_addresses_are_asked_about_with_the_list_kept(
    client_of: ClientOf, bob: User, carol: User, placement: Placement, template: LetterTemplate
) -> None:
    letters_queue(user=carol, placement=placement, template=template, version=placement.version)
    letters_send()
    typed = {"letter": str(template.pk), "addresses": "anna@uni.example\nben@uni.example"}
    client, url = client_of(bob), at("returned", placement)
    page = client.post(url, typed)
    check_refused(page, typed | {"asked": "2"}, field="addresses", error="2 letters went to these")
    unknown = typed | {"addresses": "nobody@uni.example"}
    check_refused(client.post(url, unknown), unknown, field="addresses", error="No letter went to")
    check_outlives_a_session(client_of, bob, url, typed)
    page = Page(client.post(url, typed | {"asked": "2"}, follow=True))
    assert page.has("status", "2 letters are marked as come back.")
    assert Letter.objects.filter(state=Letter.BOUNCED).count() == 2


@pytest.mark.parametrize(
    ("name", "fields", "done"),
    [
        ("act", {"act": "test", "student": "S-1002", "address": "b@uni.example"}, "went to b@uni"),
        ("act", {"act": "bounced", "addresses": "anna@uni.example"}, "1 letter is marked"),
        ("act", {"act": "stop"}, "No letter waits any more."),
        ("act", {"act": "dance"}, "There is no such action."),
        ("send", {"act": "retry"}, "There is nothing to send again."),
        ("send", {}, "The page was out of date. Load it again."),
    ],
)
def test_the_old_addresses_of_acts_still_act(
    client_of: ClientOf,
    carol: User,
    placement: Placement,
    template: LetterTemplate,
    name: str,
    fields: dict[str, Any],
    done: str,
) -> None:
    letters_queue(user=carol, placement=placement, template=template, version=placement.version)
    letters_send()
    sent = fields | {"letter": str(template.pk)}
    page = Page(client_of(carol).post(at(name, placement), sent, follow=True))
    assert page.has("status", done) or page.has("alert", done)


def test_an_act_names_a_letter_of_its_own_organisation(
    client_of: ClientOf, bob: User, mallory: User, placement: Placement
) -> None:
    foreign = template_save(user=mallory, template=None, name="Theirs", subject="S", text="[hall]")
    for letter in (str(foreign.pk), "", "²", "nonsense"):
        page = Page(client_of(bob).post(at("stop", placement), {"letter": letter}, follow=True))
        assert "Theirs" not in page.source
