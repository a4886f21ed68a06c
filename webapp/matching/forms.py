"""Forms of models."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.common import formats
from webapp.common.forms import ObjectField, TypedForm, field_of
from webapp.common.parameters import MAX_DIGITS
from webapp.common.selectors import owned_by
from webapp.matching.services.learning import GAPS, METHODS, RIDGES
from webapp.matching.services.set_models import CHOICES
from webapp.translation.lazy import format_lazy, gettext_lazy

USUAL = 0.5  # initial value of a question: small, so that the important ones stand out
NO_SETTING = gettext_lazy("Choose one of the offered settings.")
GONE = gettext_lazy("This cohort was removed meanwhile, or has no pairs.")
_RIDGES = [
    (str(value), format_lazy("{word} ({value})", word=word, value=formats.number(value)))
    for value, word in zip(
        RIDGES, (gettext_lazy("Little"), gettext_lazy("Usual"), gettext_lazy("Much")), strict=True
    )
]
_GAPS = [
    (
        str(value),
        format_lazy(
            gettext_lazy("{word}: within {gap} of the best fit"),
            word=word,
            gap=formats.gap(value),
        ),
    )
    for value, word in zip(
        GAPS,
        (gettext_lazy("Quick"), gettext_lazy("Usual"), gettext_lazy("Very exact")),
        strict=True,
    )
]
_ENTROPIES = [("1.0", "Bethe"), ("0.5", gettext_lazy("Reweighted (upper bound)"))]


class SettingField(forms.FloatField):
    """A number that is chosen from a list; a number that programs set is offered as it is."""

    def __init__(self, choices: list[tuple[str, str]], usual: float, **kwargs: Any) -> None:
        super().__init__(required=False, widget=forms.Select(choices=choices), **kwargs)
        self.usual = usual
        self.initial = str(usual)

    def clean(self, value: Any) -> float:
        """Return the number, or the usual one if none was sent."""
        found = super().clean(value)
        return self.usual if found is None else float(found)


class LearnForm(TypedForm):
    """Cohorts and settings from which a model is learned."""

    cohort = forms.MultipleChoiceField(
        required=False,
        error_messages={
            "invalid_choice": format_lazy(
                "{gone} {choose}",
                gone=GONE,
                choose=gettext_lazy("Choose at least one cohort with pairs."),
            )
        },
    )
    check_on = forms.ChoiceField(
        label=gettext_lazy("Cohort to check on"),
        required=False,
        error_messages={"invalid_choice": GONE},
        help_text=gettext_lazy(
            "Only pairs that the model did not learn from tell how well it ranks."
        ),
    )
    name = forms.CharField(
        required=False,
        max_length=120,
        widget=forms.TextInput(attrs={"placeholder": gettext_lazy("the names of the cohorts")}),
        label=gettext_lazy("Name"),
    )
    ridge = SettingField(
        _RIDGES,
        100.0,
        label=gettext_lazy("Restraint (lambda)"),
        help_text=gettext_lazy("Much restraint keeps weights small where the pairs say little."),
    )
    gap = SettingField(
        _GAPS,
        1e-4,
        label=gettext_lazy("Exactness"),
        help_text=gettext_lazy("Learning stops when this is certified."),
    )
    method = forms.ChoiceField(
        required=False,
        choices=list(METHODS.items()),
        error_messages={"invalid_choice": NO_SETTING},
        help_text=gettext_lazy(
            "All aim at the same weights. The automatic choice is by far the fastest; the "
            "Frank-Wolfe methods can take hours."
        ),
        label=gettext_lazy("Method"),
    )
    rho = SettingField(
        _ENTROPIES,
        1.0,
        label=gettext_lazy("Entropy"),
        help_text=gettext_lazy("How the number of possible pairings is approximated."),
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Random seed"),
        required=False,
        min_value=0,
        max_value=10**MAX_DIGITS - 1,
        widget=forms.TextInput(
            attrs={"inputmode": "numeric", "placeholder": gettext_lazy("chosen for you")}
        ),
        help_text=gettext_lazy("Stored with the run, so that it can be repeated."),
    )
    settings = ("name", "ridge", "gap", "method", "rho", "seed")

    def __init__(self, *args: Any, cohorts: list[Cohort], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.by_key = {str(cohort.pk): cohort for cohort in cohorts}
        keys = [(key, self._words(cohort)) for key, cohort in self.by_key.items()]
        field_of(self, "cohort", forms.MultipleChoiceField).choices = keys
        none = [("", _("None for now"))]
        field_of(self, "check_on", forms.ChoiceField).choices = none + keys
        for name in ("ridge", "gap", "rho"):
            self._offer_present(name)

    @staticmethod
    def _words(cohort: Cohort) -> str:
        simulated = _(", simulated") if cohort.is_simulated else ""
        return f"{cohort.name}, {formats.counted(cohort.n_pairs, 'pair')}{simulated}"

    def _offer_present(self, name: str) -> None:
        """Offer a number that a program set, so that the page does not change it."""
        value = str(self[name].value() or "")
        widget = field_of(self, name, SettingField).widget
        if isinstance(widget, forms.Select) and value not in dict(widget.choices):
            widget.choices = [*widget.choices, (value, _("As set: %(value)s") % {"value": value})]

    @property
    def chosen(self) -> list[str]:
        """The keys of the chosen cohorts, valid or not."""
        return [str(key) for key in self["cohort"].value() or []]

    @property
    def setting_fields(self) -> list[forms.BoundField]:
        """The fields that are usually left as they are."""
        return [self[name] for name in self.settings]

    @property
    def shows_settings(self) -> bool:
        """Return True if a setting was refused, so that it has to be seen."""
        return any(name in self.errors for name in self.settings)


class SetWeightsForm(TypedForm):
    """How much each question of a cohort matters."""

    name = forms.CharField(label=gettext_lazy("Name of the model"), required=False, max_length=120)

    def __init__(self, *args: Any, cohort: Cohort, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].widget.attrs["placeholder"] = _("%(name)s, set by hand") % {
            "name": cohort.name
        }
        self.questions = [question["name"] for question in cohort.questions]
        for k, question in enumerate(self.questions):
            self.fields[f"importance-{k}"] = forms.TypedChoiceField(
                label=question,
                coerce=float,
                required=False,
                initial=str(USUAL),
                choices=[(str(value), words) for value, words in CHOICES],
                error_messages={"invalid_choice": NO_SETTING},
            )

    @property
    def rows(self) -> list[forms.BoundField]:
        """The fields of the questions."""
        return [self[f"importance-{k}"] for k in range(len(self.questions))]

    @property
    def importance(self) -> dict[str, float]:
        """The importance of each question."""
        values = (self.cleaned_data[f"importance-{k}"] for k in range(len(self.questions)))
        return {
            question: USUAL if value == "" else value
            for question, value in zip(self.questions, values, strict=True)
        }


class CheckForm(TypedForm):
    """The cohort with whose pairs a model is compared."""

    cohort = ObjectField(
        Cohort.objects.none(), error_messages={"required": GONE, "invalid_choice": GONE}
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field_of(self, "cohort", ObjectField).queryset = owned_by(Cohort, user)
