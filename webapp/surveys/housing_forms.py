"""Questionnaire templates, in English and Spanish.

The housing survey has the questions that most housing offices use, with the short names and answers
of past years, so that answers of several years compare. Our own survey has fewer questions about
taste and more about behaviour in the last week.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from webapp.surveys.content import (
    Content,
    Kind,
    QuestionContent,
    SectionContent,
    iterate_texts,
    make_question,
)
from webapp.surveys.housing_forms_es import SPANISH
from webapp.translation.lazy import gettext_lazy

INTRODUCTION = "Your answers help us to find you a roommate you get along with."
WHO_SEES = (
    "Housing staff read your answers, use them to find you a roommate, and read everything that "
    "you write in your own words. Other students never see your answers. Answer for yourself: "
    "nobody else may fill this in for you."
)
AFTERWARDS = "You have lived with your roommate for a while. Tell us how it went."
# Names of the questions of the follow-up, by which its answers are found again.
GETTING_ALONG, TOGETHER_AGAIN, ROOM_CHANGE = "Getting along", "Together again", "Room change"
_OFTEN = ("Never", "Rarely", "Sometimes", "Often")
_GENDERS = ("Woman", "Man", "Non-binary", "Another")


@dataclass(frozen=True, slots=True)
class Template:
    """A questionnaire template: its title, its description and the function that creates it."""

    title: str
    words: str
    make: Callable[[], Content]
    introduction: str = INTRODUCTION


def _agree(name: str, text: str, reason: str) -> QuestionContent:
    """Return a statement with answers from disagreement to agreement."""
    return make_question(
        Kind.SCALE, name=name, text=text, reason=reason, hint="How much do you agree?",
        low="I do not agree at all", high="I agree completely",
    )  # fmt: skip


def _ordered(name: str, text: str, *answers: str, **more: Any) -> QuestionContent:
    return make_question(Kind.ORDERED, name=name, text=text, answers=answers, **more)


def _how_often(name: str, text: str, reason: str) -> QuestionContent:
    hint = "Rarely: a few times a year. Sometimes: every month. Often: every week."
    return _ordered(name, text, *_OFTEN, hint=hint, reason=reason)


def _yes_no(name: str, text: str, reason: str) -> QuestionContent:
    return make_question(Kind.YES_NO, name=name, text=text, reason=reason)


def _gender() -> QuestionContent:
    return make_question(
        Kind.ONE, name="Gender", text="What is your gender?", rule=True, answers=_GENDERS,
        reason="We use your gender only to decide who can share a room with you.",
    )  # fmt: skip


def _form(*sections: SectionContent, introduction: str = INTRODUCTION) -> Content:
    """Return sections with the translations of their texts."""
    content = Content(sections=sections)
    texts = [*iterate_texts(content), introduction, WHO_SEES]
    spanish = {text: SPANISH[text] for text in texts if text}
    return content.with_translations({"es": spanish})


def housing_survey() -> Content:
    """Return the housing survey of 14 questions in five sections."""
    return _form(_days(), _room(), _people(), _habits(), _rules())


def _days() -> SectionContent:
    return SectionContent(
        title="Your days",
        questions=(
            _ordered(
                "Wake-up time", "What time do you get up on a weekday?",
                "Before 6 am", "6 to 7 am", "7 to 8 am", "8 to 9 am", "After 9 am",
                reason="Roommates who get up at the same time wake each other less.",
            ),
            _agree("Light sleeper", "I wake up easily when there is noise.",
                   "A light sleeper needs a roommate who is quiet at night."),
            _ordered(
                "Bedtime", "What time do you usually go to bed on a weekday?",
                "Before 10 pm", "10 to 11 pm", "11 pm to midnight", "Midnight to 1 am",
                "After 1 am",
                reason="Different bedtimes are the most common reason for trouble.",
            ),
            _agree("Study noise", "I study with music or TV on.",
                   "Some people need silence to study, others do not."),
        ),
    )  # fmt: skip


def _room() -> SectionContent:
    return SectionContent(
        title="Your room",
        questions=(
            _agree("Tidiness", "I put my things away every day.",
                   "Things on the floor are in your roommate's way too."),
            _ordered("Temperature", "How warm do you like your room?",
                     "Cold", "Cool", "Mild", "Warm",
                     reason="A room has one heater and one window."),
            _yes_no("Sharing", "Is it okay if your roommate uses your things?",
                    "Some people share their things, others do not."),
            _agree("Quiet", "I need it to be quiet when I am in my room.",
                   "Some people rest in their room, others meet friends there."),
        ),
    )  # fmt: skip


def _people() -> SectionContent:
    return SectionContent(
        title="Other people",
        questions=(
            _agree("Sociability", "I like to have people around me.",
                   "Some people want company at home, others want to be alone."),
            _how_often("Guests", "How often do friends visit you in your room?",
                       "Your guests are guests in your roommate's room too."),
            _how_often("Overnight guests", "How often does a guest stay the night?",
                       "Your guest sleeps in your roommate's room too."),
        ),
    )  # fmt: skip


def _habits() -> SectionContent:
    return SectionContent(
        title="Habits",
        questions=(
            _how_often("Smoking", "How often do you smoke or vape?",
                       "Smoke bothers people who do not smoke."),
            _how_often("Drinking", "How often do you drink alcohol?",
                       "Some people want a room without alcohol."),
        ),
    )  # fmt: skip


def _rules() -> SectionContent:
    return SectionContent(title="For your room", questions=(_gender(),))


def own_survey() -> Content:
    """Return our own survey, each question with its reason."""
    return _form(_last_week(), _sharing_a_room(), _your_roommate())


def _last_week() -> SectionContent:
    return SectionContent(
        title="Last week",
        questions=(
            make_question(
                Kind.TIME, name="Lights out",
                text="What time did you turn off the light last Tuesday?",
                reason="One real night tells us more than a guess.",
            ),
            _ordered(
                "Nights away", "How many nights did you sleep somewhere else last week?",
                "None", "1 or 2", "3 or 4", "5 or more",
                reason="If you are often away, your roommate is often alone.",
            ),
            _ordered(
                "Alarms", "How often did you press snooze last week?",
                "Never", "Once or twice", "Most days", "Every day",
                reason="Alarms that ring again and again wake two people.",
            ),
        ),
    )  # fmt: skip


def _sharing_a_room() -> SectionContent:
    return SectionContent(
        title="Sharing a room",
        questions=(
            _ordered(
                "Dishes", "How long can a dirty cup stay on the desk?",
                "An hour", "A day", "A few days", "I do not mind",
                reason="“Tidy” means something different to everybody.",
            ),
            _agree("Asking first", "My roommate should ask me before bringing a guest.",
                   "Most fights about guests begin because nobody asked."),
            _yes_no("Sleeps with noise", "Can you fall asleep while somebody is talking?",
                    "If you can, different bedtimes matter less."),
            make_question(
                Kind.SEVERAL, name="Evenings",
                text="What do you do in your room in the evening?",
                hint="Choose everything that fits.",
                answers=("Study", "Music", "Games", "Calls", "Sport", "I am out"),
                reason="In the evening both of you are in the room.",
            ),
            _ordered(
                "Conflict", "Something bothers you. When do you tell your roommate?",
                "Right away", "The same day", "After a few days", "Probably never",
                reason="Some people speak up at once, others wait.",
            ),
        ),
    )  # fmt: skip


def _your_roommate() -> SectionContent:
    return SectionContent(
        title="Your roommate",
        questions=(
            _gender(),
            make_question(
                Kind.REQUEST, name="Request", text="Is there somebody you want to live with?",
                hint="Type their code here. They will see that you asked, and must type your code "
                "too.",
                reason="If both of you ask, we try to give you one room.",
            ),
            make_question(
                Kind.TEXT, name="Anything else", text="Is there anything else we should know?",
                hint="For example: I cannot climb stairs, or I have an allergy.",
                reason="Housing staff read this to learn what you need.",
            ),
        ),
    )  # fmt: skip


def follow_up() -> Content:
    """Return the follow-up after a term: three questions about the roommate, and a free text."""
    section = SectionContent(
        title="Your roommate this term",
        questions=(
            _agree(GETTING_ALONG, "My roommate and I get along well.",
                   "Good and bad pairs both teach us how to choose roommates."),
            _yes_no(TOGETHER_AGAIN, "Would you live together again?",
                    "This tells us more than any single habit."),
            make_question(
                Kind.ONE, name=ROOM_CHANGE, text="Did one of you move to another room?",
                answers=("Nobody moved", "I moved", "My roommate moved", "We both moved"),
                reason="A change of room often says that two people did not fit.",
            ),
            make_question(
                Kind.TEXT, name="Anything else", text="Is there anything else we should know?",
                reason="Housing staff read this to learn what you need.",
            ),
        ),
    )  # fmt: skip
    return _form(section, introduction=AFTERWARDS)


FORMS = {
    "housing": Template(
        gettext_lazy("A housing survey"),
        gettext_lazy("14 questions that housing offices ask everywhere, in English and Spanish"),
        housing_survey,
    ),
    "own": Template(
        gettext_lazy("What happened last week"),
        gettext_lazy("11 questions about the last week, in English and Spanish"),
        own_survey,
    ),
    "follow-up": Template(
        gettext_lazy("After a term"),
        gettext_lazy("3 questions about how roommates got along, in English and Spanish"),
        follow_up,
        AFTERWARDS,
    ),
}
