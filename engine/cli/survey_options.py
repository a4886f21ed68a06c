"""Option of every verb that reads surveys, and notes on automatic fixes."""

import argparse
import sys
from typing import get_args

from engine.crf.questionnaire import Questionnaire
from engine.crf.survey import Survey
from engine.datasets.survey_csv import MIN_STUDENTS, read_survey_csv
from engine.tabular.unattended import Fixes


def add_fixes_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--fixes``: choices that the web application offers on its import page."""
    parser.add_argument(
        "--fixes",
        choices=get_args(Fixes),
        default="refuse",
        help="where the import page would ask about a file: refuse the file (default), use the fix "
        "of all that it would ask about and offer, or use none and read the file as it stands",
    )


def print_note(sentence: str) -> None:
    """Print a note about an automatic fix of a file to standard error."""
    print(f"note: {sentence}", file=sys.stderr)


def read_year(
    args: argparse.Namespace, questionnaire: Questionnaire, min_students: int = MIN_STUDENTS
) -> Survey:
    """Read the survey of ``--survey`` by the questions of a model."""
    return read_survey_csv(
        args.survey,
        questionnaire,
        fixes=args.fixes,
        on_note=print_note,
        min_students=min_students,
    )
