"""Pages with one form, which a dialog leads to if its form is refused: new names, removals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from webapp.common.errors import Refusal
from webapp.common.forms import TypedForm
from webapp.common.free_names import LONGEST_NAME
from webapp.common.toasts import toast
from webapp.translation.lazy import gettext_lazy

_RENAME = {
    "cohort": gettext_lazy("Rename the cohort"),
    "model": gettext_lazy("Rename the model"),
    "placement": gettext_lazy("Rename the placement"),
    "building list": gettext_lazy("Rename the building list"),
}
_RENAMED = {
    "cohort": gettext_lazy("The cohort was renamed."),
    "model": gettext_lazy("The model was renamed."),
    "placement": gettext_lazy("The placement was renamed."),
    "building list": gettext_lazy("The building list was renamed."),
}
Trail = Sequence[tuple[str, str]]  # words and address of each page above


class NameForm(TypedForm):
    """The new name of something."""

    refused_field = "name"
    name = forms.CharField(label=gettext_lazy("Name"), max_length=LONGEST_NAME)


class RemoveForm(TypedForm):
    """The name of something, typed to remove it."""

    refused_field = "name"
    name = forms.CharField(
        required=False, max_length=200, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )

    def __init__(self, *args: Any, expected: str, sent_as: str = "name", **kwargs: Any) -> None:
        """``sent_as`` is the name of the field in the page."""
        self.sent_as = sent_as
        super().__init__(*args, **kwargs)
        self.fields["name"].label = _("Type “%(name)s” to confirm") % {"name": expected}
        self.fields["name"].widget.attrs["data-confirm-text"] = expected

    def add_prefix(self, field_name: str) -> str:
        """Return the name under which the page sends a field."""
        return self.sent_as


@dataclass(frozen=True, slots=True)
class FormPage:
    """A page with one form.

    Parameters
    ----------
    title : str, the act: verb and object.
    button : str, the button that performs it.
    trail : sequence of (words, address), breadcrumbs; the last is the page to return to.
    words : str, what the act does.
    is_danger : bool, whether something is lost.
    """

    title: str
    button: str
    trail: Trail
    words: str = ""
    is_danger: bool = False

    @property
    def back(self) -> str:
        """The address of the page to return to."""
        return self.trail[-1][1]

    def show(self, request: HttpRequest, form: TypedForm) -> HttpResponse:
        """Return the page with a form; its status is 422 if the form was refused."""
        context = {"page": self, "form": form}
        return render(request, "common/form_page.html", context, status=form.status)


def rename_page(
    request: HttpRequest, kind: str, act: Callable[..., object], trail: Trail
) -> HttpResponse:
    """Rename something by a form and return to its page, the last of the trail.

    ``act`` takes the new ``name``; ``kind`` is the word for the thing, such as cohort.
    """
    name, address = trail[-1]
    form = NameForm.typed(request, initial={"name": name})
    if form.submit(request, act):
        toast(request, str(_RENAMED[kind]))
        return redirect(address)
    return FormPage(str(_RENAME[kind]), _("Rename"), trail).show(request, form)


def if_named(name: str, act: Callable[[], object]) -> Callable[..., None]:
    """Return an act for `remove_page` that refuses any other typed name."""

    def perform(*, typed_name: str) -> None:
        if typed_name.strip() != name:
            raise Refusal(_("The name does not match. Nothing was removed."))
        act()

    return perform


def remove_page(
    request: HttpRequest,
    title: str,
    act: Callable[..., object],
    trail: Trail,
    *,
    words: str,
    done: str = gettext_lazy("%(name)s was removed."),
    sent_as: str = "name",
) -> HttpResponse:
    """Remove something whose name was typed, and return to the list, the first of the trail.

    ``act`` takes the ``typed_name``; ``words`` say what is lost, ``done`` that it is, unless the
    act says so itself; ``sent_as`` is the name of the field in the page.
    """
    name = trail[-1][0]
    form = RemoveForm.typed(request, expected=name, sent_as=sent_as)
    if form.submit(request, lambda name: act(typed_name=name)):
        if done:
            toast(request, done % {"name": name})
        return redirect(trail[0][1])
    page = FormPage(
        title,
        title.split()[0],
        trail,
        words=_("%(consequence)s It cannot be undone.") % {"consequence": words},
        is_danger=True,
    )
    return page.show(request, form)
