"""Names of the public face; ``engine/__init__.py`` imports each when it is first used."""

from .core.checkpoint import Checkpoint, FileCheckpoint
from .core.errors import (
    CertificateError,
    InfeasibleError,
    InvalidProblemError,
    StoppedError,
)
from .core.progress import (
    Progress,
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from .core.status import Status
from .core.whole_file import PartFile, part_file, whole_file
from .crf.questionnaire import Question, QuestionKind, Questionnaire
from .crf.room_rules import Designation, Need, Preference, Request, RoomRules
from .crf.rooms import Rooms
from .crf.rules import Rules
from .crf.survey import BLANK, Survey, check_pairs, partners_of
from .datasets.answer_order import order_answers
from .datasets.image_names import is_lossy, mask_stem, name_in_set, picture_stem
from .datasets.images import read_image
from .datasets.masks import mask_fits, match_mask, read_mask, write_mask
from .datasets.matching_sampler import MatchingSample, sample_matching
from .datasets.practice_pairs import PracticePairs, PracticeWeights, invent_weights, simulate_pairs
from .datasets.room_files import (
    read_preferences_csv,
    read_requests_csv,
    read_room_rules_csv,
    read_rooms_csv,
    read_roster_csv,
    rules_of_columns,
    write_placement_csv,
)
from .datasets.roster_sampler import RosterSample, capacities_for, sample_roster
from .datasets.survey_csv import (
    infer_questionnaire,
    read_pairs_csv,
    read_rules_csv,
    read_survey_csv,
)
from .datasets.survey_table import ColumnGuess, classify_columns, is_blank
from .datasets.synthetic_images import LabelledImage, generate_leaf_images
from .datasets.uai import read_uai, read_uai_evidence, write_uai
from .datasets.university import (
    SimulatedCohort,
    SimulatedUniversity,
    housing_questionnaire,
    simulate_university,
)
from .graphs.factor_graph import Factor, FactorGraph, to_pairwise
from .graphs.grid import Grid, GridTables
from .graphs.pairwise import PairwiseGraph, PairwiseModel
from .inference.elimination import Elimination
from .inference.expansion import map_by_expansion
from .inference.grid_tree_reweighted import GridTreeReweighted
from .inference.log_partition import PartitionEstimate, log_partition, marginals
from .inference.map_estimate import MapEstimate
from .inference.map_linear_programme import map_by_linear_programme
from .inference.map_portfolio import map_estimate
from .inference.marginals import Marginals
from .inference.mean_field import mean_field
from .inference.planar_ising import IsingMarginals, PlanarIsing
from .inference.roof_dual_map import map_by_roof_duality
from .inference.rules import RuleConflict, check_rules
from .inference.tree_reweighted import TreeReweighted
from .learning.boosted_model import BoostedSegmentationModel
from .learning.boosted_segmentation import TrainedBoosted, train_boosted_segmentation
from .learning.partner_means import PartnerMeans, compute_partner_means
from .learning.roommate_evaluation import Evaluation, evaluate_roommates
from .learning.roommate_explanation import (
    Contribution,
    Explanation,
    QuestionWeight,
    SwapCost,
    allowed_partners,
    explain_pair,
    question_weights,
    swap_cost,
)
from .learning.roommate_model import RoommateModel, load_roommate_model
from .learning.roommate_proposal import NextBest, Proposal, propose_pairs
from .learning.roommates import TrainedRoommates, train_roommates
from .learning.segmentation import TrainedSegmentation, train_segmentation
from .learning.segmentation_model import SegmentationModel, load_segmentation_model
from .learning.segmentation_prediction import (
    MaskEvaluation,
    Prediction,
    evaluate_mask,
    predict_segmentation,
)
from .learning.segmentation_progress import SegmentationPreview, SegmentationProgress
from .learning.set_weights import set_roommate_weights
from .metrics.calibration import ReliabilityBin
from .metrics.roc import RocCurve
from .oracles.assignment import Assignment, assign
from .oracles.bipartite_b_matching import bipartite_b_matching
from .oracles.grid_roof_duality import GridRoofDuality
from .oracles.matching import Matching
from .oracles.one_hot_scores import OneHotScores
from .oracles.perfect_matching import CompleteGraphMatcher
from .oracles.roof_duality import RoofDuality
from .oracles.sparse_matching import max_weight_matching
from .rooms.chain import SharedRooms, share_probabilities
from .rooms.conflicts import RoomConflict, check_room_rules
from .rooms.explanation import (
    PlacementMoves,
    RoomExplanation,
    RoomMove,
    doubt_of_scores,
    explain_room,
    explain_roommates,
    partner_doubt,
)
from .rooms.parity import ParityRow, placement_parity
from .rooms.placement import Placement, place_in_rooms
from .rooms.veto import VetoCurve, veto_curve, vetoed_pairs
from .rooms.what_if import WhatIf, what_if
from .solvers.result import LearningResult, TrajectoryPoint

__all__ = [
    "BLANK",
    "Assignment",
    "BoostedSegmentationModel",
    "CertificateError",
    "Checkpoint",
    "ColumnGuess",
    "CompleteGraphMatcher",
    "Contribution",
    "Designation",
    "Elimination",
    "Evaluation",
    "Explanation",
    "Factor",
    "FactorGraph",
    "FileCheckpoint",
    "Grid",
    "GridRoofDuality",
    "GridTables",
    "GridTreeReweighted",
    "InfeasibleError",
    "InvalidProblemError",
    "IsingMarginals",
    "LabelledImage",
    "LearningResult",
    "MapEstimate",
    "Marginals",
    "MaskEvaluation",
    "Matching",
    "MatchingSample",
    "Need",
    "NextBest",
    "OneHotScores",
    "PairwiseGraph",
    "PairwiseModel",
    "ParityRow",
    "PartFile",
    "PartitionEstimate",
    "PartnerMeans",
    "Placement",
    "PlacementMoves",
    "PlanarIsing",
    "PracticePairs",
    "PracticeWeights",
    "Prediction",
    "Preference",
    "Progress",
    "ProgressCallback",
    "Proposal",
    "Question",
    "QuestionKind",
    "QuestionWeight",
    "Questionnaire",
    "ReliabilityBin",
    "Request",
    "RocCurve",
    "RoofDuality",
    "RoomConflict",
    "RoomExplanation",
    "RoomMove",
    "RoomRules",
    "RoommateModel",
    "Rooms",
    "RosterSample",
    "RuleConflict",
    "Rules",
    "SegmentationModel",
    "SegmentationPreview",
    "SegmentationProgress",
    "SharedRooms",
    "SimulatedCohort",
    "SimulatedUniversity",
    "Status",
    "StopCallback",
    "StoppedError",
    "Survey",
    "SwapCost",
    "TrainedBoosted",
    "TrainedRoommates",
    "TrainedSegmentation",
    "TrajectoryPoint",
    "TreeReweighted",
    "VetoCurve",
    "WhatIf",
    "allowed_partners",
    "assign",
    "bipartite_b_matching",
    "capacities_for",
    "check_pairs",
    "check_room_rules",
    "check_rules",
    "classify_columns",
    "compute_partner_means",
    "doubt_of_scores",
    "evaluate_mask",
    "evaluate_roommates",
    "explain_pair",
    "explain_room",
    "explain_roommates",
    "generate_leaf_images",
    "housing_questionnaire",
    "ignore_progress",
    "infer_questionnaire",
    "invent_weights",
    "is_blank",
    "is_lossy",
    "load_roommate_model",
    "load_segmentation_model",
    "log_partition",
    "map_by_expansion",
    "map_by_linear_programme",
    "map_by_roof_duality",
    "map_estimate",
    "marginals",
    "mask_fits",
    "mask_stem",
    "match_mask",
    "max_weight_matching",
    "mean_field",
    "name_in_set",
    "never_stop",
    "order_answers",
    "part_file",
    "partner_doubt",
    "partners_of",
    "picture_stem",
    "place_in_rooms",
    "placement_parity",
    "predict_segmentation",
    "propose_pairs",
    "question_weights",
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
    "rules_of_columns",
    "sample_matching",
    "sample_roster",
    "set_roommate_weights",
    "share_probabilities",
    "simulate_pairs",
    "simulate_university",
    "swap_cost",
    "to_pairwise",
    "train_boosted_segmentation",
    "train_roommates",
    "train_segmentation",
    "veto_curve",
    "vetoed_pairs",
    "what_if",
    "whole_file",
    "write_mask",
    "write_placement_csv",
    "write_uai",
]
