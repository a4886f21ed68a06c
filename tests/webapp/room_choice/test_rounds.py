"""Rounds of room choice: order, slots, and the acts of staff on them."""

from collections.abc import Callable
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import LazySettings
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.webapp.roles import Page
from tests.webapp.room_choice.conftest import (
    Chooser,
    a_round,
    choose,
    placed_in,
    published,
    request_each_other,
)
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.housing.models import BuildingList, Placement, RoommateRequest
from webapp.room_choice.errors import ChoiceConflictError, ChoiceError
from webapp.room_choice.models import ChoiceRound, RoundState, SlotMail
from webapp.room_choice.selectors.boards import board_of
from webapp.room_choice.selectors.groups import order_of, slot_starts
from webapp.room_choice.selectors.rooms import offers_of
from webapp.room_choice.services import rounds as services
from webapp.room_choice.services.mails import slot_mails_send, slots_mail

ClientOf = Callable[[User], Client]
OSLO = ZoneInfo("Europe/Oslo")


def at(hour: int, minute: int = 0, day: int = 1) -> datetime:
    return datetime(2027, 3, day, hour, minute, tzinfo=OSLO)


def in_oslo(placement: Placement) -> None:
    placement.organisation.time_zone = "Europe/Oslo"
    placement.organisation.save()


# -- order and slots ---------------------------------------------------------------------------


def test_a_group_is_one_turn_and_the_seed_alone_decides(bob: User, free: Placement) -> None:
    draft = a_round(bob, free)
    turns = order_of(draft)
    assert len(turns) == 15  # of 16 students two asked for each other
    assert (1002, 1004) in [turn.group for turn in turns]
    assert turns == order_of(draft)
    draft.seed = 8
    assert [turn.group for turn in order_of(draft)] != [turn.group for turn in turns]
    before = [turn.group for turn in turns]
    free.places.filter(number=1009).update(has_left=True)
    draft.seed = 7
    assert [t.group for t in order_of(draft)] == [g for g in before if g != (1009,)]


def test_the_rule_goes_before_the_lottery_and_a_group_counts_by_its_best(
    bob: User, free: Placement
) -> None:
    values = ["Senior", "Junior"]
    turns = order_of(a_round(bob, free, rule="Year", rule_values=values))
    assert [turn.rule_value for turn in turns[:4]] == ["Senior"] * 4
    assert [turn.rule_value for turn in turns[4:8]] == ["Junior"] * 4
    pair = next(turn for turn in turns if turn.group == (1002, 1004))
    assert pair.rule_value == "Junior"  # S-1004 alone, of the first year, would come last


def test_a_round_of_some_takes_their_groups_along(bob: User, free: Placement) -> None:
    groups = [turn.group for turn in order_of(a_round(bob, free, column="Year", value="First"))]
    assert (1002, 1004) in groups
    assert sum(map(len, groups)) == 5
    free.places.filter(number=1002).update(has_left=True)
    assert sum(len(t.group) for t in order_of(free.choice_rounds.get())) == 4


def test_slots_fit_between_the_hours_of_each_day(bob: User, free: Placement) -> None:
    in_oslo(free)
    draft = a_round(
        bob, free, opens_at=at(8), closes_at=at(12, day=2), minutes=60, stays_open=False,
        day_from=time(9), day_to=time(11, 30),
    )  # fmt: skip
    starts = list(slot_starts(draft))
    assert starts == [at(9), at(10), at(9, day=2), at(10, day=2)]
    turns = order_of(draft)
    counts = [sum(turn.starts_at == start for turn in turns) for start in starts]
    assert sum(counts) == 15
    assert max(counts) - min(counts) <= 1
    assert all(turn.ends_at == turn.starts_at + timedelta(hours=1) for turn in turns)


def test_slots_end_in_the_nights_in_which_the_clock_changes(bob: User, free: Placement) -> None:
    in_oslo(free)
    for month, day in ((3, 28), (10, 31)):
        opens = datetime(2027, month, day - 1, 20, tzinfo=OSLO)
        draft = ChoiceRound(
            placement=free, opens_at=opens, closes_at=opens + timedelta(days=2), minutes=30,
            day_from=time(1, 45), day_to=time(23, 50), seed=1, name="N",
        )  # fmt: skip
        starts = list(slot_starts(draft))
        assert starts == sorted(set(starts))
        assert len(starts) > 60


# -- acts ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "  "}, "needs a name"),
        ({"closes_at": timezone.now() - timedelta(days=3)}, "close after it opens"),
        ({"closes_at": timezone.now() + timedelta(days=90)}, "at most 60 days"),
        ({"minutes": 1}, "5 to 1,440 minutes"),
        ({"day_from": time(9)}, "both times"),
        ({"day_from": time(9), "day_to": time(8)}, "end after they begin"),
        ({"day_from": time(9), "day_to": time(9, 10)}, "No slot of this length"),
        ({"column": "Shoe size"}, "no rule column"),
        ({"rule": "Shoe size"}, "no rule column"),
        ({"seed": -1}, "whole number"),
    ],
)
def test_an_impossible_round_is_refused(
    bob: User, free: Placement, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ChoiceError, match=words):
        a_round(bob, free, **changes)
    assert not ChoiceRound.objects.exists()


def test_two_staff_and_the_same_name(bob: User, free: Placement) -> None:
    draft = a_round(bob, free)
    with pytest.raises(ChoiceError, match="called First already"):
        a_round(bob, free)
    services.round_publish(user=bob, round=draft, version=1, send_mail=False)
    for act in (services.round_pause, services.round_close, services.round_remove):
        with pytest.raises(ChoiceConflictError, match="Somebody else"):
            act(user=bob, round=draft, version=1)


def test_a_published_round_is_paused_resumed_extended_closed_and_opened_again(
    bob: User, free: Placement
) -> None:
    round = published(bob, a_round(bob, free, stays_open=False, minutes=60))
    assert round.slots.count() == 16
    now = timezone.now()
    round.slots.update(starts_at=now - timedelta(minutes=50), ends_at=now + timedelta(minutes=10))
    services.round_pause(user=bob, round=round, version=2)
    with pytest.raises(ChoiceConflictError):
        services.round_pause(user=bob, round=round, version=3)
    assert services.round_resume(user=bob, round=round, version=3) == 16
    ends = round.slots.first().ends_at
    assert ends >= now + timedelta(minutes=59)  # the whole length again
    round.refresh_from_db()
    later = round.closes_at + timedelta(hours=3)
    with pytest.raises(ChoiceError, match="later time"):
        services.round_extend(user=bob, round=round, version=4, closes_at=now)
    services.round_extend(user=bob, round=round, version=4, closes_at=later)
    assert set(round.slots.values_list("ends_at", flat=True)) == {later}
    services.round_close(user=bob, round=round, version=5)
    services.round_extend(user=bob, round=round, version=6, closes_at=later + timedelta(hours=1))
    round.refresh_from_db()
    assert round.state == RoundState.OPEN
    verbs = set(AuditLine.objects.values_list("verb", flat=True))
    assert {"published slots of room choice", "extended room choice"} <= verbs


def test_students_choose_in_one_unpublished_placement_of_rooms(
    bob: User,
    free: Placement,
    campus: BuildingList,
) -> None:
    published(bob, a_round(bob, free))
    other = Placement.objects.create(
        organisation=free.organisation, name="Other", cohort=free.cohort, buildings=campus,
        model=free.model, rules=free.rules, revision=1,
    )  # fmt: skip
    draft = a_round(bob, other)
    with pytest.raises(ChoiceError, match="Close that round first"):
        services.round_publish(user=bob, round=draft, version=1, send_mail=False)
    Placement.objects.filter(pk=free.pk).update(published_at=timezone.now())
    with pytest.raises(ChoiceError, match="is published"):
        a_round(bob, free, name="Second")
    Placement.objects.filter(pk=other.pk).update(is_pairs=True)
    with pytest.raises(ChoiceError, match="pairs without rooms"):
        a_round(bob, other, name="Second")


def test_a_round_without_students_is_not_published(bob: User, free: Placement) -> None:
    draft = a_round(bob, free)
    free.places.update(has_left=True)
    with pytest.raises(ChoiceError, match="nobody can choose"):
        services.round_publish(user=bob, round=draft, version=1, send_mail=False)


def test_rooms_are_emptied_but_for_locked_students(bob: User, free: Placement) -> None:
    rooms = list(free.buildings.rooms.filter(designation="F"))
    for k, number in enumerate((1006, 1008, 1010)):
        free.places.filter(number=number).update(room=rooms[k], bed=1, is_locked=k == 0)
    with pytest.raises(ChoiceConflictError, match="2 students live"):
        services.rooms_empty(user=bob, placement=free, people=3, version=1)
    services.rooms_empty(user=bob, placement=free, people=2, version=1)
    assert list(free.places.with_bed().values_list("number", flat=True)) == [1006]


# -- mails ---------------------------------------------------------------------------


def test_each_student_gets_one_mail_with_slot_and_link(
    bob: User, free: Placement, settings: LazySettings
) -> None:
    settings.PUBLIC_URL = "https://hall.example"
    in_oslo(free)
    free.cohort.students.filter(number=1003).update(email="not an address")
    draft = a_round(bob, free, opens_at=at(10), closes_at=at(18))
    services.round_publish(user=bob, round=draft, version=1, send_mail=True)
    assert SlotMail.objects.count() == 15
    while slot_mails_send():  # each call sends for a few seconds
        pass
    assert len(mail.outbox) == 15
    message = mail.outbox[0]
    for words in ("2027-03-01 1", "(Europe/Oslo)", "https://hall.example/q/", "Monday", "lunes"):
        assert words in message.body, words
    assert "S-10" not in message.body
    assert not any("hall.example" in str(row) for row in SlotMail.objects.values())
    with pytest.raises(ChoiceError, match="the present times already"):
        slots_mail(user=bob, round=draft)
    services.round_extend(user=bob, round=draft, version=2, closes_at=at(20))
    assert slots_mail(user=bob, round=draft) == 15
    services.round_close(user=bob, round=draft, version=3)
    assert slot_mails_send() == 0
    assert len(mail.outbox) == 15


def test_mails_need_a_public_address(bob: User, free: Placement, settings: LazySettings) -> None:
    settings.PUBLIC_URL = ""
    with pytest.raises(ChoiceError, match="no public address"):
        services.round_publish(user=bob, round=a_round(bob, free), version=1, send_mail=True)


# -- pages ---------------------------------------------------------------------------


def test_staff_make_publish_watch_undo_and_export_a_round(
    bob: User, client_of: ClientOf, free: Placement, chooser: Callable[..., Chooser]
) -> None:
    client = client_of(bob)

    def to(name: str, *more: object) -> str:
        return reverse(f"room_choice:{name}", args=[free.pk, *more])

    assert Page(client.get(to("rounds"))).has("paragraph", "There is no round yet")
    sent = {
        "name": "Seniors first", "who": "", "opens_at": "2026-01-01T09:00",
        "closes_at": "2026-01-02T09:00", "minutes": "30", "rule": "Year",
        "rule_values": "Senior\nJunor", "seed": "5", "version": "0",
    }  # fmt: skip
    page = Page(client.post(to("round-new"), sent), status=422)
    answers = page.field("Answers, first to last, one a line")
    assert "No student answered “Junor”" in answers.description
    assert answers.value == "Senior\nJunor"
    assert page.field("Name").value == "Seniors first"
    now = timezone.localtime()
    sent |= {
        "rule_values": "Senior\nJunior",
        "opens_at": f"{now - timedelta(hours=2):%Y-%m-%dT%H:%M}",
        "closes_at": f"{now + timedelta(hours=9):%Y-%m-%dT%H:%M}",
        "stays_open": "on",
    }
    assert client.post(to("round-new"), sent).status_code == 302
    round = free.choice_rounds.get()
    page = Page(client.get(to("round", round.pk)))
    assert page.has("heading", "Preview of the order")
    facts = page.one("paragraph", "Order: Year (Senior, Junior), then lottery")
    assert facts.says("seed 5")
    assert page.one("main").says("Draft")
    publish = Page(client.post(to("round-publish", round.pk), {"version": "9"}), status=422)
    assert "Somebody else" in publish.field("Mail each student").description
    assert client.post(to("round-publish", round.pk), {"version": "1"}).status_code == 302
    round.slots.update(starts_at=timezone.now() - timedelta(minutes=1))
    student = free.cohort.students.get(number=1002)
    room = offers_of(Chooser(student).turn)[0].room
    choose(student, room.pk)
    page = Page(client.get(to("round", round.pk)))
    row = page.one("row", room.label)
    assert row.says("S-1002")
    assert row.says("Chose")
    assert page.says("2 of 16 students")
    chosen = Page(client.get(f"{to('round', round.pk)}?show=chosen"))
    assert chosen.has("button", "Undo the choice of turn")
    event = round.choices.first().event_id
    file = client.get(to("round-file", round.pk, "csv")).content.decode()
    assert file.count("\n") == 17
    assert room.label in file
    assert client.post(to("round-undo", round.pk, event)).status_code == 302
    assert not free.places.with_bed().exists()
    assert board_of(round).n_chosen == 0
    for name in ("round-pause", "round-resume", "round-close"):
        round.refresh_from_db()
        client.post(to(name, round.pk), {"version": round.version})
    round.refresh_from_db()
    assert round.state == RoundState.CLOSED
    assert Page(client.get(to("round", round.pk))).has("link", "Open again")


def test_a_round_of_another_placement_is_not_found(
    bob: User,
    client_of: ClientOf,
    free: Placement,
    campus: BuildingList,
) -> None:
    round = a_round(bob, free)
    other = placed_in(bob, campus, "Q")
    address = reverse("room_choice:round", args=[other.pk, round.pk])
    assert client_of(bob).get(address).status_code == 404


def test_groups_follow_requests(bob: User, free: Placement) -> None:
    request_each_other(free, 1004, 1006)
    assert (1002, 1004, 1006) in [turn.group for turn in order_of(a_round(bob, free))]
    RoommateRequest.objects.filter(student__number=1004).update(is_ignored=True)
    assert len(order_of(free.choice_rounds.get())) == 16
