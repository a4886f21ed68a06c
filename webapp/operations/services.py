"""Changes that an operator makes to workers, backups and alerts."""

from django.db import transaction
from django.utils.translation import gettext as _

from webapp.accounts.models import User
from webapp.audit.services import audit
from webapp.common.errors import Refusal
from webapp.common.models import Installation
from webapp.jobs.models import Job, Worker
from webapp.jobs.services import job_enqueue
from webapp.operations.jobs import BACKUP, backup_name, backup_running
from webapp.operations.models import AlertReader


class OperationsError(Refusal):
    """Refusal of an operator's request; the message is one sentence."""


@transaction.atomic
def worker_forget(*, user: User, worker: Worker) -> None:
    """Stop expecting a worker; a worker that answers again comes back."""
    audit(user, "took out of use", worker)
    worker.delete()


@transaction.atomic
def backup_start(*, user: User) -> Job:
    """Queue a backup of the whole installation; raise OperationsError while one is being made."""
    list(Installation.objects.select_for_update())  # two simultaneous requests start one backup
    if backup_running():
        raise OperationsError(_("A backup is being made already."))
    name = backup_name()
    return job_enqueue(user=user, kind=BACKUP, parameters={"name": name}, title=name)


@transaction.atomic
def alerts_start(*, user: User, address: str) -> None:
    """Mail a user when a fault begins, and when it is over."""
    AlertReader.objects.update_or_create(user=user, defaults={"address": address})
    audit(user, "started alerts to", user, address=address)


@transaction.atomic
def alerts_stop(*, user: User) -> None:
    """Stop mailing a user about faults."""
    if AlertReader.objects.filter(user=user).delete()[0]:
        audit(user, "stopped alerts to", user)
