"""The results of the demonstration, in the order of its list on Home."""

from webapp.demonstration.steps.early_arrivals import PUBLISHED
from webapp.demonstration.steps.past_years import DRAFT, MODEL, PAIRS
from webapp.demonstration.steps.pictures import COUNTS, PAINTING
from webapp.demonstration.steps.questionnaire import QUESTIONNAIRE

STEPS = (QUESTIONNAIRE, MODEL, PAIRS, DRAFT, PUBLISHED, PAINTING, COUNTS)
STEP_OF = {step.key: step for step in STEPS}
