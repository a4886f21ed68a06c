"""Names of ``engine.crf``; ``__init__.py`` imports each when it is first used."""

from .class_features import UNKNOWN
from .questionnaire import Question, Questionnaire
from .room_rules import Designation, Need, Preference, Request, RoomRules
from .rooms import Rooms
from .rules import Rules
from .survey import Survey

__all__ = [
    "UNKNOWN",
    "Designation",
    "Need",
    "Preference",
    "Question",
    "Questionnaire",
    "Request",
    "RoomRules",
    "Rooms",
    "Rules",
    "Survey",
]
