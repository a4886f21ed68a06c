"""Questions of a survey: their kinds, and the order of their answers."""

import json
from dataclasses import dataclass
from typing import Literal, get_args

from engine.core.errors import InvalidProblemError

QuestionKind = Literal["binary", "ordinal", "nominal"]
MAX_LEVELS = 50  # K grows with the square; a multiple-choice question has at most this many answers


@dataclass(frozen=True, slots=True)
class Question:
    r"""Question and its answers.

    Parameters
    ----------
    name : str
    kind : "binary", "ordinal" or "nominal"
        The distance between answers u and v is \|u - v\| for binary and ordinal questions and
        1 if u != v for nominal ones.
    levels : tuple of str
        The answers, for ordinal questions in their order. A blank is not a level.

    Raises
    ------
    InvalidProblemError
        If the kind is unknown, or the levels are too few, too many, repeated, empty, or begin or
        end with a space.

    Examples
    --------
    >>> Question("Bedtime", "ordinal", ("early", "midnight", "late")).levels[-1]
    'late'
    """

    name: str
    kind: QuestionKind
    levels: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.kind not in get_args(QuestionKind):
            raise InvalidProblemError(
                f"{self.name}: expected kind binary, ordinal or nominal, received {self.kind!r}."
            )
        for level in self.levels:
            # Cells are read without the space around them, and an empty cell is a blank.
            if not level or level != level.strip():
                raise InvalidProblemError(
                    f"{self.name}: expected answers without space around them and none empty, "
                    f"received {level[:40]!r}."
                )
        if len(set(self.levels)) != len(self.levels):
            twice = next(x for x in self.levels if self.levels.count(x) > 1)
            raise InvalidProblemError(f"{self.name}: the answer {twice!r} is listed twice.")
        if len(self.levels) < 2:
            raise InvalidProblemError(
                f"{self.name}: every student gave the same answer; "
                "a question needs at least two answers to learn from."
            )
        if self.kind == "binary" and len(self.levels) != 2:
            raise InvalidProblemError(
                f"{self.name}: a binary question has two answers, received {len(self.levels)}."
            )
        if len(self.levels) > MAX_LEVELS:
            raise InvalidProblemError(
                f"{self.name}: {len(self.levels)} different answers; "
                f"at most {MAX_LEVELS} can be used."
            )

    @property
    def n_levels(self) -> int:
        """Number of answers, not counting the blank."""
        return len(self.levels)

    @property
    def n_features(self) -> int:
        """Number of features, a distance and the unordered pairs of answers: 1 + L (L + 1) / 2."""
        return 1 + self.n_levels * (self.n_levels + 1) // 2


@dataclass(frozen=True, slots=True)
class Questionnaire:
    """Questions that a model is trained on, in order.

    Parameters
    ----------
    questions : tuple of Question, at least one, with different names.

    Raises
    ------
    InvalidProblemError
        If there is no question or two have the same name.

    Examples
    --------
    >>> smokes = Question("Smokes", "binary", ("no", "yes"))
    >>> Questionnaire((smokes,)).n_questions
    1
    """

    questions: tuple[Question, ...]

    def __post_init__(self) -> None:
        if not self.questions:
            raise InvalidProblemError("A questionnaire needs at least one question, received none.")
        names = [question.name for question in self.questions]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidProblemError(f"The question {twice!r} appears twice.")

    @property
    def n_questions(self) -> int:
        """Number of questions Q."""
        return len(self.questions)

    @property
    def n_features(self) -> int:
        """K = sum_q (1 + L_q (L_q + 1) / 2): 200 for two binary and twelve five-level questions.

        Questions with blanks in past cohorts get two more each; see ``SurveyFeatures``.
        """
        return sum(question.n_features for question in self.questions)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the questions, in order."""
        return tuple(question.name for question in self.questions)

    def to_json(self) -> str:
        """Return the questionnaire as one JSON object: {"questions": [{name, kind, levels}]}."""
        rows = [{"name": q.name, "kind": q.kind, "levels": list(q.levels)} for q in self.questions]
        return json.dumps({"questions": rows}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Questionnaire":
        """Read a questionnaire from the text of ``to_json``.

        Raises
        ------
        InvalidProblemError
            If the text is not such an object.
        """
        try:
            rows = json.loads(text)["questions"]
            if not all(isinstance(row["levels"], list) for row in rows):
                raise TypeError("a word is no list of answers, though its letters could be read")
            questions = tuple(
                Question(str(row["name"]), row["kind"], tuple(str(x) for x in row["levels"]))
                for row in rows
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if isinstance(error, InvalidProblemError):
                raise
            raise InvalidProblemError(
                'The schema must read {"questions": [{"name", "kind", "levels"}, ...]}.'
            ) from error
        return cls(questions)

    def check_same_as(self, other: "Questionnaire", what: str = "This survey") -> None:
        """Raise InvalidProblemError naming the first question in which ``other`` differs."""
        theirs = {question.name: question for question in other.questions}
        for question in self.questions:
            if question.name not in theirs:
                raise InvalidProblemError(
                    f"{what} was made from other questions: {question.name} is missing."
                )
            if theirs[question.name] != question:
                raise InvalidProblemError(
                    f"{what} was made from other questions: "
                    f"{question.name} has other answers or another kind."
                )
        extra = [name for name in theirs if name not in self.names]
        if extra or other.names != self.names:
            detail = f"{extra[0]} is not among them" if extra else "they stand in another order"
            raise InvalidProblemError(f"{what} was made from other questions: {detail}.")
