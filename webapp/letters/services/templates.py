"""Writing, changing and removing templates of letters."""

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.letters.errors import LetterError
from webapp.letters.fields import unknown_fields
from webapp.letters.models import Contact, LetterTemplate

FIRST_SUBJECT = "Your room for the coming year"
FIRST_TEXT = """Dear [name],

we are glad that you will live with us. Your room is:

[hall], [place], bed [bed] ([kind])

You share it with [roommates].
[contacts]

If anything here is wrong, answer this mail.

[organisation]"""


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
            f"There is already a letter called “{values['name']}”.", "name"
        ) from error
    return template


def _check(values: dict[str, str]) -> None:
    if not values["name"]:
        raise LetterError("The letter needs a name, by which staff find it.", "name")
    for field, words, most in (("subject", "The subject", 150), ("text", "The letter", 10_000)):
        if not 1 <= len(values[field]) <= most:
            raise LetterError(f"{words} has 1 to {most:,} letters.", field)
        if "\x00" in values[field]:
            raise LetterError(f"{words} holds a zero byte.", field)
        unknown = unknown_fields(values[field])
        if unknown:
            raise LetterError(unknown[0], field)
    if values["contact"] not in Contact.values:
        raise LetterError("Choose whose e-mail roommates read.", "contact")
    if values["contact"] == Contact.WHO_AGREED and not values["consent_column"]:
        raise LetterError(
            "Name the column in which students said yes to being named.", "consent_column"
        )
    if values["reply_to"]:
        try:
            validate_email(values["reply_to"])
        except ValidationError as error:
            raise LetterError(
                f"“{values['reply_to'][:60]}” is not an e-mail address for answers.", "reply_to"
            ) from error


@transaction.atomic
def template_remove(*, user: User, template: LetterTemplate, typed_name: str) -> None:
    """Remove a template without sent letters, if its name was typed."""
    if typed_name.strip() != template.name:
        raise LetterError("The name does not match. Nothing was removed.")
    if template.letters.exists():
        raise LetterError(
            "Letters were sent from it, and they tell who had which. Rename it instead."
        )
    audit(user, "removed a letter", template)
    template.delete()
