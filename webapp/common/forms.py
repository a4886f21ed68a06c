"""How forms look: label, hint, control, error, in one column."""

from django.forms.renderers import TemplatesSetting


class InterfaceFormRenderer(TemplatesSetting):
    """Renders ``{{ form }}`` and ``{{ field.as_field_group }}`` with the product's partials."""

    form_template_name = "common/_form.html"
    field_template_name = "common/_field.html"
