"""E-mail addresses of students, checked before mails are queued."""

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from webapp.cohorts.models import Student


def address_of(student: Student) -> str:
    """Return the e-mail of a student, or "" if there is no valid one."""
    text = student.email.strip()
    try:
        validate_email(text)
    except ValidationError:
        return ""
    return text
