"""Writing, changing and removing templates of letters."""

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.letters.errors import LetterError
from webapp.letters.fields import unknown_fields
from webapp.letters.models import Contact, LetterTemplate
from webapp.translation.lazy import gettext_lazy

FIRST_SUBJECT = gettext_lazy("Your room for the coming year")
FIRST_TEXT = gettext_lazy("""Dear [name],

we are glad that you will live with us. Your room is:

[hall], [place], bed [bed] ([kind])

You share it with [roommates].
[contacts]

If anything here is wrong, answer this mail.

[organisation]""")


def template_save(
    *,
    user: User,
    template: LetterTemplate | None,
    name: str,
    subject: str,
    text: str,
    reply_to: str = "",
    contact: str = Contact.NOBODY,
    consent_column: str = "",
) -> LetterTemplate:
    """Create or change a template; sent letters stay as they were.

    Raises LetterError in one sentence: a name that is missing or taken, an unknown field, a text
    that is empty or too long, an invalid reply address.
    """
    values = {
        "name": " ".join(name.split())[:120],
        "subject": " ".join(subject.split()),
        "text": text.replace("\r\n", "\n").strip(),
        "reply_to": reply_to.strip(),
        "contact": contact,
        "consent_column": " ".join(consent_column.split())[:200],
    }
    _check(values)
    is_new = template is None
    template = template or LetterTemplate(organisation=user.own_organisation, created_by=user)
    for field, value in values.items():
        setattr(template, field, value)
    template.updated_at = timezone.now()
    try:
        with transaction.atomic():
            template.save()
            audit(user, "wrote a letter" if is_new else "changed a letter", template)
    except IntegrityError as error:
        raise LetterError(
            _("There is already a letter called “%(name)s”.") % {"name": values["name"]}, "name"
        ) from error
    return template


def _check(values: dict[str, str]) -> None:
    if not values["name"]:
        raise LetterError(_("The letter needs a name, by which staff find it."), "name")
    for field, most, length, zero in (
        (
            "subject",
            150,
            _("The subject has 1 to %(most)s letters."),
            _("The subject holds a zero byte."),
        ),
        (
            "text",
            10_000,
            _("The letter has 1 to %(most)s letters."),
            _("The letter holds a zero byte."),
        ),
    ):
        if not 1 <= len(values[field]) <= most:
            raise LetterError(length % {"most": f"{most:,}"}, field)
        if "\x00" in values[field]:
            raise LetterError(zero, field)
        unknown = unknown_fields(values[field])
        if unknown:
            raise LetterError(unknown[0], field)
    if values["contact"] not in Contact.values:
        raise LetterError(_("Choose whose e-mail roommates read."), "contact")
    if values["contact"] == Contact.WHO_AGREED and not values["consent_column"]:
        raise LetterError(
            _("Name the column in which students said yes to being named."), "consent_column"
        )
    if values["reply_to"]:
        try:
            validate_email(values["reply_to"])
        except ValidationError as error:
            raise LetterError(
                _("“%(reply_to)s” is not an e-mail address for answers.")
                % {"reply_to": values["reply_to"][:60]},
                "reply_to",
            ) from error


@transaction.atomic
def template_remove(*, user: User, template: LetterTemplate, typed_name: str) -> None:
    """Remove a template without sent letters, if its name was typed."""
    if typed_name.strip() != template.name:
        raise LetterError(_("The name does not match. Nothing was removed."))
    if template.letters.exists():
        raise LetterError(
            _("Letters were sent from this template, and their record needs it. Rename it instead.")
        )
    audit(user, "removed a letter", template)
    template.delete()
