"""Questionnaires to start from: a housing survey of 14 questions, and one of our own with reasons.

The first asks what housing offices ask everywhere, so that its answers compare with past years.
The second asks less of taste and more of what people did in the last weeks, and says why.
"""

from typing import Any

from webapp.surveys.questions import Kind, new_question

_OFTEN = ("Never", "Rarely", "Sometimes", "Often")


def _scale(name: str, text: str, **more: Any) -> dict[str, Any]:
    hint = "1 is not at all, 5 is very much."
    return new_question(Kind.SCALE, name=name, text=text, hint=hint, **more)


def _ordered(name: str, text: str, *answers: str, **more: Any) -> dict[str, Any]:
    hint = "Choose the closest. There is no better answer."
    return new_question(Kind.ORDERED, name=name, text=text, answers=answers, hint=hint, **more)


def _yes_no(name: str, text: str, **more: Any) -> dict[str, Any]:
    return new_question(Kind.YES_NO, name=name, text=text, **more)


def housing_survey() -> dict[str, Any]:
    """Return the housing survey of 14 questions in five sections."""
    bedtimes = (
        "Before 10 pm",
        "10 to 11 pm",
        "11 pm to midnight",
        "Midnight to 1 am",
        "After 1 am",
    )
    wake = ("Before 6 am", "6 to 7 am", "7 to 8 am", "8 to 9 am", "After 9 am")
    return {
        "sections": [
            {
                "title": "Your days",
                "questions": [
                    _ordered("Wake-up time", "What time do you get up on a weekday?", *wake),
                    _scale("Light sleeper", "I am a light sleeper."),
                    _ordered("Bedtime", "When do you usually go to bed on a weekday?", *bedtimes),
                    _scale("Study noise", "I study with music or TV on."),
                ],
            },
            {
                "title": "Your room",
                "questions": [
                    _scale("Tidiness", "I keep my room tidy."),
                    _ordered("Temperature", "What room temperature do you prefer?",
                             "Cold", "Cool", "Mild", "Warm"),
                    _yes_no("Sharing", "Do you like to share your things?"),
                    _scale("Quiet", "I need my room to be quiet."),
                ],
            },
            {
                "title": "Other people",
                "questions": [
                    _scale("Sociability", "I like to have people around me."),
                    _ordered("Guests", "How often do you have guests?", *_OFTEN),
                    _ordered("Overnight guests", "How often do guests stay overnight?", *_OFTEN),
                ],
            },
            {
                "title": "Habits",
                "questions": [
                    _ordered("Smoking", "How often do you smoke or vape?", *_OFTEN),
                    _ordered("Drinking", "How often do you drink alcohol?", *_OFTEN),
                ],
            },
            {
                "title": "For your room",
                "questions": [
                    new_question(
                        Kind.ONE, name="Gender", text="What is your gender?", rule=True,
                        answers=("Woman", "Man", "Non-binary", "Another"),
                        hint="It decides who may share a room with you, and is not scored.",
                    ),
                ],
            },
        ]
    }  # fmt: skip


def own_survey() -> dict[str, Any]:
    """Return the survey of our own, each question with the reason for it."""
    return {
        "sections": [
            {"title": "Last week", "questions": _last_week()},
            {"title": "Sharing a room", "questions": _sharing_a_room()},
            {"title": "With whom", "questions": _with_whom()},
        ]
    }


def _last_week() -> list[dict[str, Any]]:
    """Return the questions on what people did in the last days."""
    return [
        new_question(
            Kind.TIME, name="Lights out",
            text="When did you turn off the light last Tuesday?",
            reason="What people did on one day says more than what they call usual.",
        ),
        _ordered("Nights away", "How many nights did you sleep elsewhere?",
                 "None", "1 or 2", "3 or 4", "5 or more",
                 reason="A roommate who is away often is another roommate."),
        _ordered("Alarms", "How often did you snooze an alarm?", *_OFTEN,
                 reason="Alarms are what roommates in a double complain of first."),
    ]  # fmt: skip


def _sharing_a_room() -> list[dict[str, Any]]:
    """Return the questions on how people live beside others."""
    return [
        _ordered("Dishes", "How long may a used cup stand about?",
                 "An hour", "A day", "Some days", "It does not matter",
                 reason="A number of days says more than the word tidy."),
        _scale("Asking first", "Ask me before you bring somebody.",
               reason="Guests are agreed on more easily than liked."),
        _yes_no("Sleeps with noise", "Can you sleep while somebody talks?",
                reason="It decides whether different bedtimes matter."),
        new_question(
            Kind.SEVERAL, name="Evenings",
            text="What do you do in your room in the evening?",
            answers=("Study", "Music", "Games", "Calls", "Sport", "Nothing, I am out"),
            reason="What happens in the room matters, not what people like.",
        ),
        _ordered("Conflict", "When something bothers you, when do you say so?",
                 "At once", "The same day", "After some days", "Rather never",
                 reason="Pairs who speak of things at a like pace last longer."),
    ]  # fmt: skip


def _with_whom() -> list[dict[str, Any]]:
    """Return the questions on whom people may and want to live with."""
    return [
        new_question(
            Kind.ONE, name="Gender", text="What is your gender?", rule=True,
            answers=("Woman", "Man", "Non-binary", "Another"),
            reason="It is a rule for who may share a room, and never scored.",
        ),
        new_question(
            Kind.REQUEST, name="Request",
            text="Is there somebody you want to live with?",
            hint="Type the code that they show you. It counts when they type yours.",
            reason="A request counts only if both want it: nobody is chosen unasked.",
        ),
        new_question(
            Kind.TEXT, name="Anything else", text="Anything else that we should know?",
            reason="It is read by staff, and never scored.",
        ),
    ]  # fmt: skip


FORMS = {
    "housing": (
        "A housing survey",
        "14 questions that housing offices ask everywhere",
        housing_survey,
    ),
    "own": ("What happened last week", "11 questions, each with the reason for it", own_survey),
}
