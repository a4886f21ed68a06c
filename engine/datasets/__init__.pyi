"""Names of ``engine.datasets``; ``__init__.py`` imports each when it is first used."""

from .matching_sampler import MatchingSample, sample_matching
from .practice_pairs import PracticePairs, PracticeWeights, invent_weights, simulate_pairs
from .survey_csv import infer_questionnaire, read_pairs_csv, read_rules_csv, read_survey_csv
from .synthetic_images import LabelledImage, generate_leaf_images
from .uai import read_uai, write_uai
from .university import (
    SimulatedCohort,
    SimulatedUniversity,
    housing_questionnaire,
    simulate_university,
)

__all__ = [
    "LabelledImage",
    "MatchingSample",
    "PracticePairs",
    "PracticeWeights",
    "SimulatedCohort",
    "SimulatedUniversity",
    "generate_leaf_images",
    "housing_questionnaire",
    "infer_questionnaire",
    "invent_weights",
    "read_pairs_csv",
    "read_rules_csv",
    "read_survey_csv",
    "read_uai",
    "sample_matching",
    "simulate_pairs",
    "simulate_university",
    "write_uai",
]
