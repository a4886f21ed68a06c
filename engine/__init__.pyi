"""Names of the public face; ``engine/__init__.py`` imports each when it is first used."""

from .core.checkpoint import FileCheckpoint
from .core.errors import CertificateError, InfeasibleError, InvalidProblemError, StoppedError
from .core.progress import Progress
from .core.status import Status
from .crf.class_features import UNKNOWN
from .crf.questionnaire import Question, Questionnaire
from .crf.room_rules import Designation, Need, Preference, Request, RoomRules
from .crf.rooms import Rooms
from .crf.rules import Rules
from .crf.survey import Survey
from .datasets.survey_csv import read_pairs_csv, read_survey_csv
from .datasets.synthetic_images import generate_leaf_images
from .datasets.university import simulate_university
from .estimators.roommates import Roommates
from .estimators.segmenter import Segmenter
from .estimators.structured_model import StructuredModel
from .graphs.edge_list import EdgeList, read_graph
from .graphs.factor_graph import Factor, FactorGraph
from .inference.factors.log_partition import log_partition, marginals
from .inference.factors.map_portfolio import map_estimate
from .learning.roommates.evaluation import evaluate_roommates
from .learning.roommates.explanation import explain_pair, question_weights
from .learning.roommates.model import RoommateModel, load_roommate_model
from .learning.roommates.proposal import propose_pairs
from .learning.roommates.training import train_roommates
from .learning.roommates.uncertainty import estimate_weights
from .learning.segmentation.boosted_learning import train_boosted_segmentation
from .learning.segmentation.class_learning import train_class_segmentation
from .learning.segmentation.live_segmenter import LiveSegmenter
from .learning.segmentation.mask_learning import train_segmentation
from .learning.segmentation.model import Detail, load_class_model, load_segmentation_model
from .learning.segmentation.network.learning import NetworkOptions, edge_network_options
from .learning.segmentation.network.training import network_available
from .learning.segmentation.prediction import evaluate_mask, predict_classes, predict_segmentation
from .oracles.assignment import assign
from .oracles.perfect_matching import CompleteGraphMatcher
from .oracles.sparse_matching import max_weight_matching
from .rooms.changed_rules import what_if
from .rooms.placement import place_in_rooms

__all__ = [
    "UNKNOWN",
    "CertificateError",
    "CompleteGraphMatcher",
    "Designation",
    "Detail",
    "EdgeList",
    "Factor",
    "FactorGraph",
    "FileCheckpoint",
    "InfeasibleError",
    "InvalidProblemError",
    "LiveSegmenter",
    "Need",
    "NetworkOptions",
    "Preference",
    "Progress",
    "Question",
    "Questionnaire",
    "Request",
    "RoomRules",
    "RoommateModel",
    "Roommates",
    "Rooms",
    "Rules",
    "Segmenter",
    "Status",
    "StoppedError",
    "StructuredModel",
    "Survey",
    "assign",
    "edge_network_options",
    "estimate_weights",
    "evaluate_mask",
    "evaluate_roommates",
    "explain_pair",
    "generate_leaf_images",
    "load_class_model",
    "load_roommate_model",
    "load_segmentation_model",
    "log_partition",
    "map_estimate",
    "marginals",
    "max_weight_matching",
    "network_available",
    "place_in_rooms",
    "predict_classes",
    "predict_segmentation",
    "propose_pairs",
    "question_weights",
    "read_graph",
    "read_pairs_csv",
    "read_survey_csv",
    "simulate_university",
    "train_boosted_segmentation",
    "train_class_segmentation",
    "train_roommates",
    "train_segmentation",
    "what_if",
]
