"""Personal pages of students: who sees what, and who must not."""

from collections.abc import Callable
from datetime import date

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.db import connection
from django.test import Client
from django.urls import reverse

from tests.webapp.factories.placed import move, placed_cohort, publish
from tests.webapp.factories.residents import Resident
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.housing.models import Place, Placement, RoommateRequest
from webapp.housing.services.terms import placement_term_set, term_save
from webapp.identity.models import IdentityProvider
from webapp.monitoring.masking import mask
from webapp.residents.links import link_to, page_of, page_of_token, token_of
from webapp.residents.models import AskState, ChangeAsk, ContactConsent, ResidentPage
from webapp.residents.services import AskConflictError, ResidentError, ask_create, ask_decide

ResidentOf = Callable[..., Resident]
ClientOf = Callable[[User], Client]
NOTHING = "Nothing is published for you now."
EVERYBODY = ("Ben Birch", "Cleo", "Dan", "Eva", "Finn", "@uni.example", "+47", "S-10")


def request(placement: Placement, asker: int, target: int | None, written: str = "") -> None:
    students = {s.number: s for s in placement.cohort.students.all()}
    RoommateRequest.objects.create(
        cohort=placement.cohort, student=students[asker], written=written, source="f.csv",
        target=students[target] if target else None,
    )  # fmt: skip


# -- before publishing, and afterwards -------------------------------------------------------------


def test_nothing_is_shown_before_publishing_and_after_withdrawing(
    resident: ResidentOf, draft: Placement
) -> None:
    request(draft, 1001, 1003, "Cleo")
    anna = resident(1001)
    for _ in range(2):
        page = anna.read()
        assert page.has("heading", NOTHING)
        for secret in (*EVERYBODY, "Alder", "101", "Whom I asked"):
            assert secret not in page.source, secret
        assert anna.ask().status_code == 422
        assert anna.share(1002).status_code == 422
        assert not ChangeAsk.objects.exists()
        publish(draft)
        assert anna.read().has("heading", "Alder 101", exactly=True)
        Placement.objects.update(published_at=None)


def test_the_page_shows_room_term_and_roommates_by_name_alone(
    resident: ResidentOf, bob: User, placement: Placement
) -> None:
    term = term_save(
        user=bob, term=None, name="Autumn", code="", starts_on=date(2026, 8, 20),
        ends_on=date(2026, 12, 18),
    )  # fmt: skip
    placement_term_set(user=bob, placement=placement, term=term)
    page = resident(1001).read()
    assert page.has("heading", "Alder 101", exactly=True)
    assert page.says("Northfield")
    assert page.one("main").says("Ben Birch")
    assert page.said_of("Term") == "Autumn, 2026-08-20 – 2026-12-18"
    for secret in ("Cleo", "Dan", "Eva", "Finn", "@uni.example", "+47", "S-10"):
        assert secret not in page.source, secret
    assert resident(1005).read().says("Nobody: the room is yours alone for now.")
    page = resident(1006).read()
    assert page.has("heading", "You have no room yet.")
    above = page.source.partition("<main>")[2].partition("Whom I asked")[0]
    assert "roommates" not in above.lower()


def test_somebody_who_withdrew_sees_nothing_and_is_not_shown(
    resident: ResidentOf, placement: Placement
) -> None:
    ben = resident(1002)
    Place.objects.filter(number=1002).update(room=None, bed=None, has_left=True)
    assert ben.read().has("heading", NOTHING)
    assert ben.ask().status_code == 422
    assert "Ben" not in resident(1001).read().source


# -- the link --------------------------------------------------------------------------------------


def test_a_link_is_exchanged_for_a_cookie_and_is_in_no_address_afterwards(
    placement: Placement,
) -> None:
    page = page_of(placement.cohort.students.get(number=1001))
    token, client = token_of(page), Client()
    address = reverse("residents:enter", args=[token])
    assert address == f"/q/{token}/"
    assert mask(f"GET {address} from {address}?x=1") == "GET /q/[link]/ from /q/[link]/?x=1"
    assert token not in mask(f"key {token} in a sentence")
    first = client.get(address)
    assert first.url == f"{address}?cookies=1"
    assert first["Referrer-Policy"] == "no-referrer"
    second = client.get(first.url)
    assert token not in second.url
    cookie = next(value for name, value in client.cookies.items() if name.startswith("home-"))
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert cookie["path"] == second.url
    answer = client.get(second.url)
    page = Page(answer)
    assert page.has("heading", "Alder 101", exactly=True)
    assert token not in page.source
    assert "no-store" in answer["Cache-Control"]
    assert Client().get(second.url).status_code == 404, "the address opens nothing"
    without = Page(Client().get(f"{address}?cookies=1"))
    assert without.has("heading", "This browser takes no cookies.")


def test_forged_revoked_and_foreign_links_open_nothing(
    resident: ResidentOf, client_of: ClientOf, bob: User, placement: Placement
) -> None:
    anna, ben = resident(1001), resident(1002)
    forged = anna.token[:-2] + ("aa" if anna.token[-2:] != "aa" else "bb")
    assert Client().get(f"/q/{forged}/").status_code == 404
    key = anna.token.partition(".")[2]
    assert page_of_token(f"{ben.page.pk}.{key}") is None
    assert anna.client.get(ben.at("home")).status_code == 404
    anna.client.cookies[f"home-{ben.handle}"] = anna.token
    assert anna.client.get(ben.at("home")).status_code == 404
    address = reverse("residents:page-renew", args=[placement.cohort_id, 1001])
    client_of(bob).post(address)
    assert anna.client.get(anna.at("home")).status_code == 404
    assert Client().get(f"/q/{anna.token}/").status_code == 404
    assert AuditLine.objects.get(verb="made a personal link invalid").details["student"] == "S-1001"


def test_a_provider_opens_the_page_of_its_own_student_alone(
    bob: User, mallory: User, placement: Placement
) -> None:
    theirs = placed_cohort(mallory, "Theirs")
    publish(theirs)
    theirs.cohort.students.filter(number=1001).update(original_id="+470")
    provider = IdentityProvider.objects.create(
        organisation=bob.organisation, name="Uni", protocol="openid_connect", is_on=True,
        takes_students=True, server_url="https://idp.invalid",
    )  # fmt: skip
    address = reverse("residents:sign-in", args=[bob.organisation.sign_in_code])
    client = Client()
    assert "openid" in client.get(address).url or "oidc" in client.get(address).url

    def signed_in(number: str) -> Client:
        one = Client()
        session = one.session
        session["student"] = {
            "provider": provider.key, "subject": "x", "number": number, "email": ""
        }  # fmt: skip
        session.save()
        one.cookies["sessionid"] = session.session_key
        return one

    page = Page(signed_in("+471").get(address, follow=True))
    assert page.one("main").says("Anna Ash"), "Ben's page names Anna"
    for number in ("", "nobody", "S-1001"):
        page = Page(signed_in(number).get(address, follow=True))
        assert page.has("heading", "No room is published for you yet.")
    other = reverse("residents:sign-in", args=[mallory.organisation.sign_in_code])
    assert signed_in("+470").get(other, follow=True).status_code == 404, "not their provider"
    Placement.objects.update(published_at=None)
    page = Page(signed_in("+471").get(address, follow=True))
    assert page.has("heading", "No room is published for you yet.")


# -- contacts --------------------------------------------------------------------------------------


def test_contacts_are_shown_only_if_both_agree_and_while_both_do(
    resident: ResidentOf, placement: Placement
) -> None:
    anna, ben = resident(1001), resident(1002)
    assert anna.share(1002, "+1 555 0100").status_code == 302
    for page in (anna.read(), ben.read()):
        assert "@uni.example" not in page.source
    assert "0100" not in ben.read().source
    ben.share(1001)
    assert anna.read().one("link", "ben@uni.example").address == "mailto:ben@uni.example"
    assert ben.read().one("link", "anna@uni.example").address == "mailto:anna@uni.example"
    assert ben.read().has("paragraph", "anna@uni.example +1 555 0100")
    ben.stop_sharing(1001)
    assert "@uni.example" not in anna.read().source
    assert "@uni.example" not in ben.read().source
    assert "0100" not in ben.read().source
    lines = AuditLine.objects.filter(verb__contains="share a contact")
    assert lines.count() == 3
    assert "0100" not in str(list(lines.values_list("details", flat=True)))


def test_nobody_but_a_present_roommate_gets_a_contact(
    resident: ResidentOf, placement: Placement
) -> None:
    anna, ben, cleo = resident(1001), resident(1002), resident(1003)
    assert anna.share(1003).status_code == 422
    assert cleo.share(1001).status_code == 422
    assert not ContactConsent.objects.exists()
    anna.share(1002)
    ben.share(1001)
    move(placement, 1002, "104")
    assert "@uni.example" not in anna.read().source, "they do not live together any more"
    assert "@uni.example" not in ben.read().source
    ben.stop_sharing(1001)
    move(placement, 1002, "101", bed=2)
    assert "ben@uni.example" not in anna.read().source, "taken back meanwhile"


def test_a_wrong_contact_is_given_back(resident: ResidentOf, placement: Placement) -> None:
    anna = resident(1001)
    long = "<b>" + "x" * 200
    refused = Page(anna.share(1002, long), status=422)
    assert refused.field("Another way to reach me").value == long
    for nonsense in ("²", "9" * 50, "-1", ""):
        assert anna.client.post(anna.at("contact"), {"roommate": nonsense}).status_code == 422
    assert anna.client.get(anna.at("contact")).status_code == 302


# -- requests --------------------------------------------------------------------------------------


def test_nobody_learns_who_requested_them_unless_both_did(
    resident: ResidentOf, placement: Placement
) -> None:
    request(placement, 1003, 1001, "Anna Ash")
    page = resident(1001).read()
    assert "Cleo" not in page.source
    assert page.has("paragraph", "You asked for nobody.")
    request(placement, 1001, 1003, "my friend C.")
    page = resident(1001).read()
    assert page.one("listitem", "Cleo Cedar").says("You asked for each other, but live apart.")
    RoommateRequest.objects.filter(student__number=1003).update(is_ignored=True)
    page = resident(1001).read()
    assert "Cleo" not in page.source, "a request that staff left out is none"
    assert page.one("listitem", "my friend C.").says("You do not live together.")


def test_each_state_of_a_request_has_its_sentence(
    resident: ResidentOf, placement: Placement
) -> None:
    request(placement, 1001, 1002)
    request(placement, 1001, 1004)
    request(placement, 1001, None, "<i>Zed</i>")
    page = resident(1001).read()
    assert page.one("listitem", "Ben Birch").says("You live together.")
    assert page.one("listitem", "A person you named").says("You do not live together.")
    assert page.one("listitem", "<i>Zed</i>").says("could not tell whom you mean")
    assert "Dan" not in page.source, "who was matched by staff is not named"


# -- changes ---------------------------------------------------------------------------------------


def test_a_change_is_asked_for_decided_and_read(
    resident: ResidentOf, client_of: ClientOf, bob: User, placement: Placement
) -> None:
    anna = resident(1001)
    assert anna.ask("It is <b>loud</b>.").status_code == 302
    assert anna.ask("Again").status_code == 422, "one at a time"
    assert anna.read().has("paragraph", "Your housing office has not decided yet.")
    assert "loud" not in resident(1002).read().source, "no roommate reads it"
    client, asks = client_of(bob), reverse("residents:asks", args=[placement.pk])
    page = Page(client.get(asks))
    assert page.one("listitem", "Anna Ash").says("It is <b>loud</b>.")
    ask = ChangeAsk.objects.get()
    address = reverse("residents:ask-decide", args=[placement.pk, ask.pk])
    assert page.one("link", "Decide about Anna Ash").address == address
    sent = {"state": "declined", "answer": "", "version": ask.version}
    refused = Page(client.post(address, sent), status=422)
    answer = refused.field("Answer to the student")
    assert "Write why. The student reads it." in answer.description
    client.post(address, {"state": "accepted", "answer": "From Monday", "version": ask.version})
    page = anna.read()
    assert page.has("paragraph", "Your housing office agreed.")
    assert page.has("paragraph", "From Monday", exactly=True)
    assert "bob" not in page.source, "the office answers, not a person"
    stale = client.post(address, {"state": "declined", "answer": "x", "version": ask.version})
    assert stale.status_code == 422
    assert anna.client.post(anna.at("take-back", ask.pk)).status_code == 409
    assert placement.places.get(number=1001).room.name == "101", "nobody is moved by it"
    verbs = set(AuditLine.objects.values_list("verb", flat=True))
    assert {"asked for a change of room", "agreed to a change of room"} <= verbs
    assert "loud" not in str(list(AuditLine.objects.values_list("details", flat=True)))


def test_a_change_is_taken_back_by_its_student_alone(
    resident: ResidentOf, bob: User, placement: Placement
) -> None:
    anna, ben = resident(1001), resident(1002)
    anna.ask()
    ask = ChangeAsk.objects.get()
    assert ben.client.post(ben.at("take-back", ask.pk)).status_code == 409
    ask.refresh_from_db()
    assert ask.is_open
    anna.client.post(anna.at("take-back", ask.pk))
    ask.refresh_from_db()
    assert ask.state == AskState.TAKEN_BACK
    with pytest.raises(AskConflictError):
        ask_decide(user=bob, ask=ask, state="accepted", answer="", version=ask.version)
    assert anna.ask("Now for another reason").status_code == 302


def test_what_was_typed_is_given_back(resident: ResidentOf, placement: Placement) -> None:
    anna = resident(1001)
    for sent in ({"wish": "moon", "text": "kept <words>"}, {"wish": "", "text": "kept <words>"}):
        refused = Page(anna.client.post(anna.at("ask"), sent), status=422)
        assert refused.field("Why?").value == "kept <words>"
        assert refused.has("alert", "Choose what you want to change.")
    assert anna.ask("x" * 2_001).status_code == 422
    assert anna.ask("  ").status_code == 422
    assert not ChangeAsk.objects.exists()


def test_asking_has_limits(resident: ResidentOf, placement: Placement) -> None:
    anna = resident(1001)
    for k in range(5):
        ask_create(page=anna.page, wish="room", text=f"{k}")
        ChangeAsk.objects.update(state=AskState.DECLINED)
    with pytest.raises(ResidentError, match="several times today"):
        ask_create(page=anna.page, wish="room", text="again")
    statuses = {anna.stop_sharing(1002).status_code for _ in range(61)}
    assert statuses == {302, 429}


def test_staff_of_others_and_viewers_read_no_change(
    resident: ResidentOf, client_of: ClientOf, alice: User, mallory: User, placement: Placement
) -> None:
    resident(1001).ask("Secret reason")
    ask = ChangeAsk.objects.get()
    theirs = placed_cohort(mallory, "Theirs")
    addresses = [
        reverse("residents:asks", args=[placement.pk]),
        reverse("residents:ask-decide", args=[placement.pk, ask.pk]),
    ]
    for address in addresses:
        assert client_of(alice).get(address).status_code == 403
        assert client_of(mallory).get(address).status_code == 404
    crossed = reverse("residents:ask-decide", args=[theirs.pk, ask.pk])
    sent = {"state": "accepted", "version": 1}
    assert client_of(mallory).post(crossed, sent).status_code == 404
    renew = reverse("residents:page-renew", args=[placement.cohort_id, 1001])
    assert client_of(alice).post(renew).status_code == 403
    assert client_of(mallory).post(renew).status_code == 404
    student = reverse("students:student", args=[placement.cohort_id, 1001])
    assert "Secret reason" not in Page(client_of(alice).get(student)).source
    ask.refresh_from_db()
    assert ask.is_open


def test_staff_without_the_right_to_names_decide_by_id(
    resident: ResidentOf, client_of: ClientOf, bob: User, placement: Placement
) -> None:
    resident(1001).ask()
    bob.organisation.names_for = "administrators"
    bob.organisation.save()
    page = Page(client_of(bob).get(reverse("residents:asks", args=[placement.pk])))
    assert page.has("listitem", "S-1001")
    assert "Anna" not in page.source


# -- languages, storage, links in letters ----------------------------------------------------------


def test_the_page_is_whole_in_spanish(resident: ResidentOf, placement: Placement) -> None:
    anna = resident(1001, "es")
    anna.ask("Hay ruido.")
    page = anna.read()
    assert page.element.get("lang") == "es"
    assert page.has("heading", "Mis compañeros de habitación")
    assert page.has("button", "Compartir mi contacto")
    assert page.has("button", "Retirar")
    for words in ("My roommates", "Share", "Ask for", "decided"):
        assert words not in page.source, words
    french = resident(1003, "fr").read()
    untranslated = "a language without a translation becomes English"
    assert french.has("heading", "My roommates"), untranslated


def test_texts_of_students_are_encrypted(
    resident: ResidentOf, settings: LazySettings, placement: Placement
) -> None:
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    anna = resident(1001)
    anna.share(1002, "+1 555 0100")
    anna.ask("A private reason")
    with connection.cursor() as cursor:
        cursor.execute("SELECT contact FROM residents_residentpage")
        contacts = str(cursor.fetchall())
        cursor.execute("SELECT text FROM residents_changeask")
        texts = str(cursor.fetchall())
    assert "0100" not in contacts
    assert "private" not in texts


def test_a_link_needs_a_public_address(settings: LazySettings, placement: Placement) -> None:
    student = placement.cohort.students.get(number=1001)
    settings.PUBLIC_URL = ""
    assert link_to(student) == ""
    assert not ResidentPage.objects.exists()
    settings.PUBLIC_URL = "https://hall.example"
    assert link_to(student).startswith("https://hall.example/q/")


# -- suites ---------------------------------------------------------------------------------------


def test_suite_mates_are_named_and_share_contacts_as_roommates_do(
    resident: ResidentOf, placement: Placement
) -> None:
    placement.buildings.rooms.filter(name__in=("101", "102")).update(suite="1")
    anna, cleo = resident(1001), resident(1003)
    page = anna.read()
    assert page.has("heading", "My suite mates")
    assert page.one("main").says("Cleo Cedar")
    assert "Eva Elm" not in page.source
    assert "cleo@uni.example" not in page.source
    anna.share(1003, "Room 101, knock")
    assert "cleo@uni.example" not in anna.read().source
    cleo.share(1001)
    assert anna.read().has("link", "cleo@uni.example")
    assert cleo.read().has("paragraph", "Room 101, knock")
    placement.buildings.rooms.filter(name="102").update(suite="")
    assert "cleo@uni.example" not in anna.read().source
    assert anna.share(1003).status_code == 422


def test_a_request_for_a_suite_mate_has_its_own_state(
    resident: ResidentOf, placement: Placement
) -> None:
    placement.buildings.rooms.filter(name__in=("101", "102")).update(suite="1")
    request(placement, 1001, 1003, "Cleo")
    page = resident(1001).read()
    assert page.one("listitem", "Cleo Cedar").says("You live in the same suite.")
    assert not page.says("You live together.")
