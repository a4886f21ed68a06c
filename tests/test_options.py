"""Every option of every public function is checked, under its own name, before any work starts.

The walk finds the options by their annotations: numbers, truth values, names, random generators and
callbacks. Everything else that a function takes is replaced by an object that cannot be used, so a
wrong option must be refused before anything else is looked at. A new option that nobody checks
makes the walk fail.
"""

import enum
import importlib
import inspect
import math
import types
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
from engine.core.errors import InvalidProblemError

ROOT = Path(engine.__file__).parent
FACES = ("engine", *(f"engine.{path.parent.name}" for path in sorted(ROOT.glob("*/*.pyi"))))

# What the engine makes and people only read: its numbers are no options.
RESULTS = {
    "Assignment", "Bounds", "ClassFigures", "Confusion", "Decoding", "Direction",
    "DoubleLoopResult", "ExtremePoint", "FixedScores", "FrankWolfeMarginals", "FreeEnergy",
    "InnerSolution", "InteriorStart", "IsingMarginals", "Iterate", "LabelledImage", "LearningDual",
    "LearningResult", "Line", "MapEstimate", "Marginals", "Matching", "MatchingEntropy",
    "MatchingLayout", "MatchingSample", "ObjectMatches", "ObjectTable", "PartitionEstimate",
    "PracticePairs", "PracticeWeights", "ProductMarginals", "Progress", "PropagatedExample",
    "ReliabilityBin", "RocCurve", "RoommateModel", "RosterSample", "RuleConflict",
    "SimulatedCohort", "SimulatedUniversity", "TJoin", "TrainedCompetitor", "TrajectoryPoint",
    "Vertex",
}  # fmt: skip

# Estimators keep their options unread until they are fitted: tests/estimators checks theirs.
ESTIMATORS = {"Roommates", "Segmenter", "StructuredModel"}

# Options that may be negative, and names that no registry lists.
SIGNED = {
    ("separate_objects", "splits"),
    ("simulate_university", "strength"), ("read_graph", "default"), ("decode", "loss_weight"),
    ("Request", "weight"), ("Preference", "weight"),
}  # fmt: skip
FREE_TEXT = {
    ("read_graph", "weight"), ("Need", "column"), ("Need", "value"), ("Preference", "column"),
    ("Designation", "room_column"), ("Designation", "student_column"),
    ("LiveSegmenter.add_image", "key"), ("LiveSegmenter.remove_image", "key"),
    ("LiveSegmenter.predict", "key"),
}  # fmt: skip
NOT_CHECKED = {
    # The message quotes the text: it comes from a file, a row of which is named.
    ("Question", "name"), ("Question", "kind"), ("Questionnaire.check_same_as", "what"),
    ("read_image", "name"), ("read_mask", "name"), ("make_indicator", "share"),
    ("find_interior_start", "oracle"), ("check_matching", "is_perfect"),
    ("interior_of_graph", "is_perfect"), ("check_parts", "names"),
}  # fmt: skip
ABOVE_ZERO = {
    "ridge", "ridge_factor", "step_size", "sharpness", "threshold", "max_work", "relative_gap",
    "n_labels", "height", "width", "n_samples", "capacity", "max_side", "min_students",
}  # fmt: skip
ZERO_ALLOWED = {("Limits", "relative_gap"), ("train_structured_svm", "relative_gap")}
UNLIMITED = {("ThetaAscent", "refresh_ratio"), ("map_estimate", "max_work")}  # inf: never
GIVEN = {"loss": "likelihood", "solver": "auto"}


@dataclass(frozen=True)
class Option:
    """A parameter of a public function and what its annotation says."""

    owner: str
    call: Callable[..., Any]
    name: str
    kinds: frozenset[Any]
    names: tuple[str, ...]  # of a Literal
    others: tuple[tuple[str, Any], ...]  # what else has to be given

    def __str__(self) -> str:
        return f"{self.owner}-{self.name}"


class Untouchable:
    """Something that no work can be done with."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"used {name} before the options were checked")


def kinds_of(annotation: Any) -> tuple[frozenset[Any], tuple[str, ...]]:
    """Return the scalar types in an annotation, and the names of a Literal."""
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        return frozenset({str}), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        parts = [kinds_of(part) for part in typing.get_args(annotation)]
        return frozenset().union(*(k for k, _ in parts)), sum((n for _, n in parts), ())
    if origin is not None and issubclass(origin, Callable):
        return frozenset({Callable}), ()
    if annotation in (bool, int, float, str, np.random.Generator, type(None), Path, bytes):
        return frozenset({annotation}), ()
    return frozenset(), ()


SCALARS = {bool, int, float, str, np.random.Generator, Callable}


def options_in(
    owner: str, call: Callable[..., Any], hints_of: Any, *, all_of: bool
) -> Iterator[Option]:
    """Yield the options of one function, constructor or method."""
    hints = typing.get_type_hints(hints_of)
    parameters = [p for p in inspect.signature(call).parameters.values() if p.name != "self"]
    found = {}
    for one in parameters:
        kinds, names = kinds_of(hints.get(one.name))
        is_option = bool(kinds & SCALARS) and not kinds & {Path, bytes}
        if is_option and (owner, one.name) not in NOT_CHECKED:
            found[one.name] = kinds, names
    for one in parameters:
        if one.name not in found or not (all_of or one.default is not one.empty):
            continue
        others = tuple(
            (other.name, good_value(other.name, found.get(other.name)))
            for other in parameters
            if other is not one and other.default is other.empty
        )
        kinds, names = found[one.name]
        yield Option(owner, call, one.name, kinds, names, others)


def good_value(name: str, found: tuple[frozenset[Any], tuple[str, ...]] | None) -> Any:
    """Return a value that a check lets pass; of what is no option, something untouchable."""
    if found is None:
        return Untouchable()
    kinds, names = found
    if np.random.Generator in kinds:
        return np.random.default_rng(0)
    if Callable in kinds:
        return lambda *_: None
    if str in kinds:
        return names[0] if names else GIVEN.get(name, "text")
    return 0.5 if float in kinds else 2


def all_options() -> Iterator[Option]:
    seen: set[int] = set()
    for face in FACES:
        module = importlib.import_module(face)
        for name in module.__all__:
            found = getattr(module, name)
            if id(found) in seen or not callable(found) or name in RESULTS | ESTIMATORS:
                continue
            seen.add(id(found))
            if not inspect.isclass(found):
                yield from options_in(name, found, found, all_of=True)
            elif not (
                issubclass(found, Exception | enum.Enum) or getattr(found, "_is_protocol", False)
            ):
                yield from options_in(name, found, found.__init__, all_of=True)
                for part, method in vars(found).items():
                    if inspect.isfunction(method) and not part.startswith("_"):
                        call = bound_to_nothing(found, method)
                        yield from options_in(f"{name}.{part}", call, method, all_of=False)


def bound_to_nothing(kind: type, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of an object that was never made."""
    return types.MethodType(method, Untouchable())


def wrong_values(option: Option) -> Iterator[Any]:
    """Yield values that no option of this kind takes."""
    key, kinds = (option.owner, option.name), option.kinds
    if type(None) not in kinds:
        yield None
    yield object()
    if np.random.Generator in kinds:
        yield from (42, "nonsense")
    elif Callable in kinds:
        yield from (3, "nonsense")
    elif str in kinds:
        yield from (3, math.nan)
        if key not in FREE_TEXT:
            yield "nonsense"
    elif kinds & {int, float}:
        yield from ("nonsense", "1", math.nan, -math.inf, 10**400, -(10**5000), True, 1 + 1j)
        if key not in SIGNED:
            yield -1
        if "seconds" not in option.name and key not in UNLIMITED:
            yield math.inf
        if float not in kinds:
            yield from (1.5, 2.0**70)
        if option.name in ABOVE_ZERO and key not in ZERO_ALLOWED:
            yield 0
    else:
        yield from ("nonsense", "False", 2, math.nan)


OPTIONS = list(all_options())


@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_wrong_values_are_refused_before_any_work(option: Option) -> None:
    for wrong in wrong_values(option):
        with pytest.raises(InvalidProblemError) as caught:
            option.call(**dict(option.others), **{option.name: wrong})
        said = str(caught.value)
        assert said.startswith(f"{option.name}: expected "), said
        assert said.endswith("."), said
        assert len(said) < 400, said
        for known in option.names:
            assert known in said, said
        if str in option.kinds and (option.owner, option.name) not in FREE_TEXT:
            assert "expected one of" in said, said


def test_the_walk_finds_the_options_of_every_face() -> None:
    found = {str(option) for option in OPTIONS}
    assert len(found) > 200
    assert {
        "log_partition-rho", "log_partition-method", "map_estimate-method", "marginals-damping",
        "train_boosted_segmentation-ridge", "TreeReweighted.solve-tolerance", "Limits-gap",
    } <= found  # fmt: skip
