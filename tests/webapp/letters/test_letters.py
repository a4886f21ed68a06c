"""Letters: what they say, who gets them, never twice, again where it changed, and what failed."""

import csv
import io
import re
from datetime import timedelta

import openpyxl
import pytest
from django.conf import LazySettings
from django.core import mail
from django.utils import timezone

from tests.webapp.factories.placed import move, placed_cohort, publish
from tests.webapp.letters.conftest import Mailbox
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.common.errors import Refusal
from webapp.common.limits import TooManyError
from webapp.housing.errors import PlacesChangedError
from webapp.housing.models import Placement
from webapp.letters.errors import LetterError
from webapp.letters.fields import fill, unknown_fields
from webapp.letters.models import Letter, LetterTemplate
from webapp.letters.recipients import problems_of, recipients_of, text_for
from webapp.letters.services.addresses import addresses_import
from webapp.letters.services.letters import (
    letter_test,
    letters_bounced,
    letters_due,
    letters_file,
    letters_queue,
    letters_retry,
    letters_send,
    letters_stop,
)
from webapp.letters.services.templates import template_remove, template_save


def queue(user: User, placement: Placement, template: LetterTemplate) -> int:
    placement.refresh_from_db()
    return letters_queue(
        user=user, placement=placement, template=template, version=placement.version
    )


def states(template: LetterTemplate) -> dict[str, str]:
    return {letter.address.split("@")[0]: letter.state for letter in template.letters.all()}


def test_fields_are_filled_and_empty_lines_go() -> None:
    text = "Dear [Name],\n[contacts]\n\n[hall] [room]\n[ floor ]\nend [1] [nothing]"
    values = {"name": "Anna", "contacts": "", "hall": "Alder", "room": "101", "floor": "2"}
    assert fill(text, values) == "Dear Anna,\n\nAlder 101\n[ floor ]\nend [1] [nothing]"


def test_unknown_fields_come_with_the_nearest_that_there_is() -> None:
    assert unknown_fields("[rooom] [hall] [zzz]") == [
        "[rooom] is no field. Did you mean [room]?",
        "[zzz] is no field. Take one of the list, or remove it.",
    ]


def test_a_letter_tells_room_and_roommates_and_only_who_agreed(
    placement: Placement, template: LetterTemplate
) -> None:
    anna, ben, *_, eva = recipients_of(placement, template)
    words = text_for(template, anna)
    assert "Dear Anna Ash," in words
    assert "Alder, room 101, bed 1 (Double)" in words
    assert "You share it with Ben Birch.\nben@uni.example\n" in words
    assert "anna@uni.example" not in text_for(template, ben), "Anna said no"
    assert "nobody: the room is yours alone for now.\n\nIf anything" in text_for(template, eva)


@pytest.mark.parametrize("said", ["yes", "no", "maybe", ""])
def test_what_is_no_clear_yes_is_a_no(
    placement: Placement, template: LetterTemplate, said: str
) -> None:
    ben = placement.cohort.students.get(number=1002)
    ben.attributes = {"Share my e-mail": said}
    ben.save()
    anna = recipients_of(placement, template)[0]
    assert ("ben@uni.example" in text_for(template, anna)) is (said == "yes")


def test_everything_that_stands_in_the_way_is_listed(
    placement: Placement, template: LetterTemplate
) -> None:
    students = placement.cohort.students
    students.filter(number=1001).update(email="", name="")
    students.filter(number=1002).update(email="no mail")
    students.filter(number__in=(1003, 1004)).update(email="same@uni.example")
    found = problems_of(template, placement, recipients_of(placement, template))
    told = {problem.sentence: problem.students for problem in found}
    assert told == {
        "1 student has no e-mail.": (1001,),
        "1 student has an e-mail that cannot be.": (1002,),
        "2 students have the same e-mail as another.": (1003, 1004),
        "1 student has nothing for [name].": (1001,),
        "1 student has a roommate without a name.": (1002,),
        "1 student has no room.": (1006,),
    }
    assert not any(problem.blocks for problem in found)


def test_letters_go_out_once_and_again_only_where_it_changed(
    carol: User, placement: Placement, template: LetterTemplate
) -> None:
    assert queue(carol, placement, template) == 5
    with pytest.raises(LetterError, match="written to already"):
        queue(carol, placement, template)
    assert letters_send() == 5
    assert letters_send() == 0
    addressed = sorted(message.to[0].split("@")[0] for message in mail.outbox)
    assert addressed == ["anna", "ben", "cleo", "dan", "eva"]
    assert mail.outbox[0].extra_headers["Auto-Submitted"] == "auto-generated"
    # Dan moves: he, and Cleo whom he leaves, read something new; nobody else does.
    move(placement, 1004, "104")
    due = letters_due(template, placement, recipients_of(placement, template))
    assert ([r.number for r in due.first], [r.number for r in due.again]) == ([], [1003, 1004])
    assert queue(carol, placement, template) == 2
    assert letters_send() == 2
    # And back again: what they read last is not so any more.
    move(placement, 1004, "102", bed=2)
    assert queue(carol, placement, template) == 2
    numbers = template.letters.filter(student__number=1004).values_list("number", flat=True)
    assert list(numbers) == [1, 2, 3]


def test_another_published_scenario_writes_only_to_whom_it_moves(
    carol: User, placement: Placement, template: LetterTemplate
) -> None:
    queue(carol, placement, template)
    letters_send()
    places = list(placement.places.all())
    placement.published_at = None
    placement.save(update_fields=["published_at"])
    other = Placement.objects.get(pk=placement.pk)
    other.pk, other.name, other.published_at = None, "Other", timezone.now()
    other._state.adding = True
    other.uuid = Placement._meta.get_field("uuid").get_default()
    other.save()
    for place in places:
        place.pk, place.placement = None, other
        place.save()
    move(other, 1005, "104")
    assert queue(carol, other, template) == 1


def test_a_stale_page_sends_nothing(
    carol: User, placement: Placement, template: LetterTemplate
) -> None:
    with pytest.raises(PlacesChangedError):
        letters_queue(user=carol, placement=placement, template=template, version=99)
    assert not Letter.objects.exists()


def test_an_unpublished_placement_sends_nothing(carol: User, template: LetterTemplate) -> None:
    placement = placed_cohort(carol, "Later")
    with pytest.raises(LetterError, match="Rooms of Later is not published"):
        queue(carol, placement, template)


def test_what_waits_is_not_sent_once_it_is_no_longer_so(
    carol: User, placement: Placement, template: LetterTemplate
) -> None:
    queue(carol, placement, template)
    move(placement, 1005, "104")
    assert letters_send() == 4
    assert states(template)["eva"] == Letter.FAILED
    assert queue(carol, placement, template) == 1
    assert letters_send() == 1
    assert "room 104" in mail.outbox[-1].body


def test_nothing_goes_out_after_a_publication_is_taken_back(
    carol: User, placement: Placement, template: LetterTemplate
) -> None:
    queue(carol, placement, template)
    Placement.objects.update(published_at=None)
    assert letters_send() == 0
    assert set(states(template).values()) == {Letter.FAILED}
    assert not mail.outbox


def test_what_waits_can_be_stopped_and_sent_again(
    carol: User, placement: Placement, template: LetterTemplate
) -> None:
    queue(carol, placement, template)
    options = {"user": carol, "placement": placement, "template": template}
    assert letters_stop(**options) == 5
    assert letters_send() == 0
    with pytest.raises(LetterError, match="No letter waits"):
        letters_stop(**options)
    assert letters_retry(**options) == 5
    assert letters_send() == 5
    with pytest.raises(LetterError, match="nothing to send again"):
        letters_retry(**options)


def test_a_real_server_refuses_is_busy_and_cuts_off(
    carol: User, placement: Placement, template: LetterTemplate, mailbox: Mailbox
) -> None:
    for number, name in ((1001, "nobody"), (1002, "later"), (1004, "cut")):
        placement.cohort.students.filter(number=number).update(email=f"{name}@uni.example")
    queue(carol, placement, template)
    assert letters_send() == 1, "the cut ends this turn, and Eva waits"
    found = states(template)
    assert found == {
        "nobody": "failed",
        "later": "waiting",
        "cleo": "sent",
        "cut": "waiting",
        "eva": "waiting",
    }
    refused = template.letters.get(state=Letter.FAILED)
    assert refused.error.startswith("The mail server refused the address: 550")
    assert refused.attempts == 1, "a plain no is not asked again"
    assert letters_send() == 1
    assert [to for to, _ in mailbox.taken] == ["cleo@uni.example", "eva@uni.example"]
    options = {"user": carol, "placement": placement, "template": template}
    placement.cohort.students.filter(number=1001).update(email="anna@uni.example")
    assert letters_retry(**options) == 1
    letters_send()
    assert states(template)["anna"] == Letter.SENT
    # A bounce that came back to a person's mailbox is noted by hand.
    assert letters_bounced(addresses=["<ANNA@uni.example>", "x@y"], **options) == 1
    assert states(template)["anna"] == Letter.BOUNCED
    assert letters_retry(**options) == 1


def test_a_busy_server_is_asked_five_times_and_then_given_up(
    carol: User, placement: Placement, template: LetterTemplate, mailbox: Mailbox
) -> None:
    placement.cohort.students.exclude(number=1001).update(email="")
    placement.cohort.students.filter(number=1001).update(email="later@uni.example")
    queue(carol, placement, template)
    for _ in range(7):
        letters_send()
        Letter.objects.update(due_at=timezone.now())
    letter = template.letters.get()
    assert (letter.state, letter.attempts) == (Letter.FAILED, 5)


def test_a_letter_whose_sender_died_is_never_sent_twice_by_itself(
    carol: User, placement: Placement, template: LetterTemplate
) -> None:
    queue(carol, placement, template)
    died = timezone.now() - timedelta(minutes=11)
    Letter.objects.update(state=Letter.SENDING, due_at=died)
    assert letters_send() == 0
    letter = template.letters.first()
    assert letter.error.startswith("Its sending was cut off, and it may have arrived.")


def test_a_test_goes_to_oneself_only_and_counts_for_nothing(
    bob: User,
    placement: Placement,
    template: LetterTemplate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    anna = recipients_of(placement, template)[0]
    letter_test(user=bob, template=template, recipient=anna, address="bob@uni.example")
    (sent,) = mail.outbox
    assert (sent.to, sent.subject) == (["bob@uni.example"], "Test: Your room for the coming year")
    assert not Letter.objects.exists()
    with pytest.raises(LetterError, match="Give the e-mail"):
        letter_test(user=bob, template=template, recipient=anna, address="bob\nBcc: x@y.z")
    monkeypatch.setattr("webapp.letters.services.letters.count_up", lambda *_: 11)
    with pytest.raises(TooManyError, match="tests a minute are enough"):
        letter_test(user=bob, template=template, recipient=anna, address="bob@uni.example")


def test_merge_files_hold_every_student_with_a_room(
    bob: User, placement: Placement, template: LetterTemplate
) -> None:
    options = {"user": bob, "placement": placement, "template": template}
    data, kind, ending = letters_file(shape="word", **options)
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
    assert (kind, ending, len(rows)) == ("text/csv; charset=utf-8", "csv", 5)
    assert (rows[0]["Name"], rows[0]["Roommate1"], rows[0]["Id"]) == (
        "Anna Ash",
        "Ben Birch",
        "'+470",
    )
    assert all(heading.isalnum() for heading in rows[0]), "Word takes no other field names"
    data, _, _ = letters_file(shape="csv", **options)
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
    assert rows[0]["id"] == "'+470", "a spreadsheet would take it for a sum"
    assert rows[0]["letter"].startswith("Dear Anna Ash,")
    data, _, ending = letters_file(shape="xlsx", **options)
    sheet = openpyxl.load_workbook(io.BytesIO(data)).active
    assert (ending, sheet.max_row, sheet.cell(2, 3).value) == ("xlsx", 6, "+470")
    assert AuditLine.objects.filter(verb="exported").count() == 3


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": " "}, "The letter needs a name, by which staff find it."),
        ({"subject": ""}, "The subject has 1 to 150 letters."),
        ({"text": "x" * 10_001}, "The letter has 1 to 10,000 letters."),
        ({"text": "[hal]"}, "[hal] is no field. Did you mean [hall]?"),
        ({"contact": "agreed"}, "Name the column in which students said yes to being named."),
        ({"contact": "friends"}, "Choose whose e-mail roommates read."),
        ({"reply_to": "me"}, "“me” is not an e-mail address for answers."),
        ({"text": "a\x00b"}, "The letter holds a zero byte."),
        ({"name": "Rooms"}, "There is already a letter called “Rooms”."),
    ],
)
def test_bad_templates_get_one_sentence(
    bob: User, template: LetterTemplate, change: dict[str, str], sentence: str
) -> None:
    values = {"name": "Other", "subject": "S", "text": "T"} | change
    with pytest.raises(LetterError) as error:
        template_save(user=bob, template=None, **values)
    assert str(error.value) == sentence
    assert LetterTemplate.objects.count() == 1


def test_a_subject_stays_one_line_whatever_a_name_holds(
    placement: Placement, template: LetterTemplate, carol: User
) -> None:
    template.subject = "For [name]"
    template.save()
    placement.cohort.students.filter(number=1001).update(name="Anna\r\nBcc: all@uni.example")
    queue(carol, placement, template)
    assert letters_send() == 5
    assert mail.outbox[0].subject == "For Anna Bcc: all@uni.example"


def test_a_template_with_letters_is_kept(
    carol: User, placement: Placement, template: LetterTemplate
) -> None:
    with pytest.raises(LetterError, match="does not match"):
        template_remove(user=carol, template=template, typed_name="x")
    queue(carol, placement, template)
    with pytest.raises(LetterError, match="Letters were sent from this template"):
        template_remove(user=carol, template=template, typed_name="Rooms")


def addresses(text: str) -> dict[str, object]:
    data = text.encode()
    return {"filename": "a.csv", "size": len(data), "read": lambda: data}


def test_addresses_come_from_a_file(bob: User, placement: Placement) -> None:
    text = (
        "Mail,Student,First name,Last name\n"
        "new@uni.example,+470,Ann,Ash\n,+471,Benny,\nx@y.example,999,,\n"
    )
    found = addresses_import(user=bob, cohort=placement.cohort, **addresses(text))
    assert found == (2, 1)
    anna, ben = placement.cohort.students.all()[:2]
    assert (anna.email, anna.name) == ("new@uni.example", "Ann Ash")
    assert (ben.email, ben.name) == ("ben@uni.example", "Benny")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Id,Mail\nA,a@x.example\n", "No column holds ids of this cohort"),
        ("Id,Hall\n+470,Elm\n", "No column contains e-mail addresses"),
        ("Id,Mail\n+470,a@x.example\n+471,b@@x\n", "Row 3: “b@@x” is not an e-mail address"),
    ],
)
def test_bad_files_of_addresses_change_nothing(
    bob: User, placement: Placement, text: str, sentence: str
) -> None:
    with pytest.raises(Refusal, match=sentence):
        addresses_import(user=bob, cohort=placement.cohort, **addresses(text))
    assert placement.cohort.students.first().email == "anna@uni.example"


def test_nobody_of_another_placement_is_written_to(
    carol: User, placement: Placement, template: LetterTemplate
) -> None:
    other = placed_cohort(carol, "Others")
    publish(other)
    assert queue(carol, placement, template) == 5
    assert queue(carol, other, template) == 5
    assert letters_send() == 10


def test_the_link_to_the_own_page_is_filled_in_as_a_letter_leaves(
    bob: User, carol: User, placement: Placement, mailbox: Mailbox, settings: LazySettings
) -> None:
    letter = template_save(
        user=bob, template=None, name="Page", subject="Your page", text="Hello [name]: [page]"
    )
    settings.PUBLIC_URL = ""
    problems = problems_of(letter, placement, recipients_of(placement, letter))
    assert any(one.blocks and "no public address" in one.sentence for one in problems)
    settings.PUBLIC_URL = "https://hall.example"
    letters_queue(user=carol, placement=placement, template=letter, version=placement.version)
    assert all("/q/" not in one.text and "[page]" in one.text for one in Letter.objects.all())
    letters_send()
    links = {re.search(r"https://hall\.example/q/\S+", text)[0] for _, text in mailbox.taken}
    assert len(links) == 5, "each student has an own link"
    assert all("/q/" not in one.text for one in Letter.objects.all()), "no link is stored"
    data, _, _ = letters_file(user=bob, placement=placement, template=letter, shape="csv")
    assert b"/q/" not in data


def test_a_letter_names_suite_room_and_suite_mates(bob: User, placement: Placement) -> None:
    placement.buildings.rooms.filter(name__in=("101", "102")).update(suite="1")
    template = template_save(
        user=bob,
        template=None,
        name="Suites",
        subject="Room",
        text="[hall], [place]\n[suite]\nWith [roommates]; next door: [suite mates].",
    )
    texts = {one.number: text_for(template, one) for one in recipients_of(placement, template)}
    assert texts[1001] == (
        "Alder, Suite 1, room 101\nSuite 1\nWith Ben Birch; next door: Cleo Cedar and Dan Dogwood."
    )
    assert texts[1005].startswith("Alder, room 103\nWith nobody")


def test_other_suite_mates_are_worth_a_letter_that_names_them(
    bob: User, placement: Placement
) -> None:
    placement.buildings.rooms.filter(name__in=("101", "102")).update(suite="1")
    publish(placement)
    plain, named = (
        template_save(user=bob, template=None, name=name, subject="Room", text=text)
        for name, text in (("Rooms", "[hall], [place]"), ("Mates", "[suite mates]"))
    )
    for template in (plain, named):
        letters_queue(user=bob, placement=placement, template=template, version=placement.version)
    # Dan leaves before the letters go out: what they say of him to the others is not so any more.
    placement.places.filter(number=1004).update(room=None, bed=None)
    letters_send()

    def again(template: LetterTemplate) -> list[int]:
        due = letters_due(template, placement, recipients_of(placement, template))
        return [recipient.student.number for recipient in due.again]

    states = dict(named.letters.values_list("student__number", "state"))
    assert [states[n] for n in (1001, 1002, 1003, 1005)] == ["failed"] * 3 + ["sent"]
    assert dict(plain.letters.values_list("student__number", "state"))[1001] == "sent"
    assert again(named) == [1001, 1002, 1003]
    assert again(plain) == [1003], "only the roommate's own letter changed"
