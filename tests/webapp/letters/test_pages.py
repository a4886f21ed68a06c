"""The pages of letters: who sees them, who sends, and what they say."""

from collections.abc import Callable

import pytest
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.placed import placed_cohort
from tests.webapp.roles import Page
from tests.webapp.typed_forms import field_values
from webapp.accounts.models import User
from webapp.housing.models import Placement
from webapp.letters.models import Letter, LetterTemplate
from webapp.letters.services.letters import letters_send

ClientOf = Callable[[User], Client]


def at(placement: Placement, name: str = "placement") -> str:
    return reverse(f"letters:{name}", args=[placement.pk])


def test_staff_write_and_administrators_send(
    client_of: ClientOf, bob: User, carol: User, placement: Placement
) -> None:
    staff, administrator = client_of(bob), client_of(carol)
    assert Page(staff.get(at(placement))).has("paragraph", "There is no letter yet")
    first = Page(staff.get(reverse("letters:template-new")))
    assert "[hall], [place]" in first.field("Letter").value
    fields = {"name": "Rooms", "subject": "Hello [name]", "text": "You live in [hall] [room]."}
    page = Page(staff.post(reverse("letters:template-new"), fields, follow=True))
    template = LetterTemplate.objects.get()
    letters = page.one("link", "Open the letters of Rooms of First-years")
    assert letters.address == f"{at(placement)}?letter={template.pk}"
    page = Page(staff.get(at(placement), {"student": "S-1003"}))
    assert page.one("article", "Letter of Cleo Cedar").says("You live in Alder 102.")
    assert page.says("An administrator sends them.")
    assert not page.has("button", "Send 5")
    assert not page.has("dialog", "Send these letters")
    sent = {"letter": str(template.pk), "version": str(placement.version)}
    assert staff.post(at(placement, "placement-send"), sent).status_code == 403
    page = Page(administrator.get(at(placement)))
    assert page.has("button", "Send 5…")
    assert page.one("dialog", "Send these letters").has("button", "Send 5 letters")
    page = Page(administrator.post(at(placement, "placement-send"), sent, follow=True))
    assert page.has("status", "5 letters are on their way.")
    assert letters_send() == 5
    page = Page(staff.get(at(placement), {"letter": template.pk}))
    assert page.has("paragraph", "5 sent, 0 on their way")
    assert page.one("row", "Anna Ash").has("cell", "anna@uni.example")
    test = {**sent, "student": "S-1002", "address": "bob@uni.example"}
    page = Page(staff.post(at(placement, "placement-test"), test, follow=True))
    assert page.has("status", "The letter of Ben Birch (S-1002) went to bob@uni.example.")
    assert mail.outbox[-1].subject == "Test: Hello Ben Birch"
    bounced = {**sent, "addresses": "anna@uni.example, x@y.example"}
    page = Page(staff.post(at(placement, "placement-returned"), bounced, follow=True))
    assert page.has("status", "1 letter is marked as come back.")
    page = Page(administrator.get(at(placement), {"show": "failed"}))
    assert page.one("row", "Anna Ash").says("Came back, as staff noted.")
    several = " ".join(letter.address for letter in template.letters.filter(state=Letter.SENT))
    n_sent = len(several.split())
    listed = {**bounced, "addresses": several}
    asked = staff.post(at(placement, "placement-returned"), listed)
    field = Page(asked, status=422).field("E-mails of the mails that bounced")
    assert f"{n_sent} letters went to these addresses." in field.description
    assert field_values(asked, "asked") == [str(n_sent)]
    listed["asked"] = n_sent + 1
    assert staff.post(at(placement, "placement-returned"), listed).status_code == 422
    assert template.letters.filter(state=Letter.SENT).count() == n_sent > 1
    page = Page(administrator.post(at(placement, "placement-retry"), sent, follow=True))
    assert page.has("status", "1 letter is on its way.")
    listed["asked"] = n_sent
    page = Page(staff.post(at(placement, "placement-returned"), listed, follow=True))
    assert page.has("status", f"{n_sent} letters are marked as come back.")


def test_a_file_of_addresses_by_the_page(
    client_of: ClientOf, bob: User, placement: Placement, template: LetterTemplate
) -> None:
    file = SimpleUploadedFile("a.csv", b"id,email\n+470,ann@uni.example\n")
    fields = {"letter": str(template.pk), "file": file}
    client = client_of(bob)
    preview = client.post(at(placement, "placement-addresses"), fields).url
    assert Page(client.get(preview)).has("button", "Import e-mails of 1 student")
    page = Page(client.post(f"{preview}confirm/", {"version": 1}, follow=True))
    assert page.has("status", "1 student found.")
    assert placement.cohort.students.get(number=1001).email == "ann@uni.example"


def test_a_letter_with_a_field_that_is_none_is_given_back(client_of: ClientOf, bob: User) -> None:
    fields = {"name": "Rooms", "subject": "S", "text": "In [hal]"}
    page = Page(client_of(bob).post(reverse("letters:template-new"), fields), status=422)
    assert "Did you mean [hall]?" in page.field("Letter").description
    assert page.field("Letter").value == "In [hal]", "nobody writes it again"


def test_a_viewer_reads_no_letter(
    client_of: ClientOf, alice: User, placement: Placement, template: LetterTemplate
) -> None:
    client = client_of(alice)
    for url in (at(placement), reverse("letters:templates"), at(placement, "placement-file")):
        assert client.get(url).status_code == 403
    assert reverse("letters:templates") not in Page(client.get("/")).source


def test_a_letter_of_another_organisation_is_none(
    client_of: ClientOf, bob: User, carol: User, mallory: User, template: LetterTemplate
) -> None:
    foreign = placed_cohort(mallory, "Southgate")
    client = client_of(carol)
    assert client.get(at(foreign)).status_code == 404
    assert client.get(reverse("letters:template", args=[template.pk])).status_code == 200
    assert (
        client_of(mallory).get(reverse("letters:template", args=[template.pk])).status_code == 404
    )
    stolen = {"letter": str(template.pk), "version": "1"}
    assert client_of(mallory).get(at(foreign, "placement-file"), stolen).status_code == 404
    assert not Letter.objects.exists()


@pytest.mark.parametrize("number", ["S-9999", "²", "x" * 90, "S-1006"])
def test_a_student_who_is_none_is_said(
    client_of: ClientOf, bob: User, placement: Placement, template: LetterTemplate, number: str
) -> None:
    page = Page(client_of(bob).get(at(placement), {"student": number}))
    assert page.has("status", "No student of that id or name has a room here")


def test_a_letter_is_found_by_name_and_hidden_names_stay_hidden(
    client_of: ClientOf, bob: User, carol: User, placement: Placement
) -> None:
    client = client_of(bob)
    fields = {"name": "Rooms", "subject": "Hello [name]", "text": "You live in [hall] [room]."}
    client.post(reverse("letters:template-new"), fields)
    page = client.get(at(placement), {"student": "birch BEN"})
    assert page.context["chosen"].student.label == "S-1002"
    assert not page.context["not_found"]
    assert client.get(at(placement), {"student": "nobody"}).context["not_found"]
    sent = {"letter": str(LetterTemplate.objects.get().pk), "version": str(placement.version)}
    client_of(carol).post(at(placement, "placement-send"), sent)
    letters_send()
    assert Page(client.get(at(placement))).has("cell", "anna@uni.example")
    client.post(reverse("students:hide-names"), {"hide": "1"})
    shown = Page(client.get(at(placement), {"student": "S-1002"}))
    for words in ("@uni.example", "Birch", "Hello Ben"):
        assert words not in shown.source, words
    assert shown.said_of("Subject") == "Hello [name]"
