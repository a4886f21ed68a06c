"""Half-written files go, and files that no row needs once all rows that expire have gone."""

from webapp.common.periodic import DAY, TIDYING, PeriodicWork, register_periodic_work
from webapp.files.orphaned_files import remove_orphaned_files
from webapp.files.store import tidy

register_periodic_work(
    PeriodicWork(tidy, TIDYING, DAY),
    PeriodicWork(remove_orphaned_files, TIDYING, DAY, order=90),
)
