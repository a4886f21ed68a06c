"""Roommates from training to explanation, through the functions that the product calls."""

import numpy as np
import pytest

from engine.core.checkpoint import FileCheckpoint
from engine.core.errors import InfeasibleError, InvalidProblemError, StoppedError
from engine.core.status import Status
from engine.crf.questionnaire import Question, Questionnaire
from engine.crf.rules import Rules
from engine.crf.survey import Survey
from engine.inference.matching import cascade
from engine.inference.matching.odd_sets import OddSetProof
from engine.learning.roommates.evaluation import evaluate_roommates
from engine.learning.roommates.explanation import (
    allowed_partners,
    explain_pair,
    question_weights,
)
from engine.learning.roommates.model import load_roommate_model
from engine.learning.roommates.proposal import propose_pairs
from engine.learning.roommates.training import train_roommates
from engine.structures import survey as survey_structure
from tests.learning.roommates.cohorts import (
    SMALL,
    random_cohorts,
    random_survey,
    simulated_years,
    standard_form,
)
from tests.reference.perfect_matchings import enumerate_pairs


@pytest.fixture(scope="module")
def years():
    return simulated_years(120, 3)[0]


@pytest.fixture(scope="module")
def trained(years):
    return train_roommates(years[:2])


@pytest.fixture(scope="module")
def small_model():
    return train_roommates(random_cohorts(40), ridge=2.0).model


def test_training_converges_with_a_certificate(trained):
    assert trained.result.status is Status.CONVERGED
    assert trained.result.is_certified
    assert 0.0 <= trained.result.relative_gap <= 1e-4
    assert trained.result.objective >= trained.result.lower_bound
    assert trained.model.calibration is not None


@pytest.mark.parametrize("solver", ["theta", "block-coordinate", "frank-wolfe"])
def test_named_solvers_learn_the_same(solver):
    cohorts = random_cohorts(12)
    best = train_roommates(cohorts, ridge=5.0, relative_gap=1e-7)
    other = train_roommates(cohorts, ridge=5.0, solver=solver, relative_gap=5e-3, max_seconds=120.0)
    assert other.result.objective >= best.result.lower_bound - 1e-9
    assert other.result.lower_bound <= best.result.objective + 1e-9
    assert np.abs(other.model.theta - best.model.theta).max() < 0.02


def test_cohorts_learned_together_or_in_another_order_agree():
    cohorts = random_cohorts(20, 3)
    one = train_roommates(cohorts, relative_gap=1e-8)
    two = train_roommates(cohorts[::-1], relative_gap=1e-8)
    assert np.abs(one.model.theta - two.model.theta).max() < 1e-4


def test_students_without_a_pair_are_left_out():
    survey, pairs = random_cohorts(20, 1)[0]
    some = train_roommates([(survey, pairs[:6])], relative_gap=1e-8)
    kept = np.sort(pairs[:6].ravel())
    alone = train_roommates(
        [(survey.take(kept), np.searchsorted(kept, pairs[:6]))], relative_gap=1e-8
    )
    assert some.result.lower_bound == pytest.approx(alone.result.lower_bound, rel=1e-6)


def test_a_year_with_blanks_learns(tmp_path):
    cohorts = random_cohorts(30, blanks=0.15)
    model = train_roommates(cohorts).model
    assert len(model.theta) == SMALL.n_features + 2 * 3
    model.save(tmp_path / "m.npz")
    again = load_roommate_model(tmp_path / "m.npz")
    assert np.array_equal(again.theta, model.theta)
    assert again.features == model.features
    proposal = propose_pairs(again, random_survey(30, 9, blanks=0.3))
    assert len(proposal.pairs) == 15


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ridge": 0.0}, "ridge"),
        ({"rho": 1.5}, "rho"),
        ({"solver": "newton"}, "solver"),
        ({"relative_gap": -1.0}, "relative_gap"),
    ],
)
def test_bad_settings_are_refused(change, message):
    with pytest.raises(InvalidProblemError, match=message):
        train_roommates(random_cohorts(8), **change)


def test_no_cohort_or_too_few_pairs_are_refused():
    with pytest.raises(InvalidProblemError, match="at least one past cohort"):
        train_roommates([])
    survey, pairs = random_cohorts(8, 1)[0]
    with pytest.raises(InvalidProblemError, match="Cohort 1 has 1 pair, and at least 2"):
        train_roommates([(survey, pairs[:1])])


def test_a_cancelled_training_says_so():
    result = train_roommates(random_cohorts(20), should_stop=lambda: True)
    assert result.result.status is Status.CANCELLED
    assert result.model.calibration is None


def test_a_proposal_is_complete_best_and_certified(trained, years):
    survey = years[2][0]
    proposal = propose_pairs(trained.model, survey)
    assert sorted(proposal.pairs.ravel().tolist()) == list(range(120))
    assert proposal.gap < 1e-6 * abs(proposal.weight)
    scores = trained.model.scores(survey)
    assert proposal.scores == pytest.approx([scores[i, j] for i, j in proposal.pairs])
    assert proposal.weight == pytest.approx(proposal.scores.sum())
    rows = proposal.marginals.sum(axis=1)
    assert rows == pytest.approx(np.ones(120), abs=1e-4)
    assert proposal.probabilities == pytest.approx(
        [proposal.marginals[i, j] for i, j in proposal.pairs], rel=1e-5
    )
    assert (proposal.doubt >= 1.0).all()
    assert (proposal.doubt <= proposal.n_allowed + 1e-9).all()


def test_a_small_proposal_agrees_with_enumeration(small_model):
    survey = random_survey(8, 11)
    scores = small_model.scores(survey)
    best = max(sum(scores[p] for p in pairs) for pairs in enumerate_pairs(tuple(range(8))))
    assert propose_pairs(small_model, survey).weight == pytest.approx(best)


def test_a_proposal_says_whose_probabilities_are_exact(small_model):
    survey = random_survey(42, 11, Gender=tuple("F" * 10 + "M" * 32))
    proposal = propose_pairs(small_model, survey, Rules(same=("Gender",)))
    assert proposal.is_exact[:10].all()
    assert not proposal.is_exact[10:].any()
    assert not proposal.probability_error[:10].any()
    assert (proposal.probability_error[10:] < 0.005).all()
    unmeasured = propose_pairs(small_model, survey, sampling_seconds=0.0)
    assert np.isnan(unmeasured.probability_error).all()
    # two draws a chain say nothing: they stood as probabilities, with an error of their own making
    hasty = propose_pairs(small_model, survey, sampling_seconds=1e-9)
    assert np.isnan(hasty.probability_error).all()
    np.testing.assert_array_equal(hasty.marginals, unmeasured.marginals)


def test_a_pair_in_every_complete_set_is_certain(small_model):
    """Two trios that only students 2 and 3 join: the row sums alone gave that pair a third."""
    across = ((i, j) for i in range(3) for j in range(3, 6))
    rules = Rules(forbids=tuple(pair for pair in across if pair != (2, 3)))
    proposal = propose_pairs(small_model, random_survey(6, 3), rules)
    assert proposal.marginals[2, 3] == 1.0
    assert proposal.probabilities == pytest.approx([1.0, 1.0, 1.0])
    assert proposal.doubt == pytest.approx(np.ones(6))


def test_next_best_partners_are_the_likeliest_others(trained, years):
    proposal = propose_pairs(trained.model, years[2][0])
    partner = dict(proposal.pairs.tolist()) | {j: i for i, j in proposal.pairs.tolist()}
    for student in (0, 17, 63):
        others = [j for j in range(120) if j not in (student, partner[student])]
        others.sort(key=lambda j: -proposal.marginals[student, j])
        named = proposal.next_best.students[student].tolist()
        assert [proposal.marginals[student, j] for j in named] == pytest.approx(
            [proposal.marginals[student, j] for j in others[:3]], rel=1e-5
        )


def test_rules_are_followed(small_model):
    survey = random_survey(12, 3, Gender=tuple("FFFFFFMMMMMM"))
    rules = Rules(locks=((0, 1),), forbids=((2, 3), (6, 7)), same=("Gender",), single=(10, 11))
    proposal = propose_pairs(small_model, survey, rules)
    pairs = {tuple(p) for p in proposal.pairs.tolist()}
    assert (0, 1) in pairs
    assert not {(2, 3), (6, 7)} & pairs
    assert all((i < 6) == (j < 6) for i, j in pairs)
    assert not {10, 11} & {s for p in pairs for s in p}
    assert proposal.marginals[0, 1] == 1.0
    assert proposal.marginals[2, 3] == 0.0
    assert proposal.marginals[2, 8] == 0.0
    assert proposal.doubt[10] == 0.0
    assert proposal.n_allowed[2] == 2


def test_impossible_rules_are_explained_not_crashed(small_model):
    survey = random_survey(7, 3)
    with pytest.raises(InfeasibleError, match="7 students cannot all be paired"):
        propose_pairs(small_model, survey)


def test_forbids_decide_even_against_high_scores(small_model):
    survey = random_survey(6, 3)
    free = propose_pairs(small_model, survey)
    forbids = tuple((int(i), int(j)) for i, j in free.pairs)
    changed = propose_pairs(small_model, survey, Rules(forbids=forbids))
    assert not {tuple(p) for p in changed.pairs.tolist()} & set(forbids)
    assert changed.weight <= free.weight + 1e-12


@pytest.mark.parametrize("n", [2, 4])
def test_the_smallest_cohorts(small_model, n):
    proposal = propose_pairs(small_model, random_survey(n, 1))
    assert len(proposal.pairs) == n // 2
    assert proposal.marginals.sum(axis=1) == pytest.approx(np.ones(n), abs=1e-4)


def test_a_cancelled_proposal_stops(small_model):
    with pytest.raises(StoppedError):
        propose_pairs(small_model, random_survey(6), should_stop=lambda: True)


def test_a_proposal_stops_within_a_group(small_model):
    answers = iter([False, False, False])
    with pytest.raises(StoppedError):
        propose_pairs(small_model, random_survey(40), should_stop=lambda: next(answers, True))


def test_other_questions_and_unseen_answers_are_named(small_model):
    other = Questionnaire((SMALL.questions[0], SMALL.questions[1]))
    with pytest.raises(InvalidProblemError, match="Music is missing"):
        propose_pairs(small_model, random_survey(4, questionnaire=other))
    more = Question("Music", "nominal", ("Folk", "Jazz", "Polka", "Rock"))
    changed = Questionnaire((*SMALL.questions[:2], more))
    with pytest.raises(InvalidProblemError, match="'Polka' was never seen"):
        propose_pairs(small_model, random_survey(4, questionnaire=changed))


def test_an_explanation_adds_up_exactly(small_model):
    survey = random_survey(20, 8, blanks=0.2, Gender=tuple("FM" * 10))
    rules = Rules(same=("Gender",), forbids=((0, 6),))
    explanation = explain_pair(small_model, survey, 0, 4, rules)
    total = explanation.average + explanation.in_favour - explanation.against
    assert total == pytest.approx(explanation.score, abs=1e-12)
    scores = small_model.scores(survey)
    assert explanation.score == pytest.approx(scores[0, 4])
    compared = [
        scores[s, k] for s in (0, 4) for k in np.flatnonzero(allowed_partners(survey, s, rules))
    ]
    assert explanation.average == pytest.approx(np.mean(compared))
    sizes = [abs(c.amount) for c in explanation.contributions]
    assert sizes == sorted(sizes, reverse=True)


def test_explanations_name_answers_and_blanks(small_model):
    survey = random_survey(6)
    answers = survey.answers.copy()
    answers[0] = (-1, 2, 1)
    survey = Survey(survey.ids, SMALL, answers)
    named = {c.question: c.answers for c in explain_pair(small_model, survey, 0, 1).contributions}
    assert named["Quiet"][0] is None
    assert named["Bedtime"][0] == "Late"
    with pytest.raises(InvalidProblemError, match="two different students"):
        explain_pair(small_model, survey, 2, 2)


def test_odd_sets_are_not_held_where_a_long_step_only_looks():
    """Friends who answer nearly alike: the first step leads where hundreds of sets would bind."""
    form = Questionnaire(standard_form().questions[:8])
    survey = random_survey(300, 3, questionnaire=form)
    pairs = np.lexsort(survey.answers.T[::-1]).reshape(-1, 2)
    result = train_roommates([(survey, pairs)], ridge=1.0, relative_gap=1e-6).result
    assert result.status is Status.CONVERGED
    assert result.relative_gap <= 1e-6
    assert result.oracle_calls <= 45  # 57 when every trial was solved to the end


def test_question_weights_describe_the_scores(small_model):
    rows = question_weights(small_model)
    assert [row.question.name for row in rows] == list(SMALL.names)
    assert sum(row.importance for row in rows) == pytest.approx(1.0)
    for q, row in enumerate(rows):
        block = small_model.features.question_block(small_model.theta, q)
        levels = row.question.n_levels
        assert row.pair_scores == pytest.approx(block[:levels, :levels])
        assert row.odds_factor == pytest.approx(np.exp(row.step_effect))


def test_evaluation_ranks_simulated_pairs_above_chance(trained, years):
    evaluation = evaluate_roommates(trained.model, *years[2])
    assert evaluation.auc > 0.55
    assert evaluation.auc > evaluation.baseline_auc
    assert 0.0 <= evaluation.hamming_error <= 1.0
    assert evaluation.n_pairs == 60
    assert sum(b.count for b in evaluation.reliability) == 120 * 119 // 2


def test_an_evaluation_stops_while_it_sweeps(trained, years):
    answers = iter([False, False])
    with pytest.raises(StoppedError):
        evaluate_roommates(trained.model, *years[2], should_stop=lambda: next(answers, True))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04junk", b"not a model", None])
def test_broken_model_files_are_refused(tmp_path, content):
    path = tmp_path / "m.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidProblemError):
        load_roommate_model(path)


def test_model_files_that_do_not_fit_together_are_refused(tmp_path, small_model):
    small_model.save(tmp_path / "good.npz")
    with np.load(tmp_path / "good.npz") as archive:
        parts = dict(archive)
    for change in (
        {"theta": parts["theta"][:-1]},
        {"theta": np.full_like(parts["theta"], np.nan)},
        {"format": np.array("other")},
        {"questionnaire": np.array("{}")},
        {"ridge": np.array(-1.0)},
        {"theta": np.array([object()], dtype=object)},
    ):
        np.savez(tmp_path / "bad.npz", **(parts | change))
        with pytest.raises(InvalidProblemError):
            load_roommate_model(tmp_path / "bad.npz")


def leave_odd_sets_open(monkeypatch):
    """As if nothing could be proved of any tau, nor of a mixture."""
    for name in ("examine_cheaply", "examine_odd_sets"):
        monkeypatch.setattr(cascade, name, lambda *_, **__: OddSetProof(np.zeros(2)))
    monkeypatch.setattr(survey_structure.SurveyStructure, "_mixture", lambda *_: None)


def test_auto_turns_to_frank_wolfe_where_odd_sets_cannot_be_proved(monkeypatch):
    leave_odd_sets_open(monkeypatch)
    cohorts = random_cohorts(10)
    alone = train_roommates(cohorts, ridge=5.0, solver="theta", relative_gap=1e-2)
    assert not alone.result.is_certified
    auto = train_roommates(cohorts, ridge=5.0, relative_gap=1e-2, max_seconds=120.0)
    assert auto.result.is_certified
    assert auto.result.status is Status.CONVERGED


def test_auto_goes_on_with_frank_wolfe_after_a_restart(monkeypatch, tmp_path):
    """Frank-Wolfe's checkpoint must not be taken for none by the solve in theta, and lost."""
    leave_odd_sets_open(monkeypatch)
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)
    cohorts, place = random_cohorts(10), FileCheckpoint(tmp_path / "checkpoint.npz")
    walked = 0

    def has_walked() -> bool:
        nonlocal walked
        saved = place.load()
        walked += saved is not None and str(saved["stamp_solver"]) == "ShuffledOrder"
        return walked > 20

    arguments = {"ridge": 5.0, "relative_gap": 1e-6, "max_seconds": 120.0, "checkpoint": place}
    train_roommates(cohorts, should_stop=has_walked, **arguments)
    saved, told = place.load(), []
    again = train_roommates(
        cohorts, should_stop=lambda: len(told) > 3, on_progress=told.append, **arguments
    )
    assert told[0].iteration > int(saved["iteration"]) > 0
    assert told[0].seconds > float(saved["seconds"]) > 0
    assert again.result.objective <= told[0].objective


def test_auto_keeps_a_certified_solution_that_rounding_stopped():
    arguments = {"ridge": 5.0, "relative_gap": 1e-15, "max_seconds": 120.0}
    auto = train_roommates(random_cohorts(10), **arguments)
    assert auto.result.is_certified
    assert auto.result.relative_gap < 1e-9
    assert auto.result.seconds < 60


def test_the_solution_in_theta_outlives_a_restart_of_the_walk(monkeypatch, tmp_path):
    """A walk that was killed has overwritten what the solve in theta left, and may end worse."""
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr("engine.learning.roommates.solvers.AS_CLOSE_AS_PROOFS", 0.0)
    cohorts, place = random_cohorts(10), FileCheckpoint(tmp_path / "checkpoint.npz")
    arguments = {"ridge": 5.0, "relative_gap": 1e-15, "max_seconds": 120.0, "checkpoint": place}
    walked = 0

    def has_walked() -> bool:
        nonlocal walked
        saved = place.load()
        walked += saved is not None and str(saved["stamp_solver"]) == "ShuffledOrder"
        return walked > 3

    train_roommates(cohorts, should_stop=has_walked, **arguments)
    again = train_roommates(cohorts, should_stop=has_walked, **arguments)
    assert again.result.is_certified
    assert again.result.relative_gap < 1e-9


def test_the_checkpoint_of_another_solver_is_refused_unless_it_is_private(monkeypatch, tmp_path):
    monkeypatch.setattr("engine.solvers.control.CHECKPOINT_SECONDS", 0.0)
    cohorts, path = random_cohorts(10), tmp_path / "checkpoint.npz"
    arguments = {"ridge": 5.0, "relative_gap": 1e-2}
    train_roommates(
        cohorts, solver="block-coordinate", checkpoint=FileCheckpoint(path), **arguments
    )
    with pytest.raises(InvalidProblemError, match="solver block-coordinate, not auto"):
        train_roommates(cohorts, checkpoint=FileCheckpoint(path), **arguments)
    private = FileCheckpoint(path, is_private=True)
    assert train_roommates(cohorts, checkpoint=private, **arguments).result.is_certified
