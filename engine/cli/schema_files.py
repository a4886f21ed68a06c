"""Questions of a survey, from a schema file or inferred from its answers."""

from collections.abc import Sequence
from pathlib import Path

from engine.core.errors import InvalidProblemError
from engine.crf.questionnaire import Questionnaire
from engine.datasets.survey_csv import infer_questionnaire
from engine.tabular.unattended import Fixes


def read_questionnaire(schema: Path | None, surveys: Sequence[Path], fixes: Fixes) -> Questionnaire:
    """Read the questions of ``schema``, or infer those that the surveys share."""
    if schema is None:
        return infer_questionnaire(surveys, fixes=fixes)
    try:
        return Questionnaire.from_json(schema.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidProblemError(f"{schema.name} cannot be read as text: {error}.") from error


def write_schema(folder: Path, questionnaire: Questionnaire) -> None:
    """Write ``schema.json``, which `read_questionnaire` reads."""
    (folder / "schema.json").write_text(questionnaire.to_json() + "\n", encoding="utf-8")
