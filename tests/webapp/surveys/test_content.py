"""The content of a questionnaire: stored formats, changes, conditions."""

import pytest
from pydantic import ValidationError

from webapp.accounts.models import User
from webapp.surveys.content import (
    Condition,
    Content,
    Kind,
    QuestionnaireError,
    SectionContent,
    make_question,
    plain,
)
from webapp.surveys.housing_forms import FORMS
from webapp.surveys.models import Questionnaire
from webapp.surveys.questions import counted_answers, questions_of, shown_questions

# As it was stored before there were formats.
OLD = {
    "sections": [
        {
            "title": "Days",
            "questions": [
                {"key": "a1", "kind": "ordered", "name": "Sleep", "text": "When?", "hint": "",
                 "answers": ["A", "B"], "reason": "So."},
                {"key": "b2", "kind": "one", "name": "Gender", "text": "?", "answers": ["X", "Y"],
                 "rule": True},
            ],
        }
    ],
    "language": "fr",
    "translations": {"en": {"When?": "At what time?"}},
}  # fmt: skip


def question(name: str, kind: Kind = Kind.YES_NO, **more: object) -> object:
    return make_question(kind, name=name, text=f"{name}?", **more)


def content(*questions: object) -> Content:
    return Content(sections=(SectionContent(title="All", questions=questions),))


def test_what_was_stored_before_is_read(bob: User) -> None:
    row = Questionnaire.objects.create(
        organisation=bob.organisation, title="Old", content=Content()
    )
    Questionnaire.objects.filter(pk=row.pk).update(content=OLD, before=OLD)
    row.refresh_from_db()
    first, second = questions_of(row.content, "en")
    assert (first.text, first.answers, first.reason) == ("At what time?", ("A", "B"), "So.")
    assert (second.is_rule, second.is_required, row.content.language) == (True, False, "fr")
    assert row.before == row.content
    row.save()
    row.refresh_from_db()
    assert plain(row.content)["format"] == 2


def test_a_format_to_come_is_refused() -> None:
    with pytest.raises(ValidationError):
        Content.model_validate({"format": 3, "sections": []})


@pytest.mark.parametrize("form", FORMS)
def test_templates_are_complete_in_spanish(form: str) -> None:
    made = FORMS[form].make()
    english, spanish = questions_of(made), questions_of(made, "es")
    for one, other in zip(english, spanish, strict=True):
        for words, said in zip(
            (one.text, one.hint, one.reason, one.low, one.high, one.section, *one.answers),
            (other.text, other.hint, other.reason, other.low, other.high, other.section,
             *other.answers),
            strict=True,
        ):  # fmt: skip
            assert not words or (said and said != words) or words == "No", words
        assert one.reason, "every question says why it is asked"
        assert one.reason.count(".") == 1, "in one sentence"
        assert len(one.reason) <= 70
    for scale in (q for q in english if q.kind is Kind.SCALE):
        assert scale.text.endswith("."), "a scale asks for agreement with a statement"
        assert scale.low
        assert scale.high


def test_a_condition_names_an_earlier_question() -> None:
    smokes = question("Smokes")
    where = question("Where", shown_if=Condition(question=smokes.key, answers=(1,)))
    made = content(smokes).with_question(0, where)
    for refused in (
        lambda: content().with_question(0, where),
        lambda: made.without_question(smokes.key),
        lambda: made.with_moved(where.key, -1),
        lambda: made.with_placed(smokes.key, 0, 9),
        lambda: content(smokes).with_question(
            0, question("X", shown_if=Condition(question=smokes.key, answers=(2,)))
        ),
        lambda: content(smokes).with_question(
            0, question("X", shown_if=Condition(question=smokes.key, answers=()))
        ),
    ):
        with pytest.raises(QuestionnaireError, match="shown only after"):
            refused()


def test_questions_are_shown_by_the_answers_before_them() -> None:
    pets = question("Pets")
    kind = question(
        "Kind", Kind.SEVERAL, answers=["Cat", "Dog", "Fish"],
        shown_if=Condition(question=pets.key, answers=(1,)),
    )  # fmt: skip
    walks = question("Walks", shown_if=Condition(question=kind.key, answers=(1, 2)))
    questions = questions_of(content(pets, kind, walks, question("Last")))

    def shown(**answers: object) -> list[str]:
        keys = {"pets": pets.key, "kind": kind.key, "walks": walks.key}
        return [
            q.name for q in shown_questions(questions, {keys[k]: v for k, v in answers.items()})
        ]

    assert shown() == ["Pets", "Last"]
    assert shown(pets=0, kind=[1]) == ["Pets", "Last"]
    assert shown(pets=1) == ["Pets", "Kind", "Last"]
    assert shown(pets=1, kind=[0]) == ["Pets", "Kind", "Last"]
    assert shown(pets=1, kind=[0, 2]) == ["Pets", "Kind", "Walks", "Last"]
    assert shown(pets=None, kind=[2]) == ["Pets", "Last"]
    given = {pets.key: 0, kind.key: [1], walks.key: 1}
    assert counted_answers(questions, given) == {pets.key: 0}, "of another way nothing counts"
