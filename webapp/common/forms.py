"""Layout of forms: label, hint, control, error, in one column."""

from typing import TypeVar

from django.forms import BaseForm, Field
from django.forms.renderers import TemplatesSetting

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
