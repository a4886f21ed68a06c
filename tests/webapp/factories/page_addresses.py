"""Every address of the pages, with objects that exist; those of images have their own file."""

from collections.abc import Iterator
from datetime import date, timedelta

import pytest
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from tests.webapp.factories.campus import reader_of
from tests.webapp.factories.cohorts import survey_csv
from tests.webapp.factories.questionnaires import a_translation_file
from webapp.accounts.models import User
from webapp.api.services import token_create
from webapp.cohorts.models import Cohort, Draft, LateArrivals
from webapp.cohorts.services.drafts import draft_create
from webapp.cohorts.services.student_files import student_file_create
from webapp.demonstration.services import results_load
from webapp.housing.models import (
    BuildingList,
    NeedMeaning,
    Placement,
    PlacementEvent,
    PlacementVersion,
    ProposedChange,
    RoommateRequest,
)
from webapp.housing.pairs.decisions import Decision, pairs_decide
from webapp.housing.selectors.outcomes import outcome
from webapp.housing.selectors.placements import PlacementRooms
from webapp.housing.services.buildings import building_draft_create
from webapp.housing.services.need_meanings import need_meaning_set
from webapp.housing.services.terms import term_save
from webapp.identity.models import IdentityProvider
from webapp.jobs.models import Worker
from webapp.letters.services.templates import template_save
from webapp.monitoring import readiness
from webapp.reports.services import shape_save
from webapp.residents.links import handle_of as home_handle
from webapp.residents.links import page_of
from webapp.residents.links import token_of as home_token
from webapp.residents.models import ChangeAsk
from webapp.room_choice.models import ChoiceRound
from webapp.students.models import StudentNote
from webapp.surveys.links import token_of
from webapp.surveys.mails import stop_token
from webapp.surveys.questions import questions_of
from webapp.surveys.services.answers import answer_save
from webapp.surveys.services.questionnaires import questionnaire_create, questionnaire_open
from webapp.surveys.visits import handle_of
from webapp.webhooks.models import Webhook

# Enumerated against their own registries: tests/webapp/segmentation/test_scoping.py and
# tests/webapp/api/test_scoping.py.
ELSEWHERE = ("segmentation:", "api:None")
TRANSLATIONS = b"text,fr\nAsked,Enqu\xc3\xaate\nNothing of it,Rien\n"


def parameters_of(
    patterns: list[URLPattern | URLResolver], namespace: str = "", before: tuple[str, ...] = ()
) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of every address with the names of its parameters."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{pattern.namespace}:" if pattern.namespace else namespace
            outer = (*before, *pattern.pattern.regex.groupindex)
            yield from parameters_of(pattern.url_patterns, inner, outer)
        else:
            yield f"{namespace}{pattern.name}", [*before, *pattern.pattern.regex.groupindex]


ADDRESSES = {
    name: parameters
    for name, parameters in parameters_of(get_resolver().url_patterns)
    if not name.startswith(ELSEWHERE)
}


def addresses_of_pages(user: User, paired: Placement, campus: BuildingList) -> dict[str, str]:
    """Return every address of the pages, with objects of the user's organisation that exist."""
    cohort, pair = paired.cohort, paired.pairs.first()
    draft = building_draft_create(user=user, **reader_of("Hall,Room,Beds\nElm,1,2\n"))
    placement = Placement.objects.create(
        organisation=user.organisation,
        name="Rooms",
        cohort=cohort,
        buildings=campus,
        model=paired.model,
    )
    change = PlacementEvent.objects.create(placement=placement, before=[], after=[])
    figures = outcome(PlacementRooms(placement))
    version = PlacementVersion.objects.create(
        placement=placement, number=1, origin="run", outcome={**figures, "moved": 0}
    )
    note = StudentNote.objects.create(
        student=cohort.students.all()[0], author=user, text="Calls back"
    )
    wished = RoommateRequest.objects.create(
        cohort=cohort, student=cohort.students.all()[0], written="My cousin", source="r.csv"
    )
    rooms_edit = campus.changes.create(
        organisation=user.organisation, created_by=user, sentence="Two rooms", before=[], after=[]
    )
    late = ProposedChange.objects.create(placement=placement, is_by_hand=True, owner=user)
    pairs_decide(
        user=user, placement=paired, decision=Decision.ACCEPT, versions={pair.pk: pair.version}
    )
    asked = questionnaire_create(user=user, title="Asked", form="own")
    until = timezone.now() + timedelta(days=1)
    questionnaire_open(user=user, questionnaire=asked, closes_at=until)
    worker = Worker.objects.create(name="short-a1@hall", seen_at=timezone.now())
    answering = asked.participants.create(email="anna@northfield.example")
    wrote = next(q for q in questions_of(asked.content) if q.is_written)
    answer_save(participant=answering, question=wrote, values=["I need a ramp."])
    written = answering.written_answers.get()
    reminder = asked.scheduled_reminders.create(due_at=until)
    webhook = Webhook.objects.create(
        organisation=user.organisation, url="https://127.0.0.1/", events=["job.failed"], nonce="n"
    )
    shape = shape_save(user=user, name="Roster", columns=[("id", "")], is_exact=True)
    letter = template_save(user=user, template=None, name="Letter", subject="S", text="[hall]")
    vouching = {
        protocol: IdentityProvider.objects.create(
            organisation=user.organisation, name=protocol, protocol=protocol, is_on=True,
            server_url="https://idp.invalid",
        )
        for protocol in ("openid_connect", "saml")
    }  # fmt: skip
    arrivals = LateArrivals.objects.create(
        cohort=cohort, source="late.csv", first_number=9001, last_number=9001
    )
    term = term_save(
        user=user, term=None, name="Autumn", code="", starts_on=date(2026, 8, 20),
        ends_on=date(2026, 12, 18),
    )  # fmt: skip
    need_meaning_set(user=user, need="Wheelchair", offers=[])
    meaning = NeedMeaning.objects.get()
    resident = page_of(cohort.students.all()[0])
    choice_round = ChoiceRound.objects.create(
        placement=placement, name="First", opens_at=timezone.now(), closes_at=until, minutes=30,
        seed=1,
    )  # fmt: skip
    change_ask = ChangeAsk.objects.create(
        student=resident.student, placement=placement, wish="room", text="Too loud"
    )
    waiting = placement.places.create(student=resident.student, number=resident.student.number)
    placement.move_wishes.create(student=resident.student)
    bed_offer = placement.waiting_offers.create(
        student=resident.student, room=campus.rooms.first(), room_label="Elm 1", deadline=until
    )
    results_load(user.organisation, user)
    token, _ = token_create(user=user, name="sync", days=30, may_change=False)
    # The longest entry that an address begins with says what its parameters mean.
    objects = {
        "": {},
        "identity": {"pk": vouching["saml"].pk, "key": vouching["openid_connect"].key},
        "identity:remove-second-factor": {"pk": user.pk},
        "openid_connect": {"provider_id": vouching["openid_connect"].key},
        "saml": {"organization_slug": vouching["saml"].key},
        "accounts": {"pk": user.pk},
        "accounts:sign-in-at": {"code": user.organisation.sign_in_code},
        "api:token": {"uuid": token.pk},
        "cohorts": {"uuid": cohort.pk, "draft_uuid": a_draft(user, cohort=cohort).pk},
        "cohorts:latecomers-undo": {"uuid": cohort.pk, "arrivals_id": arrivals.pk},
        "cohorts:student-file": {"uuid": cohort.pk, "draft_uuid": a_file(user, cohort).pk},
        "cohorts:draft": {"uuid": a_draft(user).pk},
        "demonstration": {"number": 1, "key": "model"},
        "housing": {
            "uuid": campus.pk, "room_id": campus.rooms.first().pk, "change_id": rooms_edit.pk,
        },
        "housing:building-draft": {"uuid": draft.pk},
        "housing:request": {
            "uuid": cohort.pk, "request_id": wished.pk, "kind": "requests"
        },
        "housing:need": {"uuid": cohort.pk, "meaning_id": meaning.pk},
        "housing:term": {"term_id": term.pk},
        "housing:place-dates": {"uuid": placement.pk, "number": waiting.number},
        "housing:scenarios": {"uuid": cohort.pk, "file_format": "csv"},
        "housing:wish-effects": {"uuid": cohort.pk},
        "housing:placement": {
            "uuid": placement.pk, "event_id": change.pk, "file_format": "csv"
        },
        "housing:changes": {"uuid": placement.pk, "file_format": "csv"},
        "housing:history": {"uuid": placement.pk},
        "housing:version": {"uuid": placement.pk, "number": version.number},
        "housing:draft": {"uuid": placement.pk, "draft_id": late.pk},
        "jobs": {"uuid": paired.job_id},
        "surveys:bounces-undo": {"uuid": asked.pk, "moment": 1},
        "students": {
            "uuid": cohort.pk, "number": cohort.students.all()[0].number, "note_id": note.pk
        },
        "letters": {"uuid": letter.pk},
        "letters:ask": {"uuid": cohort.pk},
        "letters:placement": {"uuid": placement.pk},
        "housing:pair": {"uuid": paired.pk, "pair_id": pair.pk, "file_format": "csv"},
        "housing:placements-moved": {},
        "housing:placement-new-moved": {},
        "matching:model": {"uuid": paired.model_id},
        "operations": {"pk": worker.pk},
        "webhooks": {"uuid": webhook.pk},
        "residents": {
            "uuid": placement.pk, "ask_id": change_ask.pk, "code": user.organisation.sign_in_code,
            "token": home_token(resident), "handle": home_handle(resident),
        },
        "waiting": {
            "uuid": placement.pk, "number": waiting.number, "room_id": campus.rooms.first().pk,
            "offer_id": bed_offer.pk, "handle": home_handle(resident), "file_format": "csv",
        },
        "residents:page": {"uuid": cohort.pk, "number": cohort.students.all()[0].number},
        "room_choice": {
            "uuid": placement.pk, "round_id": choice_round.pk, "event_id": change.pk,
            "file_format": "csv", "handle": home_handle(resident),
            "room_id": campus.rooms.first().pk,
        },
        "reports": {"uuid": placement.pk, "shape": shape.pk, "file_format": "csv"},
        "surveys": {
            "uuid": asked.pk, "code": asked.code, "token": token_of(answering),
            "person": answering.pk, "text": written.pk, "file_format": "csv",
            "key": asked.content.questions[0].key, "section": 0, "language": "es",
            "reminder": reminder.pk, "line": 1, "handle": handle_of(answering),
        },
        "surveys:languages-draft": {
            "uuid": asked.pk, "draft_uuid": a_translation_file(user, asked, TRANSLATIONS).pk,
        },
        "surveys:stop": {"token": stop_token(answering)},
    }  # fmt: skip
    found = {}
    for name, parameters in ADDRESSES.items():
        values = objects[max((k for k in objects if name.startswith(k)), key=len)]
        found[name] = reverse(name, kwargs={key: values[key] for key in parameters})
    return found


def a_draft(user: User, **options: object) -> Draft:
    data = survey_csv()
    return draft_create(user=user, filename="s.csv", size=len(data), read=lambda: data, **options)


def a_file(user: User, cohort: Cohort) -> Draft:
    """Requests of a cohort that nobody has imported yet."""
    sent = reader_of("student,wants\nS-1001,S-1002\n")
    return student_file_create(user=user, cohort=cohort, purpose="requests", back="/", **sent)


def expect_no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let /readyz wait for neither broker nor worker."""
    monkeypatch.setattr(readiness, "checks", {})
    monkeypatch.setattr(readiness, "_last", None)
