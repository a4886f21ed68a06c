"""Forms of the staff pages of questionnaires; a refused form keeps all typed values."""

from collections.abc import Iterable
from datetime import datetime, time
from enum import StrEnum
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils import timezone
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext, gettext_lazy, ngettext

from webapp.common.forms import (
    OLD_PAGE,
    ActField,
    NumberField,
    NumbersField,
    TypedForm,
    field_of,
)
from webapp.surveys.content import (
    MAX_HINT,
    MAX_LABEL,
    MAX_NAME,
    MAX_QUESTION,
    MAX_TITLE,
    WITH_ANSWERS,
    Condition,
    Content,
    Kind,
    QuestionnaireError,
)
from webapp.surveys.housing_forms import FORMS
from webapp.surveys.mails import MAX_TEXT as MAX_MAIL
from webapp.surveys.models import Questionnaire
from webapp.surveys.questions import WORDS, questions_of
from webapp.surveys.services.clashes import FIRST, LATEST, NOT_CHOSEN
from webapp.surveys.services.questionnaires import BLANK, COPY
from webapp.surveys.services.translations import LANGUAGES, all_texts
from webapp.surveys.services.translations import MAX_TEXT as MAX_TRANSLATION
from webapp.surveys.services.written import MAX_NEED, checked_need
from webapp.translation.lazy import format_lazy

Choices = list[tuple[str, Any]]


class VersionForm(TypedForm):
    """A change of the questions at the version that the sender saw."""

    version = NumberField()

    def show_version(self, version: int) -> None:
        """Set the present version in a refused form, so that it can be sent again."""
        self.show_value("version", str(version))


class NewForm(TypedForm):
    """The title of a new questionnaire, and the questionnaire to start from."""

    title = forms.CharField(max_length=120, label=gettext_lazy("Title"))
    form = forms.ChoiceField(label=gettext_lazy("Start from"), widget=forms.RadioSelect)

    def __init__(self, *args: Any, copied: Choices, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        templates = [
            (key, format_lazy("{title}: {words}", title=one.title, words=one.words))
            for key, one in FORMS.items()
        ]
        last = [
            (f"{COPY}{key}", gettext("A copy of “%(title)s”") % {"title": title})
            for key, title in copied
        ]
        blank = [(BLANK, gettext("An empty questionnaire"))]
        field_of(self, "form", forms.ChoiceField).choices = [*templates, *last, *blank]


class SettingsForm(TypedForm):
    """Settings of a questionnaire other than its questions."""

    title = forms.CharField(max_length=120, label=gettext_lazy("Title"))
    introduction = forms.CharField(
        required=False,
        max_length=2_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        label=gettext_lazy("Introduction"),
    )
    who_sees = forms.CharField(
        label=gettext_lazy("Who sees this"),
        required=False,
        max_length=2_000,
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    contact = forms.CharField(
        label=gettext_lazy("Whom students write to"),
        required=False,
        max_length=254,
        help_text=gettext_lazy(
            "Answers to the mails of this questionnaire go to an e-mail address given here."
        ),
    )
    takes_code = forms.BooleanField(
        label=gettext_lazy("Anybody who has the code may answer without an invitation"),
        required=False,
    )
    asks_sign_in = forms.BooleanField(required=False)

    def __init__(self, *args: Any, provider: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if provider is None:
            del self.fields["asks_sign_in"]
        else:
            self.fields["asks_sign_in"].label = gettext(
                "Students sign in with %(provider)s: neither a code nor a link is enough"
            ) % {"provider": provider.name}


class QuestionForm(VersionForm):
    """One question. ``fixed`` names the fields that cannot change since people answered."""

    text = forms.CharField(label=gettext_lazy("Question"), max_length=MAX_QUESTION)
    hint = forms.CharField(required=False, max_length=MAX_HINT, label=gettext_lazy("Hint"))
    reason = forms.CharField(
        label=gettext_lazy("Why it is asked"),
        required=False,
        max_length=MAX_HINT,
        help_text=gettext_lazy("One short sentence; students read it."),
    )
    name = forms.CharField(
        label=gettext_lazy("Short name"),
        max_length=MAX_NAME,
        help_text=gettext_lazy("For tables and files of staff."),
    )
    answers = forms.CharField(
        label=gettext_lazy("Answers, one a line"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
    )
    low = forms.CharField(
        label=gettext_lazy("Words beside 1"), required=False, max_length=MAX_LABEL
    )
    high = forms.CharField(
        label=gettext_lazy("Words beside 5"), required=False, max_length=MAX_LABEL
    )
    required = forms.BooleanField(
        label=gettext_lazy("An answer is required; nobody can choose “Rather not say”"),
        required=False,
    )
    shown_if = forms.MultipleChoiceField(
        label=gettext_lazy("Show only after these answers"),
        required=False,
        widget=forms.SelectMultiple(attrs={"size": 5}),
        help_text=gettext_lazy(
            "Answers to one earlier question. Choose none to show the question to everybody."
        ),
    )

    fixed_fields = ("name", "answers", "low", "high", "required", "shown_if")

    def __init__(
        self, *args: Any, content: Content, key: str = "", is_fixed: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.content, self.key = content, key
        conditions = _conditions(content, key)
        field_of(self, "shown_if", forms.ChoiceField).choices = conditions
        if not conditions:
            del self.fields["shown_if"]
        found = content.find(key) if key else None
        if found is not None:
            self._drop_unused(found.kind)
        if is_fixed:
            for name in self.fixed_fields:
                if name in self.fields:
                    self.fields[name].disabled = True
                    self.fields[name].help_text = gettext("Fixed: people answered the question.")

    def _drop_unused(self, kind: Kind) -> None:
        unused = [] if kind in WITH_ANSWERS else ["answers"]
        unused += [] if kind is Kind.SCALE else ["low", "high"]
        unused += ["required"] if kind is Kind.CONSENT else []
        for name in unused:
            del self.fields[name]

    def clean_answers(self) -> list[str]:
        """Return the answers, one for each line."""
        return [line for line in self.cleaned_data["answers"].splitlines() if line.strip()]

    def clean_shown_if(self) -> Condition | None:
        """Return the condition; refuse a condition on answers of two questions."""
        chosen = [value.rpartition(":") for value in self.cleaned_data["shown_if"]]
        keys = {key for key, _, _ in chosen}
        if len(keys) > 1:
            raise ValidationError(gettext("Choose answers to one question only."))
        if not chosen:
            return None
        places = tuple(sorted(int(place) for _, _, place in chosen))
        return Condition(question=keys.pop(), answers=places)

    @property
    def question_fields(self) -> dict[str, Any]:
        """The fields of the question as the services take them."""
        return {name: value for name, value in self.cleaned_data.items() if name != "version"}

    @classmethod
    def values_of(cls, content: Content, key: str, version: int) -> dict[str, Any]:
        """Return the initial values of the form of an existing question."""
        found = content.find(key)
        wanted = found.shown_if
        return {
            "version": version,
            **found.model_dump(include={"name", "text", "hint", "reason", "low", "high"}),
            "required": found.required,
            "answers": "\n".join(found.answers),
            "shown_if": [f"{wanted.question}:{k}" for k in wanted.answers] if wanted else [],
        }


def _conditions(content: Content, key: str) -> Choices:
    """Return the answers that a condition can name, grouped by the earlier questions."""
    found: Choices = []
    for question in questions_of(content):
        if question.key == key:
            break
        options = [(f"{question.key}:{k}", text) for k, text in enumerate(question.options)]
        if options:
            found.append((f"{question.number}. {question.name}", options))
    return found


class NewQuestionForm(QuestionForm):
    """A question at the end of a section."""

    section = forms.TypedChoiceField(coerce=int, label=gettext_lazy("Section"))
    kind = forms.ChoiceField(
        label=gettext_lazy("Answered by"),
        choices=[(kind.value, words) for kind, words in WORDS.items()],
    )
    rule = forms.BooleanField(
        label=gettext_lazy("It is a rule for who may share a room, and never scored"),
        required=False,
    )
    field_order = ("version", "section", "kind", "name", "text")

    def __init__(self, *args: Any, content: Content, **kwargs: Any) -> None:
        super().__init__(*args, content=content, **kwargs)
        field_of(self, "section", forms.ChoiceField).choices = [
            (k, one.title) for k, one in enumerate(content.sections)
        ]
        self.fields["answers"].help_text = gettext("For “one of” and “several of”.")
        self.fields["low"].label = gettext("For a scale: words beside 1")
        self.fields["high"].label = gettext("For a scale: words beside 5")


class SectionForm(VersionForm):
    """The title of a section."""

    title = forms.CharField(max_length=MAX_TITLE, label=gettext_lazy("Title"))


class PlaceForm(VersionForm):
    """The new place of a question: a section, and a place among its questions."""

    section = NumberField(label=gettext_lazy("Section"))
    place = NumberField()


class MoveForm(VersionForm):
    """Move of a question by one place up or down."""

    step = forms.TypedChoiceField(
        coerce=int,
        choices=[(-1, gettext_lazy("Up")), (1, gettext_lazy("Down"))],
        error_messages={"required": OLD_PAGE, "invalid_choice": OLD_PAGE},
    )


class OpenForm(TypedForm):
    """Opening and closing dates of a questionnaire, in the time zone of the organisation."""

    opens_at = forms.DateTimeField(
        label=gettext_lazy("Opens"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"],
        help_text=gettext_lazy("Empty: now."),
        error_messages={"invalid": gettext_lazy("Choose when it opens.")},
    )
    closes_on = forms.DateField(
        label=gettext_lazy("Last day"),
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        input_formats=["%Y-%m-%d"],
        error_messages={
            "invalid": gettext_lazy("Choose the last day."),
            "required": gettext_lazy("Choose the last day."),
        },
    )

    def __init__(self, *args: Any, zone: str, was_opened: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["closes_on"].help_text = gettext(
            "It closes at the midnight of %(zone)s that ends it."
        ) % {"zone": zone}
        if was_opened:
            del self.fields["opens_at"]
        else:
            self.fields["opens_at"].help_text = gettext(
                "Empty: now. Times are those of %(zone)s."
            ) % {"zone": zone}

    def clean_opens_at(self) -> datetime | None:
        """Return the opening time; refuse years out of range."""
        found: datetime | None = self.cleaned_data["opens_at"]
        if found is not None and not 1900 < found.year < 9000:
            raise ValidationError(gettext("Choose when it opens."))
        return found

    def clean_closes_on(self) -> datetime:
        """Return the last second of the closing day."""
        day = self.cleaned_data["closes_on"]
        if not 1900 < day.year < 9000:
            raise ValidationError(gettext("Choose the last day."))
        return timezone.make_aware(datetime.combine(day, time(23, 59, 59)))


class NeedForm(TypedForm):
    """A student's need, taken from the student's text."""

    need = forms.CharField(
        label=gettext_lazy("Need"),
        max_length=MAX_NEED,
        help_text=gettext_lazy("As rooms of your building lists call it, such as step-free."),
    )

    def __init__(self, *args: Any, known: list[str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.known = known or []
        self.fields["need"].widget.attrs |= {"list": "known-needs", "autocomplete": "off"}

    def clean_need(self) -> str:
        """Return the need as it is stored."""
        try:
            return checked_need(self.cleaned_data["need"])
        except QuestionnaireError as problem:
            raise ValidationError(str(problem)) from problem


class CohortForm(TypedForm):
    """The name of the cohort that is made of answers."""

    name = forms.CharField(label=gettext_lazy("Name of the cohort"), max_length=120)


class JoinForm(TypedForm):
    """The cohort to which late answers are added."""

    cohort = forms.ChoiceField(label=gettext_lazy("Cohort"))

    def __init__(self, *args: Any, cohorts: list[Any], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field_of(self, "cohort", forms.ChoiceField).choices = [
            (str(one.pk), one.name) for one in cohorts
        ]


class DeleteForm(TypedForm):
    """The title, typed to remove a questionnaire for good."""

    name = forms.CharField(max_length=200, strip=True, label=gettext_lazy("Name"))


class PeopleForm(TypedForm):
    """The people to invite: pasted lines, or a file of them."""

    people = forms.CharField(
        label=gettext_lazy("Invite people"),
        required=False,
        widget=forms.Textarea(
            attrs={"rows": 4, "placeholder": "Anna Berg <anna@northfield.example>, N00123"}
        ),
        help_text=gettext_lazy(
            "E-mails, with names and student numbers in any order. Several people may stand "
            "on one line."
        ),
    )
    file = forms.FileField(
        label=gettext_lazy("Or a file"),
        required=False,
        help_text=gettext_lazy("CSV or Excel, one person a row."),
    )

    def clean(self) -> dict[str, Any]:
        """Return the data; require pasted lines or a file."""
        found = super().clean() or {}
        if not found.get("people", "").strip() and not found.get("file"):
            self.add_error("people", gettext("Give one e-mail a line, or choose a file."))
        return found


class MailForm(TypedForm):
    """The text of a mail, one for each language of the questionnaire."""

    is_confirmed = forms.BooleanField(
        label=gettext_lazy("Send one more reminder all the same"), required=False
    )

    def __init__(
        self, *args: Any, texts: dict[str, str], names: dict[str, str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.languages = list(texts)
        for language, text in texts.items():
            self.fields[f"text_{language}"] = forms.CharField(
                label=gettext("Text (%(language)s)") % {"language": names.get(language, language)}
                if len(texts) > 1
                else gettext("Text"),
                initial=text,
                required=False,
                max_length=MAX_MAIL,
                widget=forms.Textarea(attrs={"rows": 9, "lang": language}),
            )
        last = self.fields[f"text_{self.languages[-1]}"]
        last.help_text = gettext(
            "[link] becomes the personal link, [name] the student's name, [title] the title of "
            "the questionnaire, [day] its last day, [office] your office."
        )
        self.order_fields([*self.fields][1:])

    @property
    def texts(self) -> dict[str, str]:
        """The texts by language."""
        return {one: self.cleaned_data[f"text_{one}"] for one in self.languages}

    @property
    def asks_again(self) -> bool:
        """Return True if the sender has to confirm one more reminder."""
        return "is_confirmed" in self.errors or bool(self.data.get("is_confirmed"))


class ScheduleForm(MailForm):
    """A reminder at a future time."""

    due_at = forms.DateTimeField(
        label=gettext_lazy("Send it at"),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"],
        error_messages={
            "invalid": gettext_lazy("Choose day and time."),
            "required": gettext_lazy("Choose day and time."),
        },
    )

    def __init__(self, *args: Any, zone: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["is_confirmed"]
        self.fields["due_at"].help_text = gettext("In the time of %(zone)s.") % {"zone": zone}
        self.order_fields(["due_at"])

    def clean_due_at(self) -> datetime:
        """Return the time of the reminder; refuse years out of range."""
        found: datetime = self.cleaned_data["due_at"]
        if not 1900 < found.year < 9000:
            raise ValidationError(gettext("Choose day and time."))
        return found


class BouncesForm(TypedForm):
    """Addresses that no mail reaches: pasted, or read from returned mails."""

    people = forms.CharField(
        label=gettext_lazy("Addresses, one a line"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    file = forms.FileField(
        label=gettext_lazy("Or a file"),
        required=False,
        help_text=gettext_lazy(
            "The returned mails (.eml, .mbox), a file of a mail service with the delivery "
            "states, or a list of addresses. Mails that say “delayed” are left alone."
        ),
        widget=forms.FileInput(attrs={"accept": ".eml,.mbox,.txt,.csv,.xlsx"}),
    )
    is_confirmed = forms.BooleanField(required=False)
    asked = NumberField(required=False)

    def is_confirmed_for(self, count: int) -> bool:
        """Return True if staff have confirmed the returned addresses of this many people."""
        return bool(self.cleaned_data["is_confirmed"]) and self.cleaned_data["asked"] == count

    def ask(self, addresses: Iterable[str], count: int) -> None:
        """Show the addresses, how many people get no mail any more, and what to confirm."""
        numbers = {"count": f"{count:,}"}
        self["is_confirmed"].label = (
            ngettext(
                "Yes, %(count)s address came back",
                "Yes, all %(count)s addresses came back",
                count,
            )
            % numbers
        )
        data = QueryDict(mutable=True)
        data.update({"people": "\n".join(addresses), "asked": str(count)})
        self.data, self.files = data, MultiValueDict()
        words = ngettext(
            "%(count)s address gets no mail any more. Did mail to it come back? Nobody was marked "
            "yet.",
            "These %(count)s addresses get no mail any more. Are they all returned? Nobody was "
            "marked yet.",
            count,
        )
        self.add_error("is_confirmed", words % numbers)

    @property
    def asks(self) -> bool:
        """Return True if staff have to confirm the addresses."""
        return "is_confirmed" in self.errors


class LanguageForm(VersionForm):
    """A form with one language."""

    language = forms.ChoiceField(
        choices=list(LANGUAGES.items()),
        error_messages={"required": gettext_lazy("Choose a language.")},
        label=gettext_lazy("Language"),
    )


class TranslationsUseForm(VersionForm):
    """The use of a checked file: the versions of the upload and of the questionnaire, as shown."""

    shown = NumberField()


class LanguageFileForm(TypedForm):
    """A file with one column for each language."""

    file = forms.FileField(
        error_messages={"required": gettext_lazy("Choose a file.")}, label=gettext_lazy("File")
    )


class TextsForm(VersionForm):
    """Every text of a questionnaire in each of its languages except its own."""

    def __init__(self, *args: Any, questionnaire: Questionnaire, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {"version": questionnaire.version})
        super().__init__(*args, **kwargs)
        self.own_texts = all_texts(questionnaire)
        translations = questionnaire.content.translations
        self.languages = list(translations)
        for language, said in translations.items():
            for k, text in enumerate(self.own_texts):
                self.fields[f"{language}-{k}"] = forms.CharField(
                    required=False,
                    max_length=MAX_TRANSLATION,
                    initial=said.get(text, ""),
                    widget=forms.Textarea(
                        attrs={
                            "rows": 2,
                            "lang": language,
                            "class": "input",
                            "aria-label": f"{text[:59]} ({language})",
                        }
                    ),
                )

    @property
    def rows(self) -> list[tuple[str, list[forms.BoundField]]]:
        """Each text with its form fields."""
        return [
            (text, [self[f"{language}-{k}"] for language in self.languages])
            for k, text in enumerate(self.own_texts)
        ]

    @property
    def translations(self) -> dict[str, dict[str, str]]:
        """The typed translations by language and text; a field that was not sent is unchanged."""
        return {
            language: {
                text: self.cleaned_data[name] if name in self.data else self.fields[name].initial
                for k, text in enumerate(self.own_texts)
                for name in (f"{language}-{k}",)
            }
            for language in self.languages
        }


class Which(StrEnum):
    """The answers of every number that count: the first or the latest."""

    FIRST = FIRST
    LATEST = LATEST


class ClashForm(TypedForm):
    """The answers of a person that count, or the first or the latest of every number."""

    person = NumberField(required=False)
    which = ActField(Which, NOT_CHOSEN, required=False)


class RestoreForm(TypedForm):
    """People whose answers are restored."""

    person = NumbersField()


class NumberForm(TypedForm):
    """The right student number of a person's answers."""

    refused_field = "number"
    person = NumberField()
    number = forms.CharField(required=False, max_length=1_000)


class MarkForm(TypedForm):
    """Chosen texts, and the page with its filters, or the person, that the form was on."""

    text = NumbersField(required=False)
    person = NumberField(required=False)
    q = forms.CharField(required=False, max_length=200)
    question = forms.CharField(required=False, max_length=200)
    show = forms.CharField(required=False, max_length=200)
    page = forms.CharField(required=False, max_length=20)
