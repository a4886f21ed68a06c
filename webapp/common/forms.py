"""Forms that keep what was typed, and their layout: label, hint, control, error, in one column."""

from collections.abc import Callable
from enum import Enum
from typing import Any, Self, TypeVar

from django import forms
from django.core.exceptions import ValidationError
from django.forms import BaseForm, Field
from django.forms.renderers import TemplatesSetting
from django.http import HttpRequest, QueryDict

from webapp.common.acts import page_of
from webapp.common.errors import Refusal
from webapp.common.kept_forms import EXPIRED, take
from webapp.common.parameters import whole_number
from webapp.common.toasts import toast
from webapp.translation.lazy import gettext_lazy

OLD_PAGE = gettext_lazy("The page was out of date. Load it again.")
NO_ACTION = gettext_lazy("There is no such action.")
F = TypeVar("F", bound=Field)


def field_of(form: BaseForm, name: str, kind: type[F]) -> F:
    """Return the field of a form that has this name and is of this kind."""
    field = form.fields[name]
    if not isinstance(field, kind):
        raise TypeError(f"{name} is a {type(field).__name__}, not a {kind.__name__}.")
    return field


class InterfaceFormRenderer(TemplatesSetting):
    """Renderer of ``{{ form }}`` and ``{{ field.as_field_group }}`` with the product's partials."""

    form_template_name = "common/_form.html"
    field_template_name = "common/_field.html"


class Typed(BaseForm):
    """The part of forms that fills them from a POST, or from what was typed before a session ended.

    ``refused_field`` is the field beside which a refusal that names no field is shown.
    """

    refused_field = ""

    @classmethod
    def typed(cls, request: HttpRequest, **options: Any) -> Self:
        """Return the form with this request's values, or those typed before a session ended."""
        if request.method == "POST":
            return cls(request.POST, request.FILES, **options)
        kept = take(request)
        if kept is None:
            return cls(**options)
        form = cls(kept, **options)
        form.add_error(None, EXPIRED)
        return form

    def attempt(self, act: Callable[[], object]) -> bool:
        """Perform an act; show a refusal beside its field. Return True if the act succeeded."""
        try:
            act()
        except Refusal as refusal:
            field = self.field_named(refusal.field) or self.refused_field
            self.add_error(field if field in self.fields else None, str(refusal))
            return False
        return True

    def field_named(self, name: str) -> str:
        """Return the field beside which a refusal is shown that names a part of the request."""
        return name

    def submit(self, request: HttpRequest, act: Callable[..., object]) -> bool:
        """Perform an act with the fields of a valid POST; return True if the act succeeded."""
        return (
            request.method == "POST"
            and self.is_valid()
            and self.attempt(lambda: act(**self.cleaned_data))
        )

    def check(self) -> None:
        """Raise Refusal with the first error of a form that shows no fields."""
        if not self.is_valid():
            raise Refusal(self.first_error)

    def press(self, request: HttpRequest, act: Callable[..., object]) -> bool:
        """Perform the act of a button; a refusal is a toast, since nothing was typed."""
        is_done = self.submit(request, act)
        if not is_done:
            toast(request, self.first_error, error=True)
        return is_done

    @property
    def sent(self) -> dict[str, list[str]]:
        """The fields as they were sent, for a question that repeats the form."""
        lists = self.data.lists() if isinstance(self.data, QueryDict) else ()
        return {name: list(values) for name, values in lists if name in self.fields}

    def show_value(self, name: str, value: str) -> None:
        """Set a field of a refused form to a value that the next submission needs."""
        if self.is_bound:
            data = self.data.copy() if isinstance(self.data, QueryDict) else {**self.data}
            data[name] = value
            self.data = data

    @property
    def first_error(self) -> str:
        """The first error, for a form that shows no fields; "" if there is none."""
        return next((str(error) for errors in self.errors.values() for error in errors), "")

    @property
    def status(self) -> int:
        """The status of the page that shows the form."""
        return 422 if self.is_bound and self.errors else 200


class TypedForm(Typed, forms.Form):
    """A form filled from a POST, or from the values typed before a session ended."""


class TypedModelForm(Typed, forms.ModelForm):
    """The same for the fields of a model; give the ``instance`` to ``typed``."""


class BackForm(TypedForm):
    """An act that returns to the page that its form was on, with that page's filters."""

    back = forms.CharField(required=False, max_length=2_000, widget=forms.HiddenInput)

    @property
    def back_to(self) -> str:
        """The page of the form, or its filters, as the form sent it."""
        return str(self["back"].value() or "")

    def page_of(self, default: str) -> str:
        """Return the form's page with its filters, or the default if the form names another."""
        return page_of(self.back_to, default) or default


class ObjectField(forms.ModelChoiceField):
    """One of the objects of a query; a key that cannot be one is refused as an unknown object."""

    def to_python(self, value: Any) -> Any:
        """Return the object."""
        try:
            return super().to_python(value)
        except ValidationError as error:
            raise ValidationError(
                self.error_messages["invalid_choice"], code="invalid_choice"
            ) from error


class ManyField(forms.MultipleChoiceField):
    """Values of a list that may have changed since the page was made: any are accepted."""

    widget = forms.MultipleHiddenInput

    def valid_value(self, value: Any) -> bool:
        """Accept every value; the act looks the objects up."""
        return True


class NumberField(forms.Field):
    """A key or a number that the page holds: 1 to 9 digits."""

    widget = forms.HiddenInput
    default_error_messages = {"required": OLD_PAGE, "invalid": OLD_PAGE}

    def to_python(self, value: Any) -> int | None:
        """Return the number; None if the field is empty."""
        if value in self.empty_values:
            return None
        number = whole_number(str(value))
        if number is None:
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return number


class NumbersField(ManyField):
    """Keys that the page holds, each once; one that is no number refuses all of them."""

    default_error_messages = {"required": OLD_PAGE}

    def clean(self, value: Any) -> list[int]:
        """Return the keys."""
        found = dict.fromkeys(whole_number(text) for text in super().clean(value))
        numbers = [number for number in found if number is not None]
        if len(numbers) < len(found):
            raise ValidationError(OLD_PAGE)
        return numbers


class ActField(forms.TypedChoiceField):
    """A member of an enum that a button or a hidden field names; None for a field left out."""

    widget = forms.HiddenInput

    def __init__(self, members: type[Enum], sentence: str = NO_ACTION, **kwargs: Any) -> None:
        """``sentence`` answers a name that the enum does not have."""
        super().__init__(
            choices=[(one.value, one.value) for one in members],
            coerce=members,
            empty_value=None,
            error_messages={"required": sentence, "invalid_choice": sentence},
            **kwargs,
        )


class SwitchField(forms.TypedChoiceField):
    """A switch that a button sets: 1 or 0, and nothing else."""

    widget = forms.HiddenInput

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            choices=[("1", "1"), ("0", "0")],
            coerce=lambda text: text == "1",
            error_messages={"required": OLD_PAGE, "invalid_choice": OLD_PAGE},
            **kwargs,
        )
