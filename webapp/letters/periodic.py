"""Letters, and questions about requests, are sent when they are due."""

from webapp.common.periodic import MAILS, PeriodicWork, register_periodic_work
from webapp.letters.services.letters import letters_send
from webapp.letters.services.questions import questions_send

register_periodic_work(
    PeriodicWork(letters_send, MAILS, repeats=True),
    PeriodicWork(questions_send, MAILS, repeats=True),
)
