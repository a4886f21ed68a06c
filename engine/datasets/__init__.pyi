"""Names of ``engine.datasets``; ``__init__.py`` imports each at first use."""

from .masks import read_mask, write_mask
from .matching_sampler import MatchingSample, sample_matching
from .object_edges import EDGE_CLASSES, edges_of
from .picture_view import read_image
from .practice_pairs import PracticePairs, PracticeWeights, invent_weights, simulate_pairs
from .room_files import (
    read_preferences_csv,
    read_requests_csv,
    read_rooms_csv,
    read_roster_csv,
    write_placement_csv,
)
from .room_rule_files import read_room_rules_csv
from .roster_sampler import RosterSample, capacities_for, sample_roster
from .survey_csv import infer_questionnaire, read_pairs_csv, read_rules_csv, read_survey_csv
from .synthetic_images import LabelledImage, generate_leaf_images
from .uai import read_uai, read_uai_evidence, write_uai
from .university import (
    SimulatedCohort,
    SimulatedUniversity,
    housing_questionnaire,
    simulate_university,
)

__all__ = [
    "EDGE_CLASSES",
    "LabelledImage",
    "MatchingSample",
    "PracticePairs",
    "PracticeWeights",
    "RosterSample",
    "SimulatedCohort",
    "SimulatedUniversity",
    "capacities_for",
    "edges_of",
    "generate_leaf_images",
    "housing_questionnaire",
    "infer_questionnaire",
    "invent_weights",
    "read_image",
    "read_mask",
    "read_pairs_csv",
    "read_preferences_csv",
    "read_requests_csv",
    "read_room_rules_csv",
    "read_rooms_csv",
    "read_roster_csv",
    "read_rules_csv",
    "read_survey_csv",
    "read_uai",
    "read_uai_evidence",
    "sample_matching",
    "sample_roster",
    "simulate_pairs",
    "simulate_university",
    "write_mask",
    "write_placement_csv",
    "write_uai",
]
