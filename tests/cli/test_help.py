"""The help texts: nothing without a word on it, and true."""

import argparse
import importlib
from collections.abc import Iterator

import pytest

from engine.cli.main import VERBS, main

ACTIONS = {
    "match": (),
    "roommates": ("train", "assign", "evaluate", "simulate"),
    "segment": ("train", "predict", "evaluate"),
    "uai": ("map", "pr", "mar"),
}


def help_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what --help prints, in one line."""
    with pytest.raises(SystemExit) as caught:
        main([*words, "--help"])
    assert caught.value.code == 0
    return " ".join(capsys.readouterr().out.split())


def parsers_of(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from parsers_of(sub)


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_has_a_help(verb: str) -> None:
    parser = argparse.ArgumentParser()
    importlib.import_module(f"engine.cli.{verb}").add_arguments(parser)
    for one in parsers_of(parser):
        bare = [
            action.dest
            for action in one._actions
            if not action.help and not isinstance(action, argparse._SubParsersAction)
        ]
        assert bare == [], one.prog


def test_every_action_names_the_options_that_all_have(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for verb, actions in ACTIONS.items():
        for words in ((verb,), *((verb, action) for action in actions)):
            text = help_of(capsys, *words)
            assert "--json" in text, words
            assert "--seed" in text, words
            assert "``" not in text, words


def test_the_first_page_speaks_to_whoever_calls(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Matching, roommates, images and factor graphs from the command line." in help_of(capsys)


def test_methods_not_given_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "(the optimum; needs tables that fit" in help_of(capsys, "uai", "map")
    assert "; all share the work if not given" in help_of(capsys, "uai", "map")
    for task in ("pr", "mar"):
        text = help_of(capsys, "uai", task)
        assert "trw (an upper bound of log Z), bp" in text
        assert "; trw if not given" in text


def test_defaults_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(capsys, "segment", "train")
    assert all(f"(default {value})" in text for value in ("0.5", "200", "0.001"))
