"""Every option of every verb that takes a value is checked before a file is read."""

import argparse
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.cli.main import VERBS, main

WRONG_NUMBERS = ("nan", "-inf", "-1", "nonsense", "", "1_0")
FREE_TEXT = {"--cohort", "--classes", "--class-weights", "--same", "--degrees", "--evidence"}
# Options that accept -1.
SIGNED = {"--strength", "--splits"}
# Options that refuse 0.
ABOVE_ZERO = {
    "--lambda", "--gap", "--max-work", "--scale", "--students", "--cohorts", "--max-iterations",
    "--typical-area", "--pixel-size",
}  # fmt: skip
ABSENT = "no/such/file"


@dataclass(frozen=True)
class Option:
    """An option of one action of a verb, and the words that call it with files that are absent."""

    words: tuple[str, ...]
    action: argparse.Action
    rest: tuple[str, ...]

    def __str__(self) -> str:
        return f"{' '.join(self.words)} {self.action.option_strings[-1]}"


def actions_of(
    parser: argparse.ArgumentParser, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    subs = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not subs:
        yield words, parser
    for sub in subs:
        for name, child in sub.choices.items():
            yield from actions_of(child, (*words, name))


def all_options() -> Iterator[Option]:
    for verb in VERBS:
        parser = argparse.ArgumentParser()
        importlib.import_module(f"engine.cli.{verb}").add_arguments(parser)
        for words, child in actions_of(parser, (verb,)):
            for action in child._actions:
                if action.option_strings and action.nargs != 0:
                    yield Option(words, action, needed(child, action))


def needed(parser: argparse.ArgumentParser, besides: argparse.Action) -> tuple[str, ...]:
    """Return the required words of an action, with files that are absent."""
    words: list[str] = []
    for action in parser._actions:
        if action is besides or not action.required or action.dest == "help":
            continue
        value = f"{ABSENT}.csv:{ABSENT}.csv" if action.dest == "cohort" else ABSENT
        words += [action.option_strings[-1], value] if action.option_strings else [value]
    return tuple(words)


OPTIONS = [option for option in all_options() if option.action.type is not Path]


def wrong_values(option: Option) -> Iterator[str]:
    name = option.action.option_strings[-1]
    if option.action.choices is not None:
        yield from ("nonsense", "", "1")
        return
    for value in WRONG_NUMBERS:
        if not (value == "-1" and name in SIGNED):
            yield value
    if name != "--max-seconds":
        yield from ("inf", "9" * 400)
    if name in ABOVE_ZERO:
        yield "0"


@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_wrong_values_are_refused_before_any_file_is_read(
    option: Option, capsys: pytest.CaptureFixture[str]
) -> None:
    name = option.action.option_strings[-1]
    if option.action.choices is None and option.action.type is None:
        assert name in FREE_TEXT | {"--out"}, f"{option} takes any text"
        return
    for wrong in wrong_values(option):
        assert main([*option.words, *option.rest, f"{name}={wrong}"]) == 2
        said = capsys.readouterr().err
        assert f"argument {name}" in said, said
        assert ABSENT not in said, said
        for known in option.action.choices or ():
            assert known in said, said


@pytest.mark.parametrize("option", [one for one in OPTIONS if one.action.default], ids=str)
def test_the_help_names_the_default(option: Option) -> None:
    action = option.action
    shown = (action.help or "") % {"default": action.default}
    default = action.default
    assert (f"{default:g}" if isinstance(default, float) else str(default)) in shown or (
        "default)" in shown and default in action.choices
    )


def test_the_walk_finds_options_of_every_action() -> None:
    names = {str(option) for option in OPTIONS}
    assert len(names) > 40
    assert {
        "roommates rooms --gap", "segment train --lambda", "uai pr --damping", "match --kind",
        "roommates weights --refits", "roommates simulate --blanks",
    } <= names  # fmt: skip


@pytest.mark.parametrize("value", ["nan", "-1", "1.5", "nonsense"])
def test_a_wrong_seed_is_refused(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["uai", "pr", ABSENT, f"--seed={value}"]) == 2
    assert "argument --seed: expected a whole number" in capsys.readouterr().err
