"""Names of the public face; ``engine/__init__.py`` imports each when it is first used."""

from .core.checkpoint import Checkpoint, FileCheckpoint
from .core.errors import (
    CertificateError,
    InfeasibleError,
    InvalidProblemError,
    StoppedError,
)
from .core.hosts import HostLostError, Hosts
from .core.progress import (
    Progress,
    ProgressCallback,
    StopCallback,
    ignore_progress,
    never_stop,
)
from .core.status import Status
from .core.whole_file import PartFile, part_file, whole_file
from .crf.class_features import UNKNOWN
from .crf.picture_windows import ArraySource, PictureSource
from .crf.questionnaire import Question, QuestionKind, Questionnaire
from .crf.room_rules import Designation, Need, Preference, Request, RoomRules
from .crf.rooms import Rooms
from .crf.rules import Rules
from .crf.survey import BLANK, Survey, check_pairs, partners_of
from .datasets.answer_order import order_answers
from .datasets.image_names import is_lossy, mask_stem, name_in_set, picture_stem
from .datasets.large_pictures import LargeTiff
from .datasets.masks import mask_fits, match_mask, read_mask, write_mask
from .datasets.matching_sampler import MatchingSample, sample_matching
from .datasets.picture_view import (
    BRIGHTEST,
    COLOURS,
    ChannelView,
    PictureFacts,
    PictureView,
    choose_view,
    picture_facts,
    read_deep,
    read_image,
    show_stack,
    view_from_json,
)
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
from .graphs.edge_list import EdgeList, read_graph
from .graphs.factor_graph import Factor, FactorGraph, to_pairwise
from .graphs.grid import Grid, GridTables
from .graphs.pairwise import PairwiseGraph, PairwiseModel
from .inference.factors.elimination import Elimination
from .inference.factors.log_partition import PartitionEstimate, log_partition, marginals
from .inference.factors.map_portfolio import map_estimate
from .inference.factors.mean_field import ProductMarginals, mean_field
from .inference.map_estimate import MapEstimate
from .inference.marginals import Marginals
from .inference.matching.impossible_pairs import RuleConflict, check_rules
from .inference.pairwise.expansion import map_by_expansion
from .inference.pairwise.grid_tree_reweighted import GridTreeReweighted
from .inference.pairwise.map_linear_programme import map_by_linear_programme
from .inference.pairwise.planar_ising import IsingMarginals, PlanarIsing
from .inference.pairwise.roof_dual_map import map_by_roof_duality
from .inference.pairwise.tree_reweighted import TreeReweighted
from .learning.boosted_model import BoostedSegmentationModel
from .learning.boosted_segmentation import TrainedBoosted, train_boosted_segmentation
from .learning.class_model import ClassSegmentationModel, Detail, load_class_model
from .learning.class_prediction import BestLabelling, ClassPrediction, predict_classes
from .learning.class_segmentation import TrainedClasses, train_class_segmentation
from .learning.clock import expected_seconds
from .learning.dask_hosts import DaskHosts
from .learning.detail_choice import DetailChoice, choose_detail, sides_to_try
from .learning.live_segmenter import LiveAnswer, LiveSegmenter
from .learning.partner_means import PartnerMeans, compute_partner_means
from .learning.question_information import QuestionInformation, question_information
from .learning.roommate_evaluation import Evaluation, evaluate_roommates
from .learning.roommate_explanation import (
    Contribution,
    Explanation,
    QuestionWeight,
    allowed_partners,
    explain_pair,
    question_weights,
)
from .learning.roommate_model import RoommateModel, load_roommate_model
from .learning.roommate_proposal import NextBest, Proposal, propose_pairs
from .learning.roommate_uncertainty import (
    Drift,
    Effect,
    WeightEstimate,
    WeightsByYear,
    estimate_by_year,
    estimate_weights,
    refit_effects,
)
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
from .learning.tiled_prediction import TiledPrediction
from .metrics.calibration import ReliabilityBin
from .metrics.classes import ClassFigures, Confusion, class_figures, confusion
from .metrics.objects import ObjectTable, measure_objects
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
    "BRIGHTEST",
    "COLOURS",
    "UNKNOWN",
    "ArraySource",
    "Assignment",
    "BestLabelling",
    "BoostedSegmentationModel",
    "CertificateError",
    "ChannelView",
    "Checkpoint",
    "ClassFigures",
    "ClassPrediction",
    "ClassSegmentationModel",
    "ColumnGuess",
    "CompleteGraphMatcher",
    "Confusion",
    "Contribution",
    "DaskHosts",
    "Designation",
    "Detail",
    "DetailChoice",
    "Drift",
    "EdgeList",
    "Effect",
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
    "HostLostError",
    "Hosts",
    "InfeasibleError",
    "InvalidProblemError",
    "IsingMarginals",
    "LabelledImage",
    "LargeTiff",
    "LearningResult",
    "LiveAnswer",
    "LiveSegmenter",
    "MapEstimate",
    "Marginals",
    "MaskEvaluation",
    "Matching",
    "MatchingSample",
    "Need",
    "NextBest",
    "ObjectTable",
    "OneHotScores",
    "PairwiseGraph",
    "PairwiseModel",
    "ParityRow",
    "PartFile",
    "PartitionEstimate",
    "PartnerMeans",
    "PictureFacts",
    "PictureSource",
    "PictureView",
    "Placement",
    "PlacementMoves",
    "PlanarIsing",
    "PracticePairs",
    "PracticeWeights",
    "Prediction",
    "Preference",
    "ProductMarginals",
    "Progress",
    "ProgressCallback",
    "Proposal",
    "Question",
    "QuestionInformation",
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
    "TiledPrediction",
    "TrainedBoosted",
    "TrainedClasses",
    "TrainedRoommates",
    "TrainedSegmentation",
    "TrajectoryPoint",
    "TreeReweighted",
    "VetoCurve",
    "WeightEstimate",
    "WeightsByYear",
    "WhatIf",
    "allowed_partners",
    "assign",
    "bipartite_b_matching",
    "capacities_for",
    "check_pairs",
    "check_room_rules",
    "check_rules",
    "choose_detail",
    "choose_view",
    "class_figures",
    "classify_columns",
    "compute_partner_means",
    "confusion",
    "doubt_of_scores",
    "estimate_by_year",
    "estimate_weights",
    "evaluate_mask",
    "evaluate_roommates",
    "expected_seconds",
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
    "load_class_model",
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
    "measure_objects",
    "name_in_set",
    "never_stop",
    "order_answers",
    "part_file",
    "partner_doubt",
    "partners_of",
    "picture_facts",
    "picture_stem",
    "place_in_rooms",
    "placement_parity",
    "predict_classes",
    "predict_segmentation",
    "propose_pairs",
    "question_information",
    "question_weights",
    "read_deep",
    "read_graph",
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
    "refit_effects",
    "rules_of_columns",
    "sample_matching",
    "sample_roster",
    "set_roommate_weights",
    "share_probabilities",
    "show_stack",
    "sides_to_try",
    "simulate_pairs",
    "simulate_university",
    "to_pairwise",
    "train_boosted_segmentation",
    "train_class_segmentation",
    "train_roommates",
    "train_segmentation",
    "veto_curve",
    "vetoed_pairs",
    "view_from_json",
    "what_if",
    "whole_file",
    "write_mask",
    "write_placement_csv",
    "write_uai",
]
