"""Students by name: the store, the search, the page of a student, and who sees what."""

import re
import time
from collections.abc import Callable

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.core.exceptions import FieldError
from django.core.management import call_command
from django.db import connection
from django.urls import reverse

from tests.webapp.factories.students import NAMES, PEOPLE, imported
from tests.webapp.roles import Page
from tests.webapp.typed_forms import check_outlives_a_session, check_refused
from webapp.accounts.models import NamesFor, User
from webapp.audit.models import AuditLine
from webapp.audit.services import audit
from webapp.cohorts.models import Cohort, Student
from webapp.cohorts.naming import NamesRefusedError, Search, directory_of, shown_names
from webapp.cohorts.services.cohorts import cohort_purge, cohort_split
from webapp.cohorts.services.latecomers import latecomers_add
from webapp.housing.exports import layout_of_columns, roster_export
from webapp.housing.models import Placement
from webapp.letters.services.addresses import addresses_import
from webapp.students.audit_lines import audit_of
from webapp.students.models import StudentNote
from webapp.students.search import find_students, search
from webapp.students.services import note_add
from webapp.surveys.services.questionnaires import questionnaire_create


def raw_students() -> str:
    """Return everything that the tables of students and notes hold, as the database holds it."""
    with connection.cursor() as cursor:
        found = []
        for table in ("cohorts_student", "students_studentnote"):
            cursor.execute(f"SELECT * FROM {table}")
            found.append(repr(cursor.fetchall()))
    return "\n".join(found)


def page_of(client: object, cohort: Cohort, number: int) -> Page:
    return Page(client.get(reverse("students:student", args=[cohort.pk, number])))


# -- the store -----------------------------------------------------------------------------------


def test_an_import_keeps_who_students_are_without_being_told(cohort: Cohort) -> None:
    first = cohort.students.get(original_id="N01")
    assert (first.name, first.pronouns) == ("José Silva", "he/him")
    assert first.email == "jose.silva@northfield.example"
    assert cohort.students.get(original_id="N04").preferred == "Annie"
    assert [q["name"] for q in cohort.questions] == ["Bedtime", "Smokes"]


def test_without_a_key_names_are_plain_and_with_one_they_are_not(
    settings: LazySettings, bob: User
) -> None:
    imported(bob, "Plain")
    assert "José Silva" in raw_students()
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    call_command("encrypt_again")
    sealed = imported(bob, "Sealed")
    note_add(user=bob, student=sealed.students.all()[0], text="Allergic to Silva")
    raw = raw_students()
    # As a word: three letters in a row stand in a sealed text by chance.
    words = (*NAMES, *(row[0] for row in PEOPLE))
    assert not [word for word in words if re.search(rf"\b{re.escape(word)}\b", raw)]
    found = sealed.students.get(original_id="N02")
    assert (found.name, found.preferred) == ("Zoë Müller", "Zo")
    assert StudentNote.objects.get().text == "Allergic to Silva"
    with pytest.raises(FieldError):
        sealed.students.filter(name="Zoë Müller").exists()


def test_a_key_changes_and_numbers_are_found_under_both(
    settings: LazySettings, cohort: Cohort
) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [old]
    call_command("encrypt_again")
    settings.ENCRYPTION_KEYS = [new, old]
    assert cohort.students.get(original_id="N03").name == "Jose Maria Silva"
    assert set(cohort.students.filter(original_id__in=["N01", "N03"])) == set(
        cohort.students.exclude(original_id="N02").exclude(original_id="N04")
    )
    call_command("encrypt_again")
    settings.ENCRYPTION_KEYS = [new]
    assert cohort.students.get(original_id="N03").name == "Jose Maria Silva"


def test_numbers_on_screen_are_unique_in_an_organisation(
    bob: User, mallory: User, cohort: Cohort
) -> None:
    second = imported(bob, "Second-years")
    late = latecomers_add(user=bob, cohort=cohort, rows=[{"id": "N99"}])
    half, _ = cohort_split(user=bob, cohort=second, seed=1)
    assert [s.number for s in cohort.students.all()] == [1001, 1002, 1003, 1004, 1009]
    assert late.numbers == (1009,)
    assert [s.number for s in second.students.all()] == [1005, 1006, 1007, 1008]
    assert set(half.students.values_list("number", flat=True)) < {1005, 1006, 1007, 1008}
    assert imported(mallory, "Elsewhere").students.first().number == 1001


def test_a_number_of_a_purged_student_is_never_given_again(bob: User, cohort: Cohort) -> None:
    cohort_purge(user=bob, cohort=cohort, typed_name="First-years")
    assert imported(bob, "Again").students.first().number == 1005


def test_names_come_by_a_file_later_and_pages_show_them(bob: User, cohort: Cohort) -> None:
    assert directory_of(cohort).by_number[1001].name == "José Silva"
    data = b"Student ID,E-mail,Preferred name,Pronouns\nN01,new@x.example,Ze,they/them\n"
    addresses_import(user=bob, cohort=cohort, filename="a.csv", size=len(data), read=lambda: data)
    cohort.refresh_from_db()
    one = directory_of(cohort).by_number[1001]
    assert (one.shown, one.pronouns, one.email) == ("Ze (José Silva)", "they/them", "new@x.example")


def test_a_purge_removes_names_and_notes(bob: User, cohort: Cohort) -> None:
    note_add(user=bob, student=cohort.students.all()[0], text="Calls daily")
    cohort_purge(user=bob, cohort=cohort, typed_name="First-years")
    raw = raw_students()
    assert not [name for name in (*NAMES, "Calls daily") if name in raw]
    assert find_students(bob, "Silva") == []


# -- the search ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "numbers"),
    [
        ("jose silva", {1001, 1003}),
        ("SILVA, José", {1001, 1003}),
        ("muller", {1002}),
        ("zo", {1002}),
        ("annie", {1004}),
        ("N02", {1002}),
        ("n02", {1002}),
        ("zoe@northfield.example", {1002}),
        ("S-1003", {1003}),
        ("1003", {1003}),
        ("nobody", set()),
        ("ilva", set()),
    ],
)
def test_a_search_finds_by_name_number_e_mail_and_id(
    bob: User, cohort: Cohort, typed: str, numbers: set[int]
) -> None:
    assert {one.number for _, one in find_students(bob, typed)} == numbers


def test_viewers_and_strangers_find_nobody_by_name(
    alice: User, mallory: User, cohort: Cohort
) -> None:
    for typed in ("Silva", "N02", "zoe@northfield.example"):
        assert find_students(alice, typed) == []
        assert find_students(mallory, typed) == []
    assert [one.number for _, one in find_students(alice, "S-1002")] == [1002]
    assert find_students(mallory, "S-1002") == []


def test_a_search_answers_with_the_room_and_leads_to_the_page(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    client = client_of(bob)
    several = Page(client.get(reverse("common:search"), {"q": "jose silva"}))
    first = several.one("listitem", "José Silva (S-1001)")
    assert first.says("Baker 12, bed 1. Student of First-years")
    assert several.has("listitem", "Jose Maria Silva (S-1003)")
    one = client.get(reverse("common:search"), {"q": "Zoe Muller"})
    assert one.url == reverse("students:student", args=[placement.cohort_id, 1002])
    line = AuditLine.objects.filter(verb="searched for students").first()
    assert line.details["found"] == ["S-1002"]
    assert "Muller" not in str(line.details)


def test_a_person_of_two_years_is_found_once_and_both_years_are_shown(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    later = imported(bob, "Second-years")
    found = find_students(bob, "muller")
    assert [(cohort.name, one.number) for cohort, one in found] == [("Second-years", 1006)]
    shown = page_of(client_of(bob), later, 1006)
    assert shown.has("heading", "First-years, S-1002", exactly=True)
    before = shown.one("complementary", "Who the student is")
    assert before.one("listitem", "Baker 12").says("With José Silva")  # the roommate of that year


def test_a_search_among_2500_students_is_quick(bob: User, cohort: Cohort) -> None:
    Student.objects.bulk_create(
        Student(cohort=cohort, number=5000 + k, original_id=f"X{k}", answers=[0, 0],
                name=f"Given{k} Family{k % 97}", email=f"u{k}@x.example")
        for k in range(2500)
    )  # fmt: skip
    find_students(bob, "silva")
    start = time.process_time()
    assert len(Search("family7 given").find(cohort, by_name=True)) > 20
    assert time.process_time() - start < 0.2


@pytest.mark.parametrize("typed", ["zoe müller", "Zo", "N02", "ZOE@northfield.example", "S-1002"])
def test_a_search_on_a_placement_finds_a_person_in_every_view(
    alice: User, bob: User, client_of: Callable, placement: Placement, typed: str
) -> None:
    address = reverse("housing:placement", args=[placement.pk])
    for view in ("rooms", "table", "students"):
        page = client_of(bob).get(address, {"view": view, "q": typed})
        assert [card.room.name for card in page.context["matching"]] == ["12"], view
        if view == "students":
            assert [row.person.number for row in page.context["student_rows"]] == [1002]
        seen = client_of(alice).get(address, {"view": view, "q": typed})
        assert len(seen.context["matching"]) == (typed == "S-1002"), view
    homeless = client_of(bob).get(address, {"view": "students", "q": "annie"})
    assert [row.person.number for row in homeless.context["student_rows"]] == [1004]


def test_a_bulk_act_on_a_search_by_name_means_the_rooms_that_the_page_showed(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    client = client_of(bob)
    address = reverse("housing:placement-decide", args=[placement.pk])
    act = {"act": "accept", "scope": "matching", "count": "1", "back": "q=zoe+muller"}
    act["version"] = str(placement.version)
    asked = Page(client.post(address, act))
    assert asked.has("heading", "Accept 1 room?", exactly=True)
    client.post(address, {**act, "confirmed": "2"})
    page = client.get(reverse("housing:placement", args=[placement.pk]))
    accepted = [card.room.name for card in page.context["matching"] if card.is_accepted]
    assert accepted == ["12"]
    nobody = Page(client.post(address, {**act, "back": "q=nobody+here"}, follow=True))
    assert nobody.has("alert", "Nothing was changed") or nobody.has("paragraph", "No room")


# -- who sees what -------------------------------------------------------------------------------

PAGES = ("housing:placement", "reports:report", "reports:checks", "housing:history")


def every_page(placement: Placement) -> list[str]:
    cohort = placement.cohort_id
    pages = [reverse(name, args=[placement.pk]) for name in PAGES]
    pages += [f"{pages[0]}?view={view}" for view in ("rooms", "table", "students")]
    pages += [f"{pages[0]}?room={room.pk}" for room in placement.buildings.rooms.all()]
    pages += [f"{reverse('cohorts:cohort', args=[cohort])}?tab=students"]
    pages += [reverse("students:student", args=[cohort, number]) for number in (1001, 1004)]
    pages += [reverse("common:search") + "?q=S-1001&stay=1", reverse("common:home")]
    return pages


def test_viewers_see_no_name_and_no_request_on_any_page(
    alice: User, client_of: Callable, placement: Placement
) -> None:
    client = client_of(alice)
    for address in every_page(placement):
        response = client.get(address)
        assert response.status_code == 200, address
        shown = Page(response).source
        assert not [name for name in (*NAMES, "N01") if name in shown], address
        for words in ("request honoured", "asked for this student", "Asked for", "honoured</div>"):
            assert words not in shown, (address, words)
    assert not AuditLine.objects.filter(user=alice, verb="looked at names").exists()
    for name in ("housing:requests", "letters:ask"):
        assert client.get(reverse(name, args=[placement.cohort_id])).status_code == 403
    note = reverse("students:note", args=[placement.cohort_id, 1001])
    assert client.post(note, {"act": "add", "text": "x"}).status_code == 403


def test_staff_see_names_everywhere_and_each_look_is_audited(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    client = client_of(bob)
    cohort = placement.cohort_id
    for address in (
        reverse("housing:placement", args=[placement.pk]),
        reverse("housing:placement", args=[placement.pk]) + "?view=table",
        reverse("housing:placement", args=[placement.pk]) + "?view=students",
        reverse("reports:report", args=[placement.pk]),
        reverse("housing:requests", args=[cohort]),
        reverse("cohorts:cohort", args=[cohort]) + "?tab=students",
    ):
        AuditLine.objects.all().delete()
        assert Page(client.get(address)).one("main").says("José Silva"), address
        assert AuditLine.objects.filter(user=bob, verb="looked at names").count() == 1, address
    AuditLine.objects.all().delete()
    drawer = reverse("housing:placement", args=[placement.pk])
    part = {"HX-Request": "true", "HX-Target": "drawer"}
    room = placement.buildings.rooms.all()[0].pk
    for _ in range(2):  # a part of no open page leaves a line too, once
        shown = Page(client.get(f"{drawer}?room={room}", headers=part))
        assert shown.has("row", "José Silva")
    assert AuditLine.objects.filter(user=bob, verb="looked at names").count() == 1
    client.get(reverse("students:student", args=[cohort, 1001]))
    line = AuditLine.objects.get(user=bob, verb="looked at a student")
    assert line.details == {"student": "S-1001"}


def test_the_switch_hides_names_for_a_session(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    client = client_of(bob)
    address = reverse("housing:placement", args=[placement.pk])
    assert Page(client.get(address)).has("button", "Hide names")
    back = client.post(reverse("students:hide-names"), {"hide": "1", "back": address})
    assert back.url == address
    for page in every_page(placement):
        shown = Page(client.get(page)).source
        assert not [name for name in NAMES if name in shown and name not in page], page
    assert Page(client.get(address)).has("button", "Show names")
    assert Page(client_of(bob).get(address)).says("José Silva")
    client.post(reverse("students:hide-names"), {"hide": "0", "back": "https://evil.example/"})
    assert Page(client.get(address)).says("José Silva")


def test_an_organisation_chooses_who_sees_names(
    bob: User, carol: User, alice: User, client_of: Callable, cohort: Cohort, placement: Placement
) -> None:
    address = reverse("accounts:change-names")
    assert client_of(bob).post(address, {"names_for": "nobody"}).status_code == 403
    client_of(carol).post(address, {"names_for": NamesFor.ADMINISTRATORS})
    for person in (alice, bob, carol):
        person.organisation.refresh_from_db()
    assert shown_names(bob, cohort).text(1001) == "S-1001"
    assert shown_names(carol, cohort).text(1001) == "José Silva (S-1001)"
    with pytest.raises(NamesRefusedError, match="does not show names"):
        roster_export(
            user=bob, placement=placement, layout=layout_of_columns(["id", "name"]),
            file_format="csv", exact=False,
        )  # fmt: skip
    client_of(carol).post(address, {"names_for": "everybody"})
    carol.organisation.refresh_from_db()
    assert carol.organisation.names_for == NamesFor.ADMINISTRATORS
    assert AuditLine.objects.filter(verb="changed who sees names").count() == 1


def test_another_organisation_gets_404(mallory: User, client_of: Callable, cohort: Cohort) -> None:
    client = client_of(mallory)
    address = reverse("students:student", args=[cohort.pk, 1001])
    assert client.get(address).status_code == 404
    note = reverse("students:note", args=[cohort.pk, 1001])
    assert client.post(note, {"act": "add", "text": "x"}).status_code == 404
    assert shown_names(mallory, cohort).text(1001) == "S-1001"


# -- the page of a student -----------------------------------------------------------------------


def test_the_page_holds_everything_about_a_student(
    bob: User, client_of: Callable, placement: Placement
) -> None:
    shown = page_of(client_of(bob), placement.cohort, 1001)
    assert shown.has("heading", "José Silva", exactly=True)
    said = {
        "Name": "José Silva", "Pronouns": "he/him", "Number": "N01", "Bedtime": "Early",
        "E-mail": "jose.silva@northfield.example",
    }  # fmt: skip
    assert {term: shown.said_of(term) for term in said} == said
    stay = shown.one("listitem", "Baker 12, bed 1")
    assert stay.says("With Zo (Zoë Müller)")
    assert stay.says("Published")
    assert shown.one("listitem", "Asked for Zo (Zoë Müller)").says("Together in Baker 12")
    asked = shown.every("listitem", "asked for this student")
    assert [one.says("Together in Baker 12") for one in asked] == [True, False]
    assert asked[1].says("Apart")
    assert shown.has("listitem", "Baker 12 does not offer it")
    assert shown.one("listitem", "1. Baker").says("Got it")


def test_notes_are_added_edited_by_their_author_and_deleted(
    bob: User, otto: User, carol: User, client_of: Callable, cohort: Cohort
) -> None:
    new = reverse("students:note-new", args=[cohort.pk, 1002])
    client_of(bob).post(new, {"text": "Calls back on Monday"})
    note = StudentNote.objects.get()
    edit, delete = (
        reverse(f"students:note-{act}", args=[cohort.pk, 1002, note.pk])
        for act in ("edit", "delete")
    )
    assert page_of(client_of(otto), cohort, 1002).one("listitem", "Calls back on Monday")
    refused = client_of(otto).post(edit, {"text": "Changed"})
    check_refused(refused, {"text": "Changed"}, field="", error="Only its author can edit")
    client_of(otto).post(delete)
    note.refresh_from_db()
    assert note.text == "Calls back on Monday"
    old = reverse("students:note", args=[cohort.pk, 1002])
    sent = {"act": "edit", "note": note.pk, "text": "Calls on Tuesday"}
    client_of(bob).post(old, sent, follow=True)
    client_of(bob).post(edit, {"text": "  "})
    note.refresh_from_db()
    assert note.text == "Calls on Tuesday"
    assert note.edited_at is not None
    long = {"text": "x" * 5001}
    check_refused(client_of(bob).post(edit, long), long, field="text", error="is longer than")
    check_refused(client_of(bob).post(new, long), long, field="text", error="is longer than")
    for url in (new, edit):
        check_outlives_a_session(client_of, bob, url, {"text": "A long talk"})
    client_of(carol).post(delete)
    assert not StudentNote.objects.exists()
    gone = client_of(bob).post(edit, {"text": "Worth keeping"})
    check_refused(gone, {"text": "Worth keeping"}, field="", error="was deleted meanwhile")
    verbs = AuditLine.objects.filter(details={"student": "S-1002"}).values_list("verb", flat=True)
    assert {"noted", "edited a note", "deleted a note"} <= set(verbs)


def test_rosters_carry_names_for_those_who_see_them(bob: User, placement: Placement) -> None:
    data, _ = roster_export(
        user=bob,
        placement=placement,
        layout=layout_of_columns(["id", "name", "preferred", "pronouns", "email", "room"]),
        file_format="csv",
        exact=False,
    )
    assert "N02,Zoë Müller,Zo,she/her,zoe@northfield.example,12" in data.decode("utf-8-sig")


# -- the audit lines of a student ----------------------------------------------------------------


def test_administrators_read_who_looked_at_a_student_and_who_changed_what(
    bob: User, carol: User, client_of: Callable, placement: Placement
) -> None:
    cohort = placement.cohort
    page_of(client_of(bob), cohort, 1001)
    note_add(user=bob, student=cohort.students.get(number=1001), text="Calls daily")
    client_of(bob).get(reverse("housing:placement", args=[placement.pk]))
    list(search(bob, "zoë"))
    address = reverse("students:student", args=[cohort.pk, 1001])
    first = Page(client_of(carol).get(address))
    assert first.one("link", "Show who looked").address == "?log=1#audit"
    assert not first.says("noted")
    shown = Page(client_of(carol).get(f"{address}?log=1"))
    assert shown.has("listitem", "bob looked at a student")
    assert shown.has("listitem", "bob noted")
    assert shown.one("listitem", "bob looked at names").says("1 time, last today")
    assert not shown.says("searched for students")  # that was another person
    assert shown.one("listitem", "Calls daily")  # the note itself, and no line about it
    lines = audit_of([cohort.students.get(number=1001)]).lines
    assert {line.verb for line in lines} == {"looked at a student", "noted"}


def test_staff_viewers_and_strangers_read_no_audit_lines_of_a_student(
    alice: User, bob: User, mallory: User, client_of: Callable, placement: Placement
) -> None:
    address = reverse("students:student", args=[placement.cohort_id, 1001]) + "?log=1"
    for person in (alice, bob):
        shown = Page(client_of(person).get(address))
        assert "Audit lines" not in shown.source
        assert "looked at a student" not in shown.source
    assert client_of(mallory).get(address).status_code == 404


def test_audit_lines_of_s_1001_are_not_those_of_s_10010_nor_of_another_cohort(
    bob: User, mallory: User, cohort: Cohort
) -> None:
    theirs = imported(mallory, "Elsewhere")
    audit(mallory, "noted", theirs, student="S-1001")
    audit(bob, "noted", cohort, student="S-10010")
    audit(bob, "swapped", cohort, pairs=["S-1002 + S-1001"])
    audit(bob, "noted", "other students", student="S-1001")
    later = imported(bob, "Second-years")
    audit(bob, "noted", later, student="S-1005")
    years = [cohort.students.get(number=1001), later.students.get(number=1005)]
    found = [(line.verb, line.target_name) for line in audit_of(years).lines]
    assert found == [
        ("noted", "Second-years"), ("noted", "other students"), ("swapped", "First-years"),
    ]  # fmt: skip


def test_the_audit_lines_of_a_student_include_letters_and_questionnaires(
    bob: User, carol: User, client_of: Callable, placement: Placement
) -> None:
    asked = questionnaire_create(user=bob, title="Asked", form="own")
    student = placement.cohort.students.get(number=1001)
    own = asked.participants.create(identifier=student.original_id, cohort=placement.cohort)
    other = asked.participants.create(identifier="somebody", cohort=placement.cohort)
    audit(bob, "downloaded a student's file", asked, person=own.pk, question="q1")
    audit(bob, "set answers aside", asked, people=[own.pk], answers=1)
    audit(bob, "corrected a student number", asked, person=other.pk)
    audit(bob, "sent letters", placement, letter="Rooms", first=2, again=0)
    found = audit_of([student])
    verbs = {line.verb for line in found.lines}
    assert {"downloaded a student's file", "set answers aside"} <= verbs
    assert "corrected a student number" not in verbs, "another student"
    assert "sent letters" in {look.verb for look in found.looks}
    address = reverse("students:student", args=[placement.cohort_id, 1001])
    page = Page(client_of(carol).get(address, {"log": "1"}))
    assert page.has("listitem", "bob sent letters")
