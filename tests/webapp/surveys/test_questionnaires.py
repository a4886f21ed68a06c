"""Questionnaires of staff: built, opened, watched, turned into cohorts; walls and roles."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core import mail
from django.urls import reverse
from django.utils import timezone

from tests.webapp.factories.questionnaires import Student
from tests.webapp.roles import Page
from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.cohorts.models import Cohort
from webapp.cohorts.selectors.surveys import cohort_survey
from webapp.housing.selectors.requests import graph_of
from webapp.surveys.content import QuestionnaireError
from webapp.surveys.links import token_of
from webapp.surveys.models import Mail, Participant, Questionnaire
from webapp.surveys.questions import questions_of
from webapp.surveys.selectors.progress import progress_of, question_states
from webapp.surveys.selectors.requests import requests_of
from webapp.surveys.services.clashes import answers_choose
from webapp.surveys.services.cohorts import cohort_from_answers
from webapp.surveys.services.invitations import invitations_add, mails_queue, mails_send
from webapp.surveys.services.questionnaires import (
    change_undo,
    question_add,
    question_edit,
    question_move,
    question_remove,
    questionnaire_create,
    questionnaire_open,
)


def words(question: object, **changes: object) -> dict[str, object]:
    own = {"name": question.name, "text": question.text, "hint": "", "reason": "",
           "answers": list(question.answers)}  # fmt: skip
    return own | changes


@pytest.mark.parametrize(("form", "count"), [("housing", 14), ("own", 11)])
def test_templates_are_whole(bob: User, form: str, count: int) -> None:
    made = questionnaire_create(user=bob, title=form, form=form)
    questions = questions_of(made.content)
    assert len(questions) == count
    assert len({q.key for q in questions}) == len({q.name for q in questions}) == count
    if form == "own":
        assert all(q.reason for q in questions)


def test_everything_can_change_before_opening(bob: User, draft: Questionnaire) -> None:
    first, second = questions_of(draft.content)[:2]
    common = {"user": bob, "questionnaire": draft}
    question_move(**common, version=draft.version, key=first.key, step=1)
    assert [q.key for q in questions_of(draft.content)[:2]] == [second.key, first.key]
    question_remove(**common, version=draft.version, key=second.key)
    changed = words(first, name="Rises", answers=["Early", "Late"])
    question_edit(**common, version=draft.version, key=first.key, **changed)
    fields = {
        "kind": "one",
        "name": "Pets",
        "text": "Do you have a pet?",
        "answers": ["Cat", "Dog"],
    }
    question_add(**common, version=draft.version, section=1, **fields)
    names = [q.name for q in questions_of(draft.content)]
    assert (names[0], "Pets" in names, len(names)) == ("Rises", True, 14)
    with pytest.raises(QuestionnaireError, match="Somebody else changed"):
        question_remove(**common, version=draft.version - 1, key=first.key)
    with pytest.raises(QuestionnaireError, match="Another question is called"):
        question_add(**common, version=draft.version, section=0, **(fields | {"name": "pets"}))


def test_what_has_answers_keeps_its_meaning(bob: User, opened: Questionnaire) -> None:
    first = questions_of(opened.content)[0]
    common = {"user": bob, "questionnaire": opened, "key": first.key}
    question_edit(**common, version=opened.version, **words(first, text="When do you get up?"))
    assert questions_of(opened.content)[0].text == "When do you get up?"
    for change in ({"answers": ["Early", "Late"]}, {"name": "Other"}):
        with pytest.raises(QuestionnaireError, match="fixed once it was open"):
            question_edit(**common, version=opened.version, **words(first, **change))
    with pytest.raises(QuestionnaireError, match="fixed once it was open"):
        question_remove(**common, version=opened.version)


def test_consent_keeps_its_words_once_it_was_open(bob: User) -> None:
    made = questionnaire_create(user=bob, title="Own", form="own")
    asked = {"kind": "consent", "name": "Consent", "text": "I agree."}
    question_add(user=bob, questionnaire=made, version=made.version, section=0, **asked)
    consent = next(q for q in questions_of(made.content) if q.kind == "consent")
    common = {"user": bob, "questionnaire": made, "key": consent.key}
    reworded = words(consent, text="I agree to this.")
    question_edit(**common, version=made.version, **reworded)
    questionnaire_open(user=bob, questionnaire=made, closes_at=timezone.now() + timedelta(days=1))
    with pytest.raises(QuestionnaireError, match="people agreed to it"):
        question_edit(**common, version=made.version, **words(consent, text="I agree to all."))
    with pytest.raises(QuestionnaireError, match="fixed once it was open"):
        change_undo(user=bob, questionnaire=made, version=made.version)


def test_who_did_not_agree_is_led_to_what_is_to_be_agreed_to(bob: User) -> None:
    made = questionnaire_create(user=bob, title="Own", form="own")
    asked = {"kind": "consent", "name": "Consent", "text": "I agree to be housed."}
    question_add(user=bob, questionnaire=made, version=made.version, section=0, **asked)
    questionnaire_open(user=bob, questionnaire=made, closes_at=timezone.now() + timedelta(days=1))
    anna = Student(made, token=token_of(Participant.objects.create(questionnaire=made)))
    refused = anna.client.post(anna.url, {"action": "finish"})
    assert refused.status_code == 422
    page = Page(refused, status=422)
    assert page.one("alert").says("Your consent is needed to finish.")
    number = next(q.number for q in questions_of(made.content) if q.kind == "consent")
    assert page.one("link", "Change: I agree to be housed.").address == f"?n={number}"
    assert "Needs an answer" in page.said_of("I agree to be housed.")
    anna.say(number, "yes")
    assert anna.client.post(anna.url, {"action": "finish"}).status_code == 302
    assert anna.row.finished_at is not None
    review = Page(anna.client.get(f"{anna.url}?n=review&lang=es"))
    said = review.said_of("I agree to be housed.")
    assert "Estoy de acuerdo" in said
    assert "yes" not in said


def test_what_opens_meanwhile_is_fixed(bob: User, draft: Questionnaire) -> None:
    """The page was read before it opened, the change comes after."""
    read_before = Questionnaire.objects.get(pk=draft.pk)
    questionnaire_open(user=bob, questionnaire=draft, closes_at=timezone.now() + timedelta(days=1))
    key = questions_of(draft.content)[0].key
    with pytest.raises(QuestionnaireError, match="meanwhile"):
        question_remove(user=bob, questionnaire=read_before, version=draft.version, key=key)


def test_it_opens_only_until_later(bob: User, draft: Questionnaire) -> None:
    now = timezone.now()
    for closes_at, opens_at in ((now, None), (now + timedelta(days=1), now + timedelta(days=2))):
        with pytest.raises(QuestionnaireError, match="close after it opens"):
            questionnaire_open(
                user=bob, questionnaire=draft, closes_at=closes_at, opens_at=opens_at
            )
    assert draft.opens_at is None


def test_progress_adds_up(opened: Questionnaire, student: Callable, invited: Student) -> None:
    student("N1").say_all()
    half = student("N2")
    for number in range(1, 6):
        half.say(number, 0)
    looked = student("N3")
    looked.client.get(looked.url)
    found = progress_of(opened)
    assert (found.n_people, found.n_finished, found.n_started) == (4, 1, 1)
    assert (found.n_opened, found.n_unopened) == (1, 1)
    states = question_states(opened)
    assert [state.n_answered for state in states[:6]] == [2, 2, 2, 2, 2, 1]
    assert [state.n_stopped for state in states[:6]] == [0, 0, 0, 0, 1, 0]


def test_answers_become_a_cohort_and_latecomers_the_next(
    bob: User, opened: Questionnaire, student: Callable
) -> None:
    for k in range(6):
        student(f"N{k}").say_all(k)
    again = student("n3")  # the same person, later
    again.say_all(1)
    student("N9").say(1, 1)  # has not finished
    assert answers_choose(user=bob, questionnaire=opened, person=again.row.pk)
    first = cohort_from_answers(user=bob, questionnaire=opened, name="First")
    assert first.n_students == 6
    survey = cohort_survey(first)
    assert survey.questionnaire.n_questions == 13
    assert first.constraints == ["Gender"]
    kept = first.students.get(original_id="n3")
    assert kept.answers[0] == 1
    with pytest.raises(QuestionnaireError, match="At least 2 people"):
        cohort_from_answers(user=bob, questionnaire=opened, name="Second")
    for k in (10, 11):
        student(f"N{k}").say_all(k)
    student("N1").say_all(2)  # is in the first cohort already
    second = cohort_from_answers(user=bob, questionnaire=opened, name="Second")
    assert sorted(second.students.values_list("original_id", flat=True)) == ["N10", "N11"]
    assert second.questions == first.questions


def test_nobody_answers_for_another_by_their_number(
    bob: User, opened: Questionnaire, student: Callable, client_of: Callable
) -> None:
    """By the code anybody can type any number; the personal link counts, however early it was."""
    row = Participant.objects.create(questionnaire=opened, email="a@x.example", identifier="N1")
    anna = Student(opened, token=token_of(row))
    anna.say_all(0)
    student("N2").say_all(0)
    student("n1").say_all(1)  # says to be Anna
    page = reverse("surveys:people", args=[opened.pk])
    text = Page(client_of(bob).get(page))
    assert text.section("Mails").says("Student numbers with several sets of answers: 1.")
    assert not text.says("to decide")
    cohort = cohort_from_answers(user=bob, questionnaire=opened, name="First")
    assert cohort.n_students == 2
    assert cohort.students.get(original_id="N1").answers[0] == 0


def test_times_and_several_become_columns(bob: User) -> None:
    made = questionnaire_create(user=bob, title="Own", form="own")
    questionnaire_open(user=bob, questionnaire=made, closes_at=timezone.now() + timedelta(days=1))
    for k in range(8):
        Student(made, f"N{k}").say_all(k)
    cohort = cohort_from_answers(user=bob, questionnaire=made, name="Own")
    names = [question["name"] for question in cohort.questions]
    assert "Evenings: Music" in names
    assert not {"Request", "Anything else"} & set(names)
    lights = cohort.questions[names.index("Lights out")]
    assert lights["kind"] in ("ordinal", "binary")
    assert cohort_survey(cohort).n_students == 8


def test_requests_need_both(bob: User) -> None:
    made = questionnaire_create(user=bob, title="Own", form="own")
    questionnaire_open(user=bob, questionnaire=made, closes_at=timezone.now() + timedelta(days=1))
    number = next(q.number for q in questions_of(made.content) if q.kind == "request")
    anna, ben, carl = (Student(made, f"N{k}") for k in range(3))
    anna.say(number, ben.row.code.lower())
    carl.say(number, ben.row.code)
    ben.say(number, anna.row.code)
    found = {(a.identifier, b.identifier): both for a, b, both in requests_of(made)}
    assert found == {("N0", "N1"): True, ("N1", "N0"): True, ("N2", "N1"): False}


def test_requests_go_with_the_cohort(bob: User) -> None:
    made = questionnaire_create(user=bob, title="Own", form="own")
    questionnaire_open(user=bob, questionnaire=made, closes_at=timezone.now() + timedelta(days=1))
    number = next(q.number for q in questions_of(made.content) if q.kind == "request")
    anna, ben, carl = students = [Student(made, f"N{k}") for k in range(3)]
    for k, one in enumerate(students):
        one.say_all(k)
    anna.say(number, ben.row.code)
    ben.say(number, anna.row.code)
    carl.say(number, ben.row.code)
    cohort = cohort_from_answers(user=bob, questionnaire=made, name="Own")
    numbers = dict(cohort.students.values_list("original_id", "number"))
    graph = graph_of(cohort)
    assert graph.mutual == [(numbers["N0"], numbers["N1"])]
    assert graph.one_sided == [(numbers["N2"], numbers["N1"])]


def test_mails_go_out_once_and_are_tried_again(
    bob: User, opened: Questionnaire, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = invitations_add(
        user=bob, questionnaire=opened, text="a@x.example, N1\nN2 b@x.example\n\na@x.example"
    )
    assert (done.added, done.known) == (2, 0)
    with pytest.raises(QuestionnaireError, match="Line 2 holds no e-mail"):
        invitations_add(user=bob, questionnaire=opened, text="c@x.example\nnobody")
    send = {"user": bob, "questionnaire": opened, "base": "https://hall.example"}
    with pytest.raises(QuestionnaireError, match="The text needs"):
        mails_queue(**send, texts={"en": "Hello"}, is_reminder=False)
    assert mails_queue(**send, texts={"en": "Hello [link]"}, is_reminder=False) == 2
    with pytest.raises(QuestionnaireError, match="nobody"):
        mails_queue(**send, texts={"en": "Hello [link]"}, is_reminder=False)

    def broken(self: object, *args: object, **kwargs: object) -> int:
        raise OSError("no route")

    with monkeypatch.context() as patch:
        patch.setattr("django.core.mail.EmailMessage.send", broken)
        assert mails_send() == 0
    failed = Mail.objects.exclude(error="").get()
    assert (failed.state, failed.attempts) == (Mail.WAITING, 1)
    Mail.objects.update(due_at=timezone.now())
    assert mails_send() == 2
    assert mails_send() == 0
    assert sorted(message.to[0] for message in mail.outbox) == ["a@x.example", "b@x.example"]
    link = next(word for word in mail.outbox[0].body.split() if word.startswith("https://"))
    anna = Student(opened, token=link.split("/q/")[1].strip("/"))
    assert anna.client.get(anna.url).status_code == 200
    anna.say_all()
    assert mails_queue(**send, texts={"en": "Again [link]"}, is_reminder=True) == 1
    mails_send()
    assert mail.outbox[-1].subject == "Reminder: Housing 2027"


def test_a_mail_whose_sender_died_is_tried_again(bob: User, opened: Questionnaire) -> None:
    invitations_add(user=bob, questionnaire=opened, text="a@x.example")
    send = {"user": bob, "questionnaire": opened, "base": "", "is_reminder": False}
    mails_queue(**send, texts={"en": "[link]"})
    Mail.objects.update(state=Mail.SENDING, due_at=timezone.now() - timedelta(minutes=11))
    assert mails_send() == 1
    assert mails_send() == 0


def test_staff_do_all_of_it_by_its_pages(bob: User, client_of: Callable) -> None:
    client = client_of(bob)
    fields = {"title": "By hand", "form": "own"}
    page = Page(client.post(reverse("surveys:new"), fields, follow=True))
    assert page.says("11 questions in 3 sections")
    made = Questionnaire.objects.get()
    names = ("questionnaire", "open", "close", "people-add", "make-cohort", "preview")
    at = {name: reverse(f"surveys:{name}", args=[made.pk]) for name in names}
    key = questions_of(made.content)[1].key
    assert Page(client.get(f"{at['questionnaire']}?question={key}")).has("button", "Keep")
    move = reverse("surveys:question-move", args=[made.pk, key])
    client.post(move, {"step": "-1", "version": made.version})
    day = (timezone.localdate() + timedelta(days=3)).isoformat()
    opened = client.post(at["open"], {"closes_on": day}, follow=True)
    assert Page(opened).one("status").says("Open until")
    client.post(at["people-add"], {"people": "a@x.example N1"})
    people = Page(client.get(at["questionnaire"] + "?tab=people", follow=True))
    assert people.has("row", "a@x.example")
    for k in range(3):
        Student(made, f"N{k}").say_all(k)
    watched = Page(client.get(at["questionnaire"]))
    assert watched.one("region", "Answers so far").says("3 of 4 participants")
    assert Page(client.get(at["preview"])).says("Nothing is saved.")
    done = client.post(at["make-cohort"], {"name": "From answers"}, follow=True)
    assert Page(done).one("status").says("3 students are in the cohort.")
    assert Cohort.objects.get().n_students == 3
    closed = Page(client.post(at["close"], follow=True))
    assert closed.one("status").says("The questionnaire is closed.")
    verbs = set(AuditLine.objects.values_list("verb", flat=True))
    assert {"made", "moved a question", "opened", "invited", "made a cohort", "closed"} <= verbs


def test_walls_and_roles(
    alice: User, bob: User, carol: User, mallory: User, client_of: Callable, opened: Questionnaire
) -> None:
    Participant.objects.create(questionnaire=opened, email="anna@northfield.example")
    page = reverse("surveys:questionnaire", args=[opened.pk])
    assert client_of(mallory).get(page).status_code == 404
    shown = Page(client_of(alice).get(page + "?tab=people"))
    assert "anna@northfield.example" not in shown.source
    for name in ("question-add", "settings", "open", "people-add", "mails-send", "make-cohort"):
        address = reverse(f"surveys:{name}", args=[opened.pk])
        assert client_of(alice).post(address).status_code == 403
        assert client_of(mallory).post(address).status_code == 404
    gone = reverse("surveys:delete", args=[opened.pk])
    assert client_of(bob).post(gone, {"name": opened.title}).status_code == 403
    client_of(carol).post(gone, {"name": "other"})
    assert Questionnaire.objects.exists()
    client_of(carol).post(gone, {"name": opened.title})
    assert not Questionnaire.objects.exists()
    assert not Participant.objects.exists()
