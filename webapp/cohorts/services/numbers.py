"""Numbers on screen: S-1042 is one student of an organisation, in all its cohorts."""

from django.db.models import Max

from webapp.accounts.models import Organisation
from webapp.cohorts.models import Student


def numbers_take(organisation: Organisation, count: int) -> int:
    """Reserve ``count`` numbers for new students in this transaction; return the first.

    The organisation's row stays locked until the transaction ends, so that two imports at once get
    different numbers. A number is never given again, also after its student was purged.
    """
    locked = Organisation.objects.select_for_update().get(pk=organisation.pk)
    students = Student.objects.filter(cohort__organisation=organisation.pk)
    highest = students.aggregate(highest=Max("number"))["highest"] or 0
    first = max(locked.last_student_number, highest) + 1
    locked.last_student_number = first + count - 1
    locked.save(update_fields=["last_student_number"])
    return first
