"""Queries on the audit log."""

from django.db.models import QuerySet

from webapp.accounts.models import User
from webapp.audit.models import AuditLine
from webapp.common.selectors import owned_by


def lines_of(user: User) -> QuerySet[AuditLine]:
    """Return the organisation's audit lines; lines about hosts and backups only to operators."""
    lines = owned_by(AuditLine, user)
    return lines if user.is_operator else lines.filter(is_of_installation=False)
