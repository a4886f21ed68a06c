"""Default scales of survey programs in ten languages have their order, and scales like them."""

import random
from pathlib import Path

import pytest

from engine.tabular.answer_order import order_answers
from engine.tabular.facts import facts_of
from engine.tabular.reading import read_table
from engine.tabular.scales import declines_to_answer, rank_answers

SCALES = Path(__file__).with_name("scales.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", SCALES)
def test_a_scale_has_its_order(line: str) -> None:
    scale = line.split("|")
    shuffled = random.Random(1).sample(scale, len(scale))
    levels, has_order = order_answers(shuffled)
    assert has_order
    assert list(levels) in (scale, scale[::-1])


@pytest.mark.parametrize(
    "answers",
    [
        ["Music", "Sport", "Cooking"],
        ["Yes", "No", "Blue"],
        ["Man", "Woman", "Non-binary"],
        ["Single", "Double", "Triple"],
        ["North Hall", "South Hall"],
        ["None", "Nuts", "Gluten"],
        ["North (quiet)", "South (loud)", "West (new)"],
        ["Hall A", "Hall B", "Hall Elm"],
        ["Often", "Frequently", "Never"],  # which of the two is more often is not known
        ["A", "D", "N"],  # halls, or agree, disagree and neutral
    ],
)
def test_what_is_no_scale_has_none(answers: list[str]) -> None:
    assert order_answers(answers) == (tuple(sorted(answers)), False)


@pytest.mark.parametrize(
    "answer",
    [
        "Prefer not to say", "I prefer not to answer this question", "I'd rather not say", "N/A",
        "Decline to state", "No answer", "Not applicable", "Keine Angabe", "k. A.",
        "Möchte ich nicht beantworten", "Prefiero no responder", "NS/NC", "No contesta",
        "Je préfère ne pas répondre", "Ne se prononce pas", "Sans réponse",
        "Preferisco non rispondere", "Nessuna risposta", "Non applicabile",
        "Prefiro não responder", "Sem resposta", "Não se aplica",
        "Zeg ik liever niet", "n.v.t.", "不想回答", "不适用", "答えたくない", "該当なし", "무응답",
    ],
)  # fmt: skip
def test_an_answer_that_declines_is_kept_apart(answer: str) -> None:
    assert declines_to_answer(answer)
    assert rank_answers(["Never", "Often", answer]) is None


@pytest.mark.parametrize(
    "answer", ["Not often", "Prefer quiet", "Prefer not sharing", "None", "No"]
)
def test_an_answer_that_says_something_does_not_decline(answer: str) -> None:
    assert not declines_to_answer(answer)


@pytest.mark.parametrize(
    ("answers", "declined"),
    [
        (["Never", "Often", "Always", "Don't know"], ("Don't know",)),
        (["1", "2", "3", "4", "weiß nicht"], ("weiß nicht",)),
        (["Mai", "A volte", "Spesso", "Non so"], ("Non so",)),
        (["Nunca", "Às vezes", "Sempre", "Não sei"], ("Não sei",)),
        (["从不", "有时", "总是", "不知道"], ("不知道",)),
        (["Before 10pm", "10pm-11pm", "After 11pm", "It varies"], ("It varies",)),
        (["Never", "Sometimes", "Always", "It depends"], ("It depends",)),
        (["Yes", "No", "It depends"], ()),
        (["Yes", "No", "Don't know"], ()),  # it stands between them
    ],
)
def test_dont_know_is_beside_a_scale_and_between_yes_and_no(
    answers: list[str], declined: tuple[str, ...]
) -> None:
    rows = "".join(f"N{k:03d},{answers[k % len(answers)]}\n" for k in range(24))
    assert facts_of(read_table(f"Student ID,Asked\n{rows}".encode()))[1].declined == declined


@pytest.mark.parametrize(
    "answers",
    [
        ("$50", "$500", "$1,200"),
        ("under $1,000", "$1,000-$2,500", "over $2,500"),
        ("500 €", "1.000 €", "2.500 €"),
        ("unter 1.000 Euro", "1.000 bis 1.500 Euro", "über 1.500 Euro"),
        ("0,5 h", "1 h", "1,5 h"),
        ("0.5 h", "1 h", "1.5 h"),
        ("500 kr", "2 000 kr", "10 000 kr"),
        ("CHF 500", "CHF 1'000", "CHF 12'000"),
        ("1,25 km", "2,5 km", "10 km"),
        ("less than 5,000 steps", "5,000 to 10,000 steps", "more than 10,000 steps"),
    ],
)
def test_thousands_and_decimals_are_ordered_by_size(answers: tuple[str, ...]) -> None:
    """$1,200 stood before $50."""
    assert order_answers(answers[::-1]) == (answers, True)
