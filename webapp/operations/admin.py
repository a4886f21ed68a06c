"""Django's admin for operators: rows of all organisations without what they say about people.

It is off unless ``OPERATOR_ADMIN=1``, and answers 404 to everybody but operators. Each model lists
the columns that are shown; names, e-mails, texts and titles are not among them. Rows cannot be
added, changed or deleted; the few acts are actions of lists. Each look at a row and each act writes
an audit line for the organisation of the row, so that its administrators can read it.
"""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, ClassVar

from axes.utils import reset as axes_reset
from django.apps import apps
from django.conf import settings
from django.contrib import admin, messages
from django.db import models, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils import timezone

from webapp.accounts.models import Organisation, User
from webapp.accounts.names import sign_in_key
from webapp.audit.services import audit
from webapp.common.outgoing import Outgoing

_LEFT_OUT = {"login", "logout", "password_change", "password_change_done", "autocomplete"}
_LEFT_OUT |= {"view_on_site"}
_ADDRESSES = ("_changelist", "_change")  # ends of the names of a model's addresses


class _OfInstallation(str):
    """Name of something that belongs to no organisation; only operators read its audit lines."""

    is_of_installation = True
    __slots__ = ()


class OperatorSite(admin.AdminSite):
    """Admin site of operators; everybody else learns nothing of it."""

    site_title = site_header = "Rows of the installation"
    index_title = "Tables"
    index_template = "admin/rows_index.html"
    site_url = "/operations/"
    enable_nav_sidebar = False

    def has_permission(self, request: HttpRequest) -> bool:
        """Return True for operators, if the setting is on."""
        user = request.user
        return bool(settings.OPERATOR_ADMIN and user.is_active and getattr(user, "is_operator", 0))

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Any:
        """Guard a view: 404 instead of a form to sign in."""
        guarded = super().admin_view(view, cacheable)

        def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if not self.has_permission(request):
                raise Http404("There is no such page.")
            return guarded(request, *args, **kwargs)

        return update_wrapper(inner, view)

    def get_urls(self) -> list[Any]:
        """Return the addresses without those of people: the product has its own."""
        return [one for one in super().get_urls() if getattr(one, "name", "") not in _LEFT_OUT]


class RowAdmin(admin.ModelAdmin):
    """List and page of the rows of one table; ``shown`` are the columns, ``owner`` the way to the
    organisation of a row."""

    shown: ClassVar[tuple[str, ...]] = ()
    owner: ClassVar[str] = "organisation"
    list_per_page = 50
    show_full_result_count = False
    change_form_template = "admin/row.html"

    def get_list_display(self, request: HttpRequest) -> Any:
        """Return the key and the shown columns."""
        return ("pk", *self.shown)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the shown columns."""
        return self.shown

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        """Return all rows; sealed columns are not even decrypted."""
        rows = super().get_queryset(request)
        columns = [name for name in self.shown if name in {f.name for f in self.opts.fields}]
        return rows.only("pk", *columns) if columns else rows

    def get_urls(self) -> list[URLPattern]:
        """Return the addresses of the list and of a row."""
        return [one for one in super().get_urls() if str(one.name).endswith(_ADDRESSES)]

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Return True: the site lets in operators alone."""
        return True

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return True: the site lets in operators alone."""
        return True

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: services make rows."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: rows are looked at; actions do what operators need."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: organisations remove what is theirs."""
        return False

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, and write that it was looked at."""
        if request.method == "GET":
            name = _OfInstallation(self.opts.verbose_name_plural)
            audit(_person(request), "listed rows", name)
        return super().changelist_view(request, extra_context)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a row, and write that it was looked at."""
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404("There is no such page.")
        self.note(request, "looked at a row", row)
        key = f"{self.opts.verbose_name} {row.pk}"
        return super().change_view(request, object_id, form_url, {"subtitle": key, "key": key})

    def note(self, request: HttpRequest, verb: str, row: models.Model) -> None:
        """Write an audit line for the organisation of a row, by its key alone."""
        name = f"{self.opts.verbose_name} {row.pk}"
        found = self._owner_of(row)
        if found is None:
            audit(_person(request), verb, _OfInstallation(name))
        else:
            audit(_person(request), verb, name, organisation=found)

    def _owner_of(self, row: Any) -> Organisation | None:
        """Return the organisation of a row; None if it belongs to the installation."""
        if getattr(row, "is_of_installation", False):
            return None
        for name in self.owner.split("__") if self.owner else ():
            row = getattr(row, name)
        return row if isinstance(row, Organisation) else None


class PeopleAdmin(RowAdmin):
    """Accounts: role, state and last sign-in, and the end of a lock."""

    shown = (
        "username",
        "organisation",
        "role",
        "is_operator",
        "is_active",
        "must_change_password",
        "last_login",
        "date_joined",
    )
    search_fields = ("=username",)
    actions = ("unlock",)

    @admin.action(description="End the lock after failed sign-ins")
    def unlock(self, request: HttpRequest, rows: models.QuerySet[User]) -> None:
        """Let people try again at once to sign in, from every address."""
        for user in rows:
            with transaction.atomic():
                axes_reset(username=sign_in_key(user.get_username()))
                self.note(request, "unlocked sign-in", user)
        messages.info(request, f"{len(rows)} may try again to sign in.")


class OrganisationAdmin(RowAdmin):
    """Organisations: when they were made and how much they store."""

    shown = ("name", "created_at", "time_zone", "stored_bytes", "stored_at")
    owner = ""

    def _owner_of(self, row: Any) -> Organisation | None:
        return row


class JobAdmin(RowAdmin):
    """Jobs: where they stand, who claimed them, how often they died."""

    shown = (
        "organisation",
        "kind",
        "state",
        "progress",
        "created_at",
        "started_at",
        "finished_at",
        "worker",
        "heartbeat_at",
        "attempt",
        "deaths",
        "memory_kills",
        "dispatched_at",
        "dispatch_count",
        "n_pieces",
        "cancel_requested_at",
        "code_version",
    )
    search_fields = ("=uuid",)


class OutgoingAdmin(RowAdmin):
    """Messages on their way: state, attempts and the last error, and another try."""

    shown: ClassVar[tuple[str, ...]] = ("state", "attempts", "due_at", "sent_at", "error")
    list_filter = ("state",)
    actions = ("try_again",)

    @admin.action(description="Try again now")
    def try_again(self, request: HttpRequest, rows: models.QuerySet[Any]) -> None:
        """Make waiting and failed messages due now; those sent or being sent stay as they are."""
        due = (Outgoing.WAITING, Outgoing.FAILED)
        count = 0
        for row in rows:
            with transaction.atomic():
                held = self.model._default_manager.filter(pk=row.pk, state__in=due)
                if held.update(state=Outgoing.WAITING, attempts=0, due_at=timezone.now()):
                    self.note(request, "tried again", row)
                    count += 1
        messages.info(request, f"{count} of {len(rows)} are due now.")


class LetterAdmin(OutgoingAdmin):
    """Letters to students."""

    owner = "placement__organisation"


class QuestionAdmin(OutgoingAdmin):
    """Questions to students about requests."""

    owner = "request__cohort__organisation"


class SurveyMailAdmin(OutgoingAdmin):
    """Invitations and reminders."""

    owner = "participant__questionnaire__organisation"


class DeliveryAdmin(OutgoingAdmin):
    """Deliveries to other programs."""

    shown: ClassVar[tuple[str, ...]] = (
        "event",
        *OutgoingAdmin.shown,
        "answer",
        "milliseconds",
        "created_at",
    )
    owner = "webhook__organisation"


class AlertMailAdmin(OutgoingAdmin):
    """Mails about faults of the installation."""

    owner = ""


class WorkerAdmin(RowAdmin):
    """Workers that have reported."""

    shown = ("name", "processes", "memory_used", "memory_total", "seen_at")
    owner = ""


class TokenAdmin(RowAdmin):
    """Tokens of the API: when they were used, and until when they work."""

    shown = (
        "organisation",
        "user",
        "may_change",
        "created_at",
        "expires_at",
        "last_used_at",
        "revoked_at",
    )


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - the site lets in operators alone
    return request.user


site = OperatorSite()
for _label, _admin in {
    "accounts.User": PeopleAdmin,
    "accounts.Organisation": OrganisationAdmin,
    "jobs.Job": JobAdmin,
    "jobs.Worker": WorkerAdmin,
    "api.ApiToken": TokenAdmin,
    "letters.Letter": LetterAdmin,
    "letters.RequestQuestion": QuestionAdmin,
    "surveys.Mail": SurveyMailAdmin,
    "webhooks.Delivery": DeliveryAdmin,
    "operations.AlertMail": AlertMailAdmin,
}.items():
    site.register(apps.get_model(_label), _admin)
