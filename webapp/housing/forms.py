"""Forms of placements: rules, students and seeds."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.cohorts.models import Cohort
from webapp.common.forms import BackForm, ManyField, ObjectField, field_of
from webapp.common.parameters import digits_of, whole_number
from webapp.common.selectors import owned_by
from webapp.housing.errors import HousingError
from webapp.housing.models import BuildingList
from webapp.housing.rules import LAST_IN_ORDER, PlacementRules
from webapp.matching.models import LearnedModel
from webapp.matching.selectors.models import learned_models
from webapp.translation.lazy import format_lazy, gettext_lazy

SEEDS = 2**31
PAIRS = "pairs"  # where a cohort is placed without a building list


def chosen_errors(noun: str) -> dict[str, str]:
    """Return the messages of a field that chooses an object."""
    return {
        "required": format_lazy(gettext_lazy("Choose a {noun} first."), noun=noun),
        "invalid_choice": format_lazy(
            gettext_lazy("This {noun} was removed meanwhile. Choose another."), noun=noun
        ),
    }


COUNT_WORDS = [
    ("must", gettext_lazy("Must: they share a room")),
    ("wish", gettext_lazy("Wish: counts as chosen below")),
    ("no", gettext_lazy("Not counted")),
]


SUITE_RULES = [
    ("yes", gettext_lazy("Agree as roommates do")),
    ("no", gettext_lazy("May differ")),
]


class WorthField(forms.CharField):
    """A worth from 0 to 100 with a point or a comma; None if blank.

    ``words`` name what counts, such as "A wish".
    """

    def __init__(self, words: str, **kwargs: Any) -> None:
        super().__init__(required=False, max_length=100, **kwargs)
        self.words = words

    def clean(self, value: Any) -> float | None:
        """Return the number, rounded to 4 places."""
        text = super().clean(value).replace(",", ".")
        if not text:
            return None
        try:
            worth = float(text)
        except ValueError:
            worth = -1.0
        if not 0 <= worth <= 100:
            raise ValidationError(
                _("%(words)s counts from 0 to 100; “%(text)s” is no such number.")
                % {"words": self.words, "text": text[:20]}
            )
        return round(worth, 4)


class SeedField(forms.CharField):
    """The seed of a placement; None if the product is to choose it."""

    def __init__(self, **kwargs: Any) -> None:
        attrs = {
            "inputmode": "numeric",
            "placeholder": gettext_lazy("chosen for you"),
            "class": "id-input",
        }
        super().__init__(
            label=gettext_lazy("Random seed"),
            required=False,
            max_length=100,
            widget=forms.TextInput(attrs=attrs),
            help_text=gettext_lazy(
                "The same students, rooms, rules and seed give the same placement."
            ),
            **kwargs,
        )

    def clean(self, value: Any) -> int | None:
        """Return the seed."""
        text = super().clean(value)
        if not text:
            return None
        if not (text.isdecimal() and len(text) <= 10 and int(text) < SEEDS):
            raise ValidationError(
                _("A seed is a whole number from 0 to %(seeds)s.") % {"seeds": f"{SEEDS - 1:,}"}
            )
        return int(text)


class RulesForm(BackForm):
    """The rules of a placement; a field that is missing keeps its present value."""

    designation = forms.CharField(required=False, max_length=200)
    same = ManyField(required=False)
    needs = ManyField(required=False)
    mutual = forms.ChoiceField(required=False, choices=COUNT_WORDS)
    one_sided = forms.ChoiceField(required=False, choices=COUNT_WORDS)
    wish = WorthField(gettext_lazy("A wish"))
    preference = WorthField(gettext_lazy("The first choice"))
    price = WorthField(gettext_lazy("A move"))
    suite = WorthField(gettext_lazy("Suite mates"))
    suite_same = forms.ChoiceField(required=False, choices=SUITE_RULES)

    def __init__(
        self, *args: Any, cohort: Cohort, now: PlacementRules | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.cohort, self.now = cohort, now or default_rules(cohort)

    @property
    def rules(self) -> PlacementRules:
        """The rules that the form sends; the present ones where nothing or nonsense was sent."""
        if not self.is_bound:
            return self.now
        self.errors  # noqa: B018 - reads the fields, once
        found: dict[str, Any] = {}
        for name in ("designation", "mutual", "one_sided", "wish", "preference", "price", "suite"):
            value = self.cleaned_data.get(name)
            is_sent = name in self.data and value is not None
            if is_sent and (value != "" or name == "designation"):
                found[name] = value
        if self.cleaned_data.get("suite_same"):
            found["suite_same"] = self.cleaned_data["suite_same"] == "yes"
        for name in ("same", "needs"):
            chosen = self.cleaned_data.get(name, [])
            found[name] = tuple(c for c in chosen if c in self.cohort.constraints)
        return replace(self.now, **found)


class WhereField(ObjectField):
    """A building list, or None for pairs without rooms."""

    def clean(self, value: Any) -> BuildingList | None:
        """Return the building list."""
        found: BuildingList | None = None if value == PAIRS else super().clean(value)
        return found


class NewPlacementForm(RulesForm):
    """Students, rooms or pairs, model and rules of a new placement."""

    name = forms.CharField(
        label=gettext_lazy("Name of the placement"), required=False, max_length=120
    )
    buildings = WhereField(
        BuildingList.objects.none(), error_messages=chosen_errors(gettext_lazy("building list"))
    )
    model = ObjectField(
        LearnedModel.objects.none(), error_messages=chosen_errors(gettext_lazy("model"))
    )
    seed = SeedField()

    def __init__(
        self, *args: Any, user: User, halls: Mapping[BuildingList, Sequence[str]], **kwargs: Any
    ) -> None:
        """``halls`` are the halls of the building lists whose order the page offers."""
        super().__init__(*args, **kwargs)
        field_of(self, "buildings", ObjectField).queryset = owned_by(BuildingList, user)
        field_of(self, "model", ObjectField).queryset = learned_models(user)
        self._orders: dict[BuildingList, dict[str, str]] = {}  # name of the field: hall
        for k, (buildings, names) in enumerate(halls.items()):
            keys = {f"order-{k}-{n}": hall for n, hall in enumerate(names)}
            self._orders[buildings] = keys
            self.fields |= {name: OrderField(hall) for name, hall in keys.items()}

    @property
    def orders_of_lists(self) -> list[tuple[BuildingList, list[forms.BoundField]]]:
        """The fields of the order of each building list."""
        return [(known, [self[name] for name in names]) for known, names in self._orders.items()]

    @property
    def rules(self) -> PlacementRules:
        """The rules that the form sends, with the order of the halls of the chosen list."""
        found = super().rules
        chosen = self.cleaned_data.get("buildings") if self.is_bound else None
        names = {} if chosen is None else self._orders.get(chosen, {})
        return _with_order(self, found, names)


def _with_order(form: RulesForm, rules: PlacementRules, names: Mapping[str, str]) -> PlacementRules:
    """Return the rules with the sent order; ``names`` gives the hall or floor of each field."""
    if not any(name in form.data for name in names):
        return rules
    sent = {key: form.cleaned_data.get(name) for name, key in names.items()}
    return replace(rules, order=tuple((key, n) for key, n in sent.items() if n is not None))


class ChangedRulesForm(RulesForm):
    """Other rules of a placement, the order in which its halls fill, and a seed."""

    seed = SeedField()

    def __init__(self, *args: Any, halls: Mapping[str, Sequence[str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._orders: dict[str, str] = {}  # name of the field: hall, or hall and floor
        numbers = dict(self.now.order)
        for hall, floors in halls.items():
            keys = [(hall, hall)]
            if len(floors) > 1:
                keys += [
                    (
                        f"{hall}|{floor}",
                        _("%(hall)s, floor %(floor)s") % {"hall": hall, "floor": floor},
                    )
                    for floor in floors
                ]
            for key, words in keys:
                name = f"order-{len(self._orders)}"
                self._orders[name] = key
                self.fields[name] = OrderField(words, initial=numbers.get(key))

    @property
    def numbers_of_order(self) -> list[forms.BoundField]:
        """The fields of the order, in the order of the building list."""
        return [self[name] for name in self._orders]

    @property
    def rules(self) -> PlacementRules:
        """The rules that the form sends, with the order."""
        return _with_order(self, super().rules, self._orders if self.is_bound else {})


class OrderField(forms.IntegerField):
    """The number of a hall or a floor in the order in which rooms fill; None if it comes last."""

    def __init__(self, words: str, **kwargs: Any) -> None:
        sentence = _("%(place)s: a number from 1 to %(most)s, or blank.") % {
            "place": words,
            "most": LAST_IN_ORDER,
        }
        super().__init__(
            label=words,
            required=False,
            min_value=1,
            max_value=LAST_IN_ORDER,
            widget=forms.NumberInput(attrs={"class": "input input--row order-fields__number"}),
            error_messages=dict.fromkeys(("invalid", "min_value", "max_value"), sentence),
            **kwargs,
        )


def read_students(texts: Iterable[str], *, may_be_empty: bool = False) -> list[int]:
    """Return the students named by fields; each field holds ids on screen, parted by commas.

    Raises HousingError for an invalid id on screen, and if nobody is named.
    """
    found = []
    for text in texts:
        for part in re.split(r"[,;\s]+", text.strip()):
            number = whole_number(digits_of(part))
            if part and number is None:
                raise HousingError(
                    _("“%(part)s” is not an id on screen, such as S-1042.") % {"part": part[:20]}
                )
            found += [number] if number is not None else []
    if not found and not may_be_empty:
        raise HousingError(_("Name at least one student."))
    return list(dict.fromkeys(found))


def default_rules(cohort: Cohort) -> PlacementRules:
    """Return the default rules of a new placement, guessed from the columns of its cohort.

    Every column of needs counts.
    """
    words = {column: column.casefold() for column in cohort.same_columns}
    gender = next((c for c, w in words.items() if "gender" in w or w == "sex"), "")
    needs = tuple(c for c in cohort.constraints if c in cohort.needs)
    return PlacementRules(designation=gender, same=(gender,) if gender else (), needs=needs)
