"""Recipes: the choices made for one file, kept to read the next file of the same form alike.

Columns are known by their wording if the file has wordings, since Qualtrics renumbers questions,
and else by their header. Differences from last year are reported, never guessed.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.tabular.cause_proposals import split_column
from engine.tabular.causes import Cause, Resolution, State
from engine.tabular.choices import (
    Choices,
    Keep,
    Role,
    column_from_json,
    column_to_json,
)
from engine.tabular.facts import facts_of
from engine.tabular.guesses import MAKERS_OWN, guess_choices
from engine.tabular.numerals import Groups
from engine.tabular.personal import E_MAILS, NAMES
from engine.tabular.survey_table import is_blank
from engine.tabular.table import Table
from engine.tabular.text import fold_title
from engine.tabular.words import counted, listed

# Reasons of recipes that were made before names and e-mails had a use.
_LEFT_OUT_EARLIER = frozenset({NAMES.reason, E_MAILS.reason})
_SCORED = (Role.QUESTION, Role.CONSTRAINT, Role.NEED)
_NEVER_SCORED = (Role.NAME, Role.PREFERRED, Role.EMAIL)
_SAME_SHARE = 0.6  # share of the columns that must match for a form to count as the same


def column_keys(table: Table) -> list[str]:
    """Return the key of every column, the same from one year to the next."""
    keys = []
    for index, header in enumerate(table.header):
        wording = table.wordings[index] if index < len(table.wordings) else ""
        keys.append(fold_title(wording) or fold_title(header) or f"column{index}")
    times = Counter(keys)
    return [
        key if times[key] == 1 else f"{key}|{fold_title(table.header[index])}"
        for index, key in enumerate(keys)
    ]


def form_of(table: Table) -> str:
    """Return the digest of a form: the same for files with the same columns in any order."""
    said = "\n".join([table.layout.maker, *sorted(column_keys(table))])
    return hashlib.sha256(said.encode()).hexdigest()


def recipe_of(table: Table, choices: Choices) -> dict[str, Any]:
    """Return the choices of a file as plain data, column by column, without people's answers.

    The answers to choose from are kept; free texts and ids are in no column's levels.
    """
    keys = column_keys(table)
    columns = {}
    for index, key in enumerate(keys):
        column = column_to_json(choices.columns[index])
        column["header"] = table.header[index]
        meanings = choices.meanings.get(index)
        if meanings and choices.columns[index].role is not Role.ID:
            column["meanings"] = meanings
        parts = [
            column_to_json(c) | {"option": c.part.option}
            for c in choices.columns
            if c.part is not None and c.part.parent == index
        ]
        columns[key] = column | ({"parts": parts} if parts else {})
    return {"columns": columns, "keep": choices.keep.value, "settled": sorted(choices.settled)}


def most_similar(table: Table, contents: Iterable[Mapping[str, Any]]) -> int | None:
    """Return the position of the recipe most like a file's form; None if none is worth offering.

    Forms are alike by the share of all their columns that they have in common.
    """
    here = set(column_keys(table))
    columns = [set(content["columns"]) for content in contents]
    shares = [len(here & there) / max(1, len(here | there)) for there in columns]
    best = max(range(len(shares)), key=shares.__getitem__, default=None)
    return best if best is not None and shares[best] >= _SAME_SHARE else None


def apply_recipe(table: Table, content: Mapping[str, Any]) -> Choices:
    """Return the choices for a file by a recipe; new columns keep their guesses."""
    choices = guess_choices(table)
    if any(column["role"] == "id" for column in content["columns"].values()):
        old_id = [k for k, c in enumerate(choices.columns) if c.role is Role.ID]
        keys = column_keys(table)
        known = [k for k, key in enumerate(keys) if key in content["columns"]]
        if any(content["columns"][keys[k]]["role"] == "id" for k in known):
            choices = choices.with_role(old_id, Role.IGNORE)
    for index, key in enumerate(column_keys(table)):
        column = content["columns"].get(key)
        if column is not None:
            choices = _with_column(table, choices, index, column)
    return replace(
        choices, keep=Keep(content["keep"]), settled=frozenset(content["settled"]), recipe="used"
    )


def _with_column(table: Table, choices: Choices, index: int, column: Mapping[str, Any]) -> Choices:
    told = column_from_json(dict(column))
    columns = list(choices.columns)
    if told.role is Role.IGNORE and told.reason in _LEFT_OUT_EARLIER:
        told = replace(columns[index], name=told.name)
    if told.role in _SCORED and columns[index].role in _NEVER_SCORED:
        told = replace(columns[index], name=told.name)  # an earlier version took it for a question
    columns[index] = replace(told, part=None)
    meanings = {**choices.meanings, index: dict(column.get("meanings", {}))}
    choices = replace(choices, columns=tuple(columns), meanings=meanings)
    if column.get("parts") and facts_of(table)[index].several is not None:
        choices = split_column(table, index)(choices)
        named = {part["option"]: part for part in column["parts"]}
        for k, made in enumerate(choices.columns):
            if made.part is not None and made.part.parent == index and made.part.option in named:
                old = named[made.part.option]
                choices = choices.with_column(k, name=old["name"], role=Role(old["role"]))
    return choices


@dataclass(frozen=True, slots=True)
class Changes:
    """Differences between a file and the recipe of its form."""

    new: tuple[str, ...]
    missing: tuple[str, ...]
    new_answers: tuple[tuple[str, tuple[str, ...]], ...]
    n_same: int

    @property
    def sentence(self) -> str:
        """Return all changes in words."""
        said = []
        if self.new:
            said.append(f"New: {listed(self.new, 4, quoted=False)}.")
        if self.missing:
            said.append(f"No longer asked: {listed(self.missing, 4, quoted=False)}.")
        for name, answers in self.new_answers[:4]:
            said.append(f"{name} has {counted(len(answers), 'new answer')}: {listed(answers)}.")
        if len(self.new_answers) > 4:
            said.append(f"{len(self.new_answers) - 4} more questions have new answers.")
        return " ".join(said) or "Nothing changed since."


def changes_since(table: Table, content: Mapping[str, Any]) -> Changes:
    """Compare the columns and answers of a file with those of a recipe."""
    keys = column_keys(table)
    columns = content["columns"]
    new_answers = []
    for index, key in enumerate(keys):
        if key in columns and columns[key]["role"] == "question":
            told = columns[key]
            found = _unknown(table.column(index), told)
            if found:
                new_answers.append((told.get("name") or table.header[index], tuple(found)))
    guessed = {k: c.reason for k, c in enumerate(guess_choices(table).columns)}
    return Changes(
        tuple(
            table.header[k]
            for k, key in enumerate(keys)
            if key not in columns and guessed.get(k) != MAKERS_OWN
        ),
        tuple(
            told.get("name") or told["header"]
            for key, told in columns.items()
            if key not in keys and told["reason"] != MAKERS_OWN
        ),
        tuple(new_answers),
        sum(key in columns for key in keys),
    )


def _unknown(cells: Sequence[str], told: Mapping[str, Any]) -> list[str]:
    groups = Groups.from_json(told.get("groups"))
    known = {*told["levels"], *told.get("meanings", {})}
    found = [cell for cell in dict.fromkeys(cells) if not is_blank(cell) and cell not in known]
    if groups is not None:
        return [cell for cell in found if groups.level_of(cell) not in known]
    return found


def recipe_cause(table: Table, content: Mapping[str, Any], name: str) -> Cause:
    """Return the offer to read a file as the last one of its form was read."""
    changes = changes_since(table, content)
    return Cause(
        "recipe",
        State.PROPOSAL,
        "history",
        f"This file has the form of {name}",
        f"{changes.n_same} of {table.n_columns} columns are the same",
        changes.sentence,
        Resolution("Read it the same way", lambda choices: apply_recipe(table, content)),
        Resolution("Check it again", lambda choices: choices.settle("recipe")),
    )


def recipe_used(table: Table, content: Mapping[str, Any], name: str) -> Cause:
    """Return the notice that a recipe was used."""
    return Cause(
        "recipe",
        State.DONE,
        "history",
        f"Read as {name} was",
        why=changes_since(table, content).sentence,
        other=Resolution("Undo", lambda choices: guess_choices(table).settle("recipe")),
        done="Used",
    )
