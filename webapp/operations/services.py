"""What an administrator does about workers."""

from django.db import transaction

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.jobs.models import Worker


@transaction.atomic
def worker_forget(*, user: User, worker: Worker) -> None:
    """Expect a worker no longer; one that answers again comes back."""
    audit(user, "took out of use", str(worker))
    worker.delete()
