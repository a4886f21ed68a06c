"""Sentences of learned models."""

from webapp.segmentation.learning_reports import limit_sentence


def test_the_work_that_a_time_limit_left_out_is_listed() -> None:
    assert limit_sentence(()) == ""
    assert limit_sentence(("images after the first 12", "a refit of the trees")) == (
        "The time limit left out: images after the first 12; a refit of the trees."
    )
